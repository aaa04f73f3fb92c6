"""Verdicts that wait for an evaluation, corrections, and the live window of a case. The clock is a number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanProto

from luckrate_otel.adapters import read
from luckrate_otel.assemble import Assembler
from luckrate_otel.conversation import Conversations
from luckrate_otel.facts import CloseReason
from luckrate_otel.otlp.decode import decode_span
from luckrate_otel.otlp.shallow import Envelope
from luckrate_otel.pipeline import grade
from luckrate_otel.service.judge import Judge, Sendings
from luckrate_otel.service.reading import Payload
from luckrate_otel.service.repeats import Repeats
from luckrate_otel.service.waiting import Waiting
from luckrate_otel.service.windows import Windows
from luckrate_otel.spec import Spec
from luckrate_otel.telemetry import LogRecord
from tests.making import TRACE, agent, sid, tool

S = 1_000_000_000
ENVELOPE = Envelope()
SPEC: dict[str, Any] = {
    "name": "s",
    "k": 3,
    "max_steps": 0,
    "ground": False,
    "output": {"evaluation": {"name": "right", "wait": 60}},
}


class Live:
    """A judge behind an assembler, driven by hand."""

    def __init__(self, **spec: Any) -> None:
        self.assembler = Assembler()
        self.judge = Judge([Spec.from_mapping({**SPEC, **spec})], Conversations(), Repeats(lambda: 0))

    def run(self, name: str = "a1", at: float = 0, *, case: str = "c") -> None:
        """One run of one call whose root has ended."""
        root = agent(name, start=1, end=9, trace=trace(name), case=case)
        self.assembler.add(tool("b1", name, start=2, end=3, trace=trace(name)), int(at * S))
        wire = SpanProto(trace_id=bytes.fromhex(trace(name)), span_id=bytes.fromhex(sid(name))).SerializeToString()
        self.assembler.add(root, int(at * S), payload=Payload(ENVELOPE, wire), size=1)

    def label(self, label: str, at: float, name: str = "a1", **more: Any) -> None:
        """The evaluator's log record, as it arrives."""
        told = {"gen_ai.evaluation.name": "right", "gen_ai.evaluation.score.label": label, **more}
        facts = read(LogRecord(trace(name), sid(name), "gen_ai.evaluation.result", 9_000_000, told))
        assert facts is not None
        self.assembler.add(facts, int(at * S))

    def settle(self, at: float) -> Sendings:
        return self.judge.settle(self.assembler.take(int(at * S)), int(at * S))


def trace(name: str) -> str:
    return TRACE[:-2] + name[-2:]


def told(out: Sendings) -> list[tuple[Any, Any, Any]]:
    """Label, output source and revision of each event sent."""
    return [
        (
            event.attributes["gen_ai.evaluation.score.label"],
            event.attributes["luckrate.output.source"],
            event.attributes.get("luckrate.revision"),
        )
        for event in out.events
    ]


def runs(out: Sendings) -> int:
    return sum(point.metric == "luckrate.runs" for point, _, _ in out.points)


def attributes(out: Sendings) -> dict[str, Any]:
    ((envelope, wire),) = out.spans
    return dict(decode_span(wire, envelope).attributes)


def test_spans_leave_at_once_and_say_nothing_that_is_not_decided() -> None:
    live = Live()
    live.run()
    out = live.settle(10)
    assert (told(out), runs(out), live.judge.waiting) == ([], 0, 1)
    shown = attributes(out)
    assert shown["luckrate.path"] == "bad"
    assert not {"luckrate.verdict", "luckrate.output", "luckrate.output.source", "luckrate.lucky"} & set(shown)


def test_the_verdict_comes_with_the_evaluation() -> None:
    live = Live()
    live.run()
    live.settle(10)
    live.label("pass", at=20)
    assert told(live.settle(29)) == []
    out = live.settle(30)
    assert (told(out), runs(out), live.judge.waiting) == ([("lucky", "evaluation", None)], 1, 0)
    assert (told(live.settle(200)), live.judge.is_due(200 * S)) == ([], False)


def test_a_score_that_is_a_text_is_a_number() -> None:
    live = Live(output={"evaluation": {"name": "right", "threshold": 0.75}})
    live.run()
    live.assembler.add(scored("0.8"), S)
    assert told(live.settle(11)) == [("lucky", "evaluation", None)]


def scored(value: Any) -> Any:
    told = {"gen_ai.evaluation.name": "right", "gen_ai.evaluation.score.value": value}
    return read(LogRecord(trace("a1"), sid("a1"), "gen_ai.evaluation.result", 9_000_000, told))


def test_what_is_no_number_is_no_score() -> None:
    scores = [scored(value).evaluations[0].score for value in (1, 0.5, "0.5", "good", "nan", True, None)]
    assert scores == [1.0, 0.5, 0.5, None, None, None, None]


def test_the_verdict_comes_without_it_when_the_wait_is_over_to_the_nanosecond() -> None:
    live = Live()
    live.run()
    live.settle(10)
    assert told(live.judge.settle((), 70 * S - 1)) == []
    assert not live.judge.is_due(70 * S - 1)
    assert live.judge.is_due(70 * S)
    out = live.judge.settle((), 70 * S)
    assert (told(out), runs(out)) == ([("lucky", "status", None)], 1)


def test_a_late_label_corrects_and_the_run_is_counted_once() -> None:
    live = Live()
    live.run()
    live.settle(10)
    live.settle(70)
    live.label("fail", at=80)
    out = live.settle(90)
    assert (told(out), runs(out)) == ([("fail", "evaluation", 2)], 0)
    assert [
        (p.metric, p.value, p.attributes["luckrate.from"], p.attributes["luckrate.to"]) for p, _, _ in out.points
    ] == [("luckrate.revisions", 1, "lucky", "fail")]


def test_what_is_judged_again_while_it_waits_does_not_wait_longer() -> None:
    live = Live()
    live.run()
    live.settle(10)
    live.assembler.add(tool("b2", "a1", start=4, end=5, trace=trace("a1")), 50 * S)
    assert told(live.settle(60)) == []
    out = live.settle(70)
    assert told(out) == [("lucky", "status", None)]
    assert [p.value for p, _, _ in out.points if p.metric == "luckrate.run.steps"] == [2]


def test_an_evaluation_that_is_there_in_time_makes_nothing_wait() -> None:
    live = Live()
    live.run()
    live.label("pass", at=1)
    out = live.settle(11)
    assert told(out) == [("lucky", "evaluation", None)]
    assert attributes(out)["luckrate.verdict"] == "lucky"


def test_nothing_waits_past_the_end() -> None:
    live = Live()
    live.run()
    live.settle(10)
    out = live.judge.settle(live.assembler.drain(CloseReason.SHUTDOWN, 11 * S), 11 * S)
    assert (told(out), live.judge.waiting, live.judge.standing) == ([("lucky", "status", None)], 0, 0)


def test_the_window_of_a_case_asks_as_the_gate_would() -> None:
    live = Live(output={"status": True})
    seen = []
    for number, case in enumerate(["c", "c", "d", "c", "c"]):
        live.run(f"a{number}", at=number * 20, case=case)
        out = live.settle(number * 20 + 10)
        (event,) = out.events
        majority = sum(p.metric == "luckrate.case.soft_majority" for p, _, _ in out.points)
        seen.append((event.attributes["luckrate.case.runs"], event.attributes["luckrate.case.soft"], majority))
    assert seen == [(1, 1, 1), (2, 2, 1), (1, 1, 1), (3, 3, 1), (3, 3, 1)]


def test_a_window_forgets_the_oldest_run_and_the_oldest_case() -> None:
    live = Live(output={"status": True})
    live.run()
    (effect,) = live.assembler.take(10 * S)
    soft = grade(effect.run, live.judge.specs).verdict  # type: ignore[union-attr]
    clean = grade(effect.run, [Spec.from_mapping({"name": "s"})]).verdict  # type: ignore[union-attr]
    windows = Windows(max_cases=1)
    states = [windows.add(str(n), verdict, 3) for n, verdict in enumerate([soft, soft, clean, clean, soft])]
    assert [(w.runs, w.soft, w.failed) for w in states] == [
        (1, 1, True),
        (2, 2, True),
        (3, 2, True),
        (3, 1, False),
        (3, 1, False),
    ]
    again = windows.add("4", clean, 3)
    assert (again.runs, again.soft) == (3, 0)
    assert windows.add("5", replace(soft, case="other"), 3).runs == 1
    assert len(windows) == 1
    assert windows.add("6", soft, 3).runs == 1


def test_waiting_is_bounded() -> None:
    waiting: Waiting[str] = Waiting(max_waiting=2)
    for number in range(4):
        waiting.put(str(number), f"digest {number}", 100 + number)
    assert waiting.due(0) == ["digest 0", "digest 1"]
    waiting.put("2", "newer", 102)
    assert waiting.due(102) == ["newer"]
    assert waiting.due(102) == []
    assert waiting.pop("3") == (103, "digest 3")
    assert (waiting.pop("3"), waiting.due(200), len(waiting)) == (None, [], 0)


def test_equal_counts_of_a_round_are_two_points_and_the_last_has_its_run() -> None:
    live = Live(output={})
    names = ("a1", "a2", "a3")
    for name in names:
        live.run(name)
    out = live.settle(60)
    counted = [(p.value, trace_id, span_id) for p, trace_id, span_id in out.points if p.metric == "luckrate.runs"]
    assert [(value, bool(trace_id), bool(span_id)) for value, trace_id, span_id in counted] == [
        (2, False, False),
        (1, True, True),
    ]
    assert counted[-1][1] in {trace(name) for name in names}
    steps = [trace_id for p, trace_id, _ in out.points if p.metric == "luckrate.run.steps"]
    assert sorted(steps) == sorted(map(trace, names))
