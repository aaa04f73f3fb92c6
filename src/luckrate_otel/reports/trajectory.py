"""A trajectory as the JSON of `steps --format json`: a public contract, keys and order included."""

from __future__ import annotations

from typing import Any

from luckrate_otel.content.structured import plain
from luckrate_otel.model import Step, Trajectory


def to_json(trajectory: Trajectory) -> dict[str, Any]:
    """One run as a JSON object; steps with their nine fields."""
    told = trajectory.coverage
    return {
        "run_id": trajectory.run_id,
        "trace_ids": list(trajectory.trace_ids),
        "conversation_id": trajectory.conversation_id,
        "adapters": list(trajectory.adapters),
        "agent": trajectory.agent,
        "task_input": trajectory.task_input,
        "final_output": trajectory.final_output,
        "close_reason": trajectory.close_reason.value,
        "coverage": {
            "tools": told.tools,
            "args": told.args,
            "results": told.results,
            "task_input": told.task_input,
            "final_output": told.final_output,
        },
        "steps": [step_to_json(step) for step in trajectory.steps],
    }


def step_to_json(step: Step) -> dict[str, Any]:
    return {
        "tool": step.tool,
        "args": plain(step.args),
        "ok": step.ok,
        "result": step.result,
        "error": step.error,
        "t": step.t,
        "duration": step.duration,
        "agent": step.agent,
        "span": step.span,
    }
