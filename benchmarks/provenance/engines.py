"""The two ways of judging that are compared: this package's words, and luckrate 0.3.0's substrings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import luckrate  # type: ignore[import-untyped]  # the baseline ships no types
from luckrate.check import ID_RE, LITERALS  # type: ignore[import-untyped]

from benchmarks.provenance.corpus import Recorded
from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.provenance import Policy
from luckrate_otel.provenance.tokens import TokenEngine, trace


@dataclass(frozen=True, slots=True)
class Findings:
    """Steps with a finding, per rule. soft: taint of the weaker forms only."""

    hard: frozenset[int]
    soft: frozenset[int]
    ground: frozenset[int]


class Judge(Protocol):
    name: str

    def judge(self, trajectory: Trajectory, policy: Policy) -> Findings: ...

    def inspected(self, trajectory: Trajectory) -> int: ...


class Tokens:
    name = "tokens"

    def judge(self, trajectory: Trajectory, policy: Policy) -> Findings:
        engine = TokenEngine()
        ground = engine.ground(trajectory, policy).violations
        taint = engine.taint(trajectory, policy).violations
        hard = frozenset(v.step for v in taint if v.severity is Severity.HARD and v.step is not None)
        soft = frozenset(v.step for v in taint if v.step is not None) - hard
        return Findings(hard, soft, frozenset(v.step for v in ground if v.step is not None))

    def inspected(self, trajectory: Trajectory) -> int:
        """Leaves that were traced; one whose JSON text was opened counts once."""
        traced = {(leaf.step, leaf.path) for leaf in trace(trajectory)}
        opened = {(step, path[:end]) for step, path in traced for end in range(len(path)) if path[end] in ".["}
        given = ((n, _shown(path)) for n, step in enumerate(trajectory.steps) for path, _ in leaves(step.args or {}))
        return sum(leaf in traced or leaf in opened for leaf in given)


class Substrings:
    """The public package, asked through `check`. Each call gets a name of its own, so that findings tell the step."""

    name = "luckrate 0.3.0"
    _STEP = re.compile(r"#(\d+)\.")

    def judge(self, trajectory: Trajectory, policy: Policy) -> Findings:
        steps = [
            luckrate.Step(tool=f"{s.tool}#{n}", args=dict(s.args or {}), ok=bool(s.ok), result=s.result or "")
            for n, s in enumerate(trajectory.steps)
        ]
        named = {step.tool: original.tool for step, original in zip(steps, trajectory.steps, strict=True)}
        spec = {
            "untrusted": [name for name, tool in named.items() if tool in policy.untrusted],
            "privileged": [name for name, tool in named.items() if tool in policy.privileged],
            "secrets": False,
        }
        found = luckrate.check(steps, spec, "\n".join(turn.text for turn in trajectory.turns))
        return Findings(
            frozenset(self._steps(line for line in found if "carries data from untrusted" in line)),
            frozenset(),
            frozenset(self._steps(line for line in found if line.startswith("warn: ungrounded"))),
        )

    def inspected(self, trajectory: Trajectory) -> int:
        values = (str(value) for step in trajectory.steps for value in (step.args or {}).values())
        return sum(value.lower() not in LITERALS and ID_RE.match(value) is not None for value in values)

    def _steps(self, lines: Iterator[str]) -> Iterator[int]:
        return (int(match[1]) for line in lines if (match := self._STEP.search(line)))


def _shown(path: tuple[Any, ...]) -> str:
    """A path as findings write it: `to[0].email`; a key that is no plain name is masked."""
    text = ""
    for key in path:
        plain = isinstance(key, str) and re.fullmatch(r"[A-Za-z_][\w-]{0,59}", key)
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if plain else "[*]"
    return text.removeprefix(".")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every leaf of arguments, counted without either engine."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, (list, tuple)):
        for key, item in enumerate(value):
            yield from leaves(item, (*path, key))
    else:
        yield path, value


def all_leaves(run: Recorded) -> int:
    return sum(1 for step in run.trajectory.steps for _ in leaves(step.args or {}))
