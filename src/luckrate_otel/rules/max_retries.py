"""`max_retries`: how often the same call may fail again the same way, and what is expected then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from luckrate_otel.canonical import canonical
from luckrate_otel.facts import NO_RETURN
from luckrate_otel.model import Severity, Step, Trajectory
from luckrate_otel.plural import plural
from luckrate_otel.rules import shapes
from luckrate_otel.rules.calls import Calls, parse_calls, tool_list
from luckrate_otel.rules.clauses import Found, Reading, judge
from luckrate_otel.rules.contents import one_or_each_item
from luckrate_otel.rules.finding import call, gap_of
from luckrate_otel.rules.key import Key, Place, block, texts, whole
from luckrate_otel.rules.lens import Lens
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView
from luckrate_otel.telemetry import Value

_WORDS = ("times", "tool", "errors", "then")


@dataclass(frozen=True, slots=True)
class Retries:
    """times: retries allowed after the first failure. tools: empty = every tool. errors: only failures whose kind holds
    one of these texts, in whatever case; empty = all. then: what is expected once the retries are used up."""

    times: int
    tools: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    then: Calls | None = None


def _parse(value: Value, place: Place) -> tuple[Retries, ...]:
    """`2`, `{times: 2, tool: search, errors: [timeout], then: escalate_to_human}`, or a list of those."""
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return tuple(_one(item, place.at(i)) for i, item in enumerate(value))
    return (_one(value, place),)


def _one(value: Value, place: Place) -> Retries:
    if not isinstance(value, Mapping):
        return Retries(whole(0)(value, place))
    read = block(value, place, _WORDS, "a number, or a mapping with times, tool, errors and then")
    if "times" not in read:
        place.problem("times is missing")
    return Retries(
        whole(0)(read["times"], place.at("times")) if "times" in read else 0,
        tool_list(read["tool"], place.at("tool")) if "tool" in read else (),
        tuple(word.lower() for word in texts(read["errors"], place.at("errors"))) if "errors" in read else (),
        parse_calls(read["then"], place.at("then")) if "then" in read else None,
    )


_ONE = shapes.either(
    shapes.COUNT,
    shapes.block(
        {"times": shapes.COUNT, "tool": shapes.TEXTS, "errors": shapes.TEXTS, "then": shapes.ref("calls")}, ("times",)
    ),
)
_SHAPE = shapes.either({"type": "null"}, _ONE, shapes.a_list(_ONE))

MAX_RETRIES: Key[tuple[Retries, ...]] = Key("max_retries", _parse, (), _SHAPE, one_or_each_item)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    limits = spec.get(MAX_RETRIES)
    names = [RULE.id if len(limits) == 1 else f"{RULE.id}[{i}]" for i in range(len(limits))]
    return judge((RULE.id, RULE.severity), list(zip(names, limits, strict=True)), read, trajectory, spec)


def read(limit: Retries, lens: Lens) -> Reading:
    """One break per streak, on its first retry over the limit; failing that, on the last failure that nothing
    expected followed. A streak ends when its call succeeds or fails in another way: what changes is no loop."""
    streaks = _Streaks(limit, lens)
    reading = Reading(activated=True)
    due: dict[int, str] = {}  # last failure of a streak that has used up its retries → tool
    for index, step in enumerate(lens.trajectory.steps):
        if limit.then is not None and due and lens.clears(limit.then, index):
            due.clear()
        if limit.tools and step.tool not in limit.tools:
            continue
        if step.ok or (step.ok is None and not lens.doubting):
            due = {at: tool for at, tool in due.items() if tool != step.tool}
        failures = streaks.add(index)
        if len(failures) > 1:
            due.pop(failures[-2], None)
        if len(failures) == limit.times + 2:
            words = f"{call(lens.trajectory, index)} is retry {limit.times + 1} of a call that fails the same way"
            reading.found.append(Found(index, f"{words}, {limit.times} allowed", tuple(failures[:-1])))
        elif len(failures) == limit.times + 1 and limit.then is not None:
            due[index] = step.tool
    for at in due:
        words = f"{call(lens.trajectory, at)} failed {plural(limit.times + 1, 'time')} and {limit.then} did not follow"
        reading.found.append(Found(at, words, open=True))
    return reading


class _Streaks:
    """Failures of the same call, one after the other, in the same way.

    Trusting, what is not known ends a streak; doubting, it goes on, and all calls of a tool of which some arguments
    are not known are one.
    """

    __slots__ = ("_by_tool", "_lens", "_limit", "_vague")

    def __init__(self, limit: Retries, lens: Lens) -> None:
        self._limit = limit
        self._lens = lens
        self._by_tool: dict[str, dict[str, tuple[str | None, list[int]]]] = {}
        self._vague = {step.tool for step in lens.trajectory.steps if step.args is None}

    def add(self, index: int) -> list[int]:
        """The steps of the streak that this one begins or continues; empty if it does not fail, or not surely."""
        step = self._lens.trajectory.steps[index]
        streaks = self._by_tool.setdefault(step.tool, {})
        vague = step.tool in self._vague and self._lens.doubting
        if step.args is None:
            self._note(index, "args")
            if not vague:
                streaks.clear()
                return []
        key = "" if vague else canonical(step.args)
        kind = _kind(step)
        if not self._fails(index, kind):
            if not vague:
                streaks.pop(key, None)
            return []
        before, failures = streaks.get(key, (kind, []))
        alike = vague or (before == kind and kind is not None) or (self._lens.doubting and None in (before, kind))
        if alike:
            failures.append(index)
        else:
            failures = [index]
        streaks[key] = (kind, failures)
        return failures

    def _fails(self, index: int, kind: str | None) -> bool:
        """Whether the step fails, in a way that the limit is about."""
        step = self._lens.trajectory.steps[index]
        if step.ok is None:
            self._note(index, "ok")
        if not (self._lens.doubting if step.ok is None else not step.ok):
            return False
        if kind is None:
            self._note(index, "result")
            return self._lens.doubting or not self._limit.errors
        return not self._limit.errors or any(word in kind.lower() for word in self._limit.errors)

    def _note(self, index: int, part: str) -> None:
        self._lens.gap = self._lens.gap or gap_of(self._lens.trajectory, index, part)


def _kind(step: Step) -> str | None:
    """What sort of failure: the error's type, or where none is given all that came back. None: not told.

    That a call never returned says that its end was not seen, not that it failed in another way.
    """
    if step.error is not None and not (step.ok is None and step.error == NO_RETURN):
        return step.error.partition("\n")[0].partition(":")[0].strip()
    return None if step.ok is None else step.result


RULE = Rule(
    "max_retries",
    Severity.SOFT,
    (MAX_RETRIES,),
    evaluate,
    mend="let the agent change the call, or escalate, after the failures allowed",
)
