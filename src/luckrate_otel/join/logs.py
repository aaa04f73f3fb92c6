"""Log events carry what their span does not: content in event-only modes. They may come in any order, on other
requests.
"""

from __future__ import annotations

from collections.abc import Iterable

from luckrate_otel.facts import Evaluation, Facts, Role
from luckrate_otel.record import replace


def merge_logs(facts: tuple[Facts, ...]) -> tuple[Facts, ...]:
    """Facts of spans, with those of their log records filled in; a record whose span is not there stands for it.

    By start, each span once.
    """
    if _is_done(facts):  # no log records: saves 0.9 µs per span
        return facts
    spans: dict[str, Facts] = {}
    logs: dict[str, list[Facts]] = {}
    loose: list[Facts] = []
    for fact in facts:
        if not fact.log:
            spans.setdefault(fact.head.span_id, fact)
        elif fact.head.span_id:
            logs.setdefault(fact.head.span_id, []).append(fact)
        else:
            loose.append(fact)
    for span_id, told in logs.items():
        ordered = _in_order(told)
        own = spans.get(span_id)
        spans[span_id] = _filled(own, ordered) if own is not None else _standing_alone(ordered)
    return tuple(
        sorted((*spans.values(), *loose), key=lambda f: (f.head.start_ns, f.log, f.head.end_ns, f.head.span_id))
    )


def _is_done(facts: tuple[Facts, ...]) -> bool:
    """Whether these are spans only, each once and no two of one start: nothing to fill in and nothing to sort."""
    before_ns = -1
    for fact in facts:
        start_ns = fact.head.start_ns
        if fact.log or start_ns <= before_ns:
            return False
        before_ns = start_ns
    return len({fact.head.span_id for fact in facts}) == len(facts)


def _in_order(told: list[Facts]) -> list[Facts]:
    """By time, each once: a record that was sent again is equal to the first in all that it says."""
    kept: list[Facts] = []
    for fact in sorted(told, key=lambda f: (f.head.start_ns, f.head.name, repr(f.inputs))):
        if fact not in kept:
            kept.append(fact)
    return kept


def _filled(span: Facts, logs: list[Facts]) -> Facts:
    if span.role is Role.TOOL:  # an event on a tool span (an evaluation, say) is no message of the tool's
        return replace(span, evaluations=(*span.evaluations, *_evaluations(logs)))
    return replace(
        span,
        inputs=span.inputs or tuple(m for log in logs for m in log.inputs),
        outputs=span.outputs or tuple(m for log in logs for m in log.outputs),
        system=span.system or tuple(dict.fromkeys(t for log in logs for t in log.system)),
        definitions=span.definitions or next((log.definitions for log in logs if log.definitions), ()),
        evaluations=(*span.evaluations, *_evaluations(logs)),
        finish_reasons=span.finish_reasons or next((log.finish_reasons for log in logs if log.finish_reasons), ()),
        conversation_id=span.conversation_id
        or next((log.conversation_id for log in logs if log.conversation_id), None),
    )


def _standing_alone(logs: list[Facts]) -> Facts:
    """The span itself is not there (not sampled, or its process died): its events are read as the call."""
    first, last = logs[0], logs[-1]
    model = next((log for log in logs if log.role is Role.MODEL), first)
    head = replace(model.head, start_ns=first.head.start_ns, end_ns=last.head.end_ns)
    return _filled(replace(model, head=head, inputs=(), outputs=(), evaluations=()), logs)


def _evaluations(logs: Iterable[Facts]) -> tuple[Evaluation, ...]:
    return tuple(e for log in logs for e in log.evaluations)
