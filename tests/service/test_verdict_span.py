"""What a tap sends as a span: one a run, at its end, below its root, with nothing in it but what is ours."""

from luckrate_otel.annotate import Evaluated
from luckrate_otel.otlp.decode import decode_span
from luckrate_otel.otlp.shallow import shallow
from luckrate_otel.service.verdict_span import verdict_request
from luckrate_otel.telemetry import Head, Span, SpanEvent

TRACE, ROOT, UID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "0123456789abcdef0123456789abcdef"
FOUND = SpanEvent("luckrate.violation", 5, {"luckrate.rule": "before"})


def event(**other: object) -> Evaluated:
    told = {"luckrate.verdict": "lucky", "gen_ai.agent.name": "shop", "log.record.uid": UID}
    return Evaluated(TRACE, ROOT, "orders", 13, told, **other)  # type: ignore[arg-type]  # a test's shorthand


def decoded(*events: Evaluated, at_ns: int = 99) -> list[Span]:
    groups = shallow(verdict_request(events, at_ns))
    return [decode_span(wire, group.envelope) for group in groups for wire in group.items]


def test_it_says_what_the_log_event_says() -> None:
    (span,) = decoded(event(ended_ns=7, violations=(FOUND,)))
    assert span == Span(
        Head(TRACE, "0123456789abcdef", ROOT, "luckrate.verdict", 1, 7, 7, scope="luckrate", service="orders"),
        {"luckrate.verdict": "lucky"},
        (FOUND,),
        resource={"service.name": "orders"},
    )


def test_a_run_without_times_has_those_of_its_verdict() -> None:
    (span,) = decoded(event())
    assert (span.head.start_ns, span.head.end_ns) == (99, 99)


def test_a_second_delivery_is_the_same_span() -> None:
    first, second = decoded(event(), event(), at_ns=1)
    assert first == second
