"""The proposed spec as text with comments, and how often it would have been wrong on runs it was not made from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from luckrate_otel.check import check
from luckrate_otel.infer.counted import (
    MIN_SUPPORT,
    Argument,
    Counted,
    arguments,
    before,
    budget,
    once,
    repeats,
    required,
    tools,
)
from luckrate_otel.infer.orders import about_the_same, either, loose
from luckrate_otel.infer.repeated import once_each
from luckrate_otel.luck import wilson
from luckrate_otel.model import Trajectory
from luckrate_otel.plural import plural
from luckrate_otel.provenance.tokens import trace
from luckrate_otel.spec import Spec
from luckrate_otel.telemetry import Value

# Every fifth run is held out.
FOLD = 5


@dataclass(frozen=True, slots=True)
class Proposal:
    """text: YAML, each line with its support as a comment. learnt, held_out: numbers of runs.

    alarms: rule → held-out runs in which it found something; flagged: runs in which any did.
    """

    text: str
    learnt: int
    held_out: int
    flagged: int
    alarms: Mapping[str, int]


def infer(runs: Sequence[Trajectory], name: str = "inferred") -> Proposal:
    """Propose a spec from runs that are known to be good. Runs of which no call could be seen say nothing."""
    useful = [run for run in runs if run.coverage.tools]
    held_out = useful[FOLD - 1 :: FOLD]
    learnt = [run for i, run in enumerate(useful) if i % FOLD != FOLD - 1]
    mapping, lines = _written(learnt, name)
    spec = Spec.from_mapping(mapping)
    found = [{violation.rule for violation in check(run, spec).violations} for run in held_out]
    alarms = Counter(rule for rules in found for rule in rules)
    flagged = sum(map(bool, found))
    text = "\n".join([*_heading(len(learnt), len(held_out), flagged, alarms), *lines, ""])
    return Proposal(text, len(learnt), len(held_out), flagged, dict(alarms))


def proposed(runs: Sequence[Trajectory], name: str = "inferred") -> Spec:
    """The proposal itself, made from all of the runs."""
    return Spec.from_mapping(_written(runs, name)[0])


def _heading(learnt: int, held_out: int, flagged: int, alarms: Mapping[str, int]) -> Iterator[str]:
    good = plural(learnt, "known-good run")
    yield f"# Proposed from {good}. Each line tells how often it held; strike what is chance."
    interval = wilson(flagged, held_out)
    if interval is None:
        yield "# Too few runs to hold some out: how often it would raise a false alarm is not known."
        return
    rules = ", ".join(f"{rule} {count}" for rule, count in sorted(alarms.items()))
    yield (
        f"# False alarms on {plural(held_out, 'run')} held out: {flagged} ({flagged / held_out:.0%}, 95 % interval "
        f"{interval[0]:.0%} to {interval[1]:.0%}){f': {rules}' if rules else ''}."
    )


def _written(runs: Sequence[Trajectory], name: str) -> tuple[dict[str, Value], list[str]]:
    """The spec as a mapping, and its lines as YAML."""
    mapping: dict[str, Value] = {"name": name}
    lines = [f"name: {_flow(name)}"]
    for key, noun, found in _lists(runs):
        if found:
            lines += [f"{key}:"] if key not in mapping else []
            lines += [f"  - {_flow(one.value)}  # {_support(one, noun)}" for one in found]
            mapping[key] = [*mapping.get(key, ()), *(one.value for one in found)]
    repeated = len(runs) < MIN_SUPPORT or any(repeats(run) for run in runs)
    limits = _limits(runs, repeated=repeated)
    if limits:
        mapping["max_calls"] = {tool: limit for tool, (limit, _) in limits.items()}
        lines += ["max_calls:", *(f"  {_flow(t)}: {_flow(limit)}  # {words}" for t, (limit, words) in limits.items())]
    for key, unit, amounts in (
        ("max_steps", "", [float(len(run.steps)) for run in runs]),
        ("max_duration", "s", [None if run.duration is None else run.duration / 1000 for run in runs]),
        ("max_tokens", "", [run.tokens for run in runs]),
    ):
        found_budget = budget(amounts)
        if found_budget is not None:
            mapping[key] = f"{found_budget.value}{unit}" if unit else found_budget.value
            lines.append(f"{key}: {mapping[key]}  # p95: {_support(found_budget, 'run')}, {found_budget.note}")
    if not repeated:
        mapping["no_repeat"] = True
        lines.append(f"no_repeat: true  # {len(runs)} of {plural(len(runs), 'run')}")
    by_tool = {tool: found for tool, found in arguments(runs, trace).items() if found}
    if by_tool:
        mapping["args"] = {tool: _schema(found) for tool, found in by_tool.items()}
        lines.append("args:")
        for tool, found_arguments in by_tool.items():
            lines += _argument_lines(tool, found_arguments)
    return mapping, lines


def _lists(runs: Sequence[Trajectory]) -> Iterator[tuple[str, str, list[Counted]]]:
    """Key, what its support counts, and the clauses; what one says more exactly is not said twice."""
    same, choices = about_the_same(runs), either(runs)
    said = {(one.value["first"], one.value["then"]) for one in same} | loose(choices)
    yield "tools", "run", tools(runs)
    yield "required", "run", required(runs)
    yield "before", "run", [one for one in before(runs) if tuple(one.value) not in said]
    yield "before", "call", same
    yield "any_of", "run", choices


def _limits(runs: Sequence[Trajectory], *, repeated: bool) -> dict[str, tuple[Value, str]]:
    """Tool → its limit, and how often it held. repeated: some run repeats a call, so that no_repeat cannot say it."""
    found: dict[str, tuple[Value, str]] = {}
    if repeated:
        found = {tool: (one.value, f"p95: {_support(one, 'run')}, {one.note}") for tool, one in once_each(runs)}
    found |= {one.value: (1, f"never more in {plural(one.support, 'run')}") for one in once(runs)}
    return dict(sorted(found.items()))


def _schema(found: Sequence[Argument]) -> dict[str, Value]:
    schema: dict[str, Value] = {"properties": {one.name: _property(one) for one in found}}
    always = [one.name for one in found if one.uses == one.calls]
    if always:
        schema["required"] = always
    sources = {one.name: list(one.sources) for one in found if one.sources}
    if sources:
        schema["from"] = sources
    return schema


def _property(one: Argument) -> dict[str, Value]:
    if one.options:
        return {"enum": list(one.options)}
    return {"type": one.types[0] if len(one.types) == 1 else list(one.types)}


def _argument_lines(tool: str, found: Sequence[Argument]) -> Iterator[str]:
    schema = _schema(found)
    yield f"  {_flow(tool)}:  # {plural(found[0].calls, 'call')}"
    yield "    properties:"
    for one in found:
        yield f"      {_flow(one.name)}: {_flow(_property(one))}  # given in {one.uses} of {plural(one.calls, 'call')}"
    if "required" in schema:
        yield f"    required: {_flow(schema['required'])}  # given in every call"
    if "from" in schema:
        yield "    from:"
        for one in found:
            if one.sources:
                yield f"      {_flow(one.name)}: {_flow(list(one.sources))}  # seen there before every call"


def _support(one: Counted, noun: str) -> str:
    return f"{one.support} of {plural(one.of, noun)}"


def _flow(value: Value) -> str:
    """JSON is YAML too, and needs no thought about what must be quoted."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)
