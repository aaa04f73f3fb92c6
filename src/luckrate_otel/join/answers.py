"""The answer that a later model call got to see, for each tool call that was asked for."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice

from luckrate_otel.facts import Call, Message, Response, Text
from luckrate_otel.join.issue import Issue, Key, key_of
from luckrate_otel.join.model_calls import ModelCall, Scope
from luckrate_otel.join.names import plain_name
from luckrate_otel.record import replace
from luckrate_otel.telemetry import NOTHING

Answers = Mapping[Key, list[Response | None]]
Shown = tuple[ModelCall, Answers, Mapping[str, Response]]  # what the input of a model call shows: in pairs, and by id


def calls_and_answers(messages: Iterable[Message]) -> list[Call | Response]:
    return [p for m in messages for p in m.parts if not isinstance(p, Text)]


def pairs_of(parts: Iterable[Call | Response]) -> Answers:
    """Per call its answer, in order; by id, else (Gemini) by name, else by order. None: not answered there."""
    found: dict[Key, list[Response | None]] = {}
    waiting: list[tuple[Call, Key, int]] = []
    for part in parts:
        if isinstance(part, Call):
            key = key_of(part)
            row = found.setdefault(key, [])
            row.append(None)
            waiting.append((part, key, len(row) - 1))
        elif waiting:
            at = _asked_by(part, waiting)
            if at is not None:
                _, key, n = waiting.pop(at)
                found[key][n] = part
    return found


def _asked_by(response: Response, waiting: list[tuple[Call, Key, int]]) -> int | None:
    if response.call_id:
        by_id = [i for i, (call, _, _) in enumerate(waiting) if call.call_id == response.call_id]
        if by_id:
            return by_id[-1]
        if all(call.call_id for call, _, _ in waiting):
            return None
    if response.tool:
        by_name = [i for i, (call, _, _) in enumerate(waiting) if plain_name(call.tool) == plain_name(response.tool)]
        return by_name[0] if by_name else None
    return next((i for i, (call, _, _) in enumerate(waiting) if not call.call_id or not response.call_id), None)


def nth(answers: Answers, key: Key, n: int) -> Response | None:
    row = answers.get(key, [])
    return row[n] if n < len(row) else None


def answered(found: Iterable[Issue], models: tuple[ModelCall, ...]) -> list[Issue]:
    """Give each call the first answer that a later input shows, of its own conversation if it has one."""
    first: dict[Scope, Answers] = {}
    pairs: list[Shown] = []  # of the models whose input shows an answer at all
    for model in models:
        told = calls_and_answers(model.fact.inputs)
        answers = pairs_of(told)
        first.setdefault(model.scope, answers)
        if told:
            pairs.append((model, answers, _loose(told)))
    seen: Counter[tuple[Scope, Key]] = Counter()
    done = []
    for issue in found:
        key = key_of(issue.call)
        n = len(first.get(issue.scope, NOTHING).get(key, ())) + seen[issue.scope, key]
        if issue.turn < 0:  # taken from a first input: it is among the first ones itself
            n = seen[issue.scope, key]
        seen[issue.scope, key] += 1
        found_in = _answer(issue, key, n, pairs)
        done.append(issue if found_in is None else replace(issue, answer=found_in[0], heard=found_in[1].fact))
    return done


def _answer(issue: Issue, key: Key, n: int, pairs: list[Shown]) -> tuple[Response, ModelCall] | None:
    """The n-th answer to such a call in the first later input of its conversation that has it, else in any other."""
    after = bisect_left(pairs, issue.start_ns, key=lambda shown: shown[0].start_ns)
    later = (p for p in islice(pairs, after, None) if issue.source.head.span_id not in p[0].ids)
    answer = _first_answer((p for p in later if p[0].scope == issue.scope), issue, key, n)
    if answer is None:
        others = (p for p in islice(pairs, after, None) if p[0].scope != issue.scope)
        answer = _first_answer(others, issue, key, 0)
    if answer is None and issue.turn < 0:
        answer = _first_answer([p for p in pairs if issue.source.head.span_id in p[0].ids], issue, key, n)
    return answer


def _first_answer(pairs: Iterable[Shown], issue: Issue, key: Key, n: int) -> tuple[Response, ModelCall] | None:
    for model, answers, loose in pairs:
        found = nth(answers, key, n)
        if found is None and issue.call.call_id and key not in answers:
            found = loose.get(issue.call.call_id)  # the input was shortened: the answer is there, the question is not
        if found is not None:
            return found, model
    return None


def _loose(parts: list[Call | Response]) -> Mapping[str, Response]:
    """Answers whose question the input does not show, by id."""
    asked = {p.call_id for p in parts if isinstance(p, Call)}
    return {p.call_id: p for p in parts if isinstance(p, Response) and p.call_id and p.call_id not in asked}
