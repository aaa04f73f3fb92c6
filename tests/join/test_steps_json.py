"""The JSON of `steps` is a public contract: its keys, and their order."""

from __future__ import annotations

import json

from luckrate_otel.facts import CloseReason
from luckrate_otel.model import Coverage, Step, Trajectory, Turn
from luckrate_otel.reports.trajectory import to_json


def test_keys_in_order() -> None:
    run = Trajectory(
        steps=(Step("x", {"a": (1, b"\x01")}, None, None, 1.5, "desk", "no_return", None, "ab"),),
        turns=(Turn("Do it."), Turn("Now.", 1)),
        final_output="Done.",
        run_id="t:ab",
        trace_ids=("t",),
        conversation_id="c",
        adapters=("genai",),
        agent="desk",
        close_reason=CloseReason.NO_ROOT,
        coverage=Coverage(results=False),
    )
    assert json.dumps(to_json(run)) == (
        '{"run_id": "t:ab", "trace_ids": ["t"], "conversation_id": "c", "adapters": ["genai"], "agent": "desk", '
        '"task_input": "Do it.", "final_output": "Done.", "close_reason": "no_root", '
        '"coverage": {"tools": true, "args": true, "results": false, "task_input": true, "final_output": true}, '
        '"steps": [{"tool": "x", "args": {"a": [1, "01"]}, "ok": null, "result": null, "error": "no_return", "t": 1.5, '
        '"duration": null, "agent": "desk", "span": "ab"}]}'
    )
