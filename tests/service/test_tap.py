"""A tap forwards nothing of what it is given: only verdict spans, verdict log events and metrics leave."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from luckrate_otel.demo.sink import Sink, listening
from luckrate_otel.vocabulary import METRICS
from tests.programs.names import series
from tests.programs.play import VERDICTS, play
from tests.programs.running import SECONDS, free_addresses, get_json, get_text, luckrate, until

CONFIG = Path(__file__).parents[2] / "collector-config/tap/luckrate.yaml"


@pytest.mark.slow
def test_only_what_is_ours_leaves(tmp_path: Path) -> None:
    sink = Sink()
    with listening(sink) as backend:
        env = {
            **free_addresses("LUCKRATE", "LUCKRATE_METRICS", "LUCKRATE_ADMIN"),
            "GRADED": backend,
            "LUCKRATE_SETTLE": "1s",
        }
        with luckrate(CONFIG, tmp_path / "log", env):
            sent = play(env["LUCKRATE"], "langgraph", VERDICTS)
            assert sink.wait_for(lambda spans, logs: len(spans) >= len(VERDICTS) <= len(logs), SECONDS)
            status = f"http://{env['LUCKRATE_ADMIN']}/status"
            ledger = until(lambda: get_json(status))["ledger"]
            scraped = get_text(f"http://{env['LUCKRATE_METRICS']}/metrics")
    assert Counter(span.head.name for span in sink.spans) == {"luckrate.verdict": len(VERDICTS)}
    verdicts = {sent.scenario_of(span.head.trace_id): span.attributes["luckrate.verdict"] for span in sink.spans}
    assert verdicts == VERDICTS
    assert {span.head.parent_id for span in sink.spans} == {log.span_id for log in sink.logs}
    assert ledger["traces"]["received"] == sent.span_count
    assert ledger["traces"]["unaccounted"] == 0
    assert ledger["traces"]["made"] == len(VERDICTS)
    # The names by which dashboards and alerts ask, pushed or scraped.
    shown = set(re.findall(r"^(luckrate_\w+)[{ ]", scraped, re.MULTILINE))
    known = {name for metric in METRICS for name in series(metric)}
    # Those that appear with their first event, and had none here.
    unseen = {"revisions", "not_graded", "not_evaluated", "case_soft_majority"}
    assert shown <= known
    assert known - shown <= {"luckrate_journal_size_bytes"} | {f"luckrate_{name}_total" for name in unseen}
