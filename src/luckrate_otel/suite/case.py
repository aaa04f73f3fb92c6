"""Cases: read once, before anything runs, so that a bad suite costs no run."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from luckrate_otel.check import check
from luckrate_otel.errors import SpecError
from luckrate_otel.known import unknown_keys
from luckrate_otel.model import (
    OutputSource,
    OutputState,
    PathState,
    Severity,
    Step,
    Trajectory,
    Turn,
    Verdict,
    VerdictLabel,
    Violation,
)
from luckrate_otel.spec import Spec

Outcome = tuple[Trajectory | Sequence[Step], Any]
Runner = Callable[[Any], Outcome | Awaitable[Outcome]]

# The text of an exception can be a whole response body.
MAX_ERROR_CHARS = 300

_KEYS = ("name", "input", "spec", "expect")


@dataclass(frozen=True, slots=True)
class Case:
    """One task of a suite. expect: output → whether it is right; None leaves it to the spec's `output:`."""

    name: str
    input: Any
    spec: Spec
    expect: Callable[[Any], object] | None = None

    @property
    def turns(self) -> tuple[Turn, ...]:
        """What the user said: the input, where it is a text or a list of texts and turns; else the input as JSON."""
        if isinstance(self.input, str):
            return (Turn(self.input),)
        if isinstance(self.input, list | tuple) and all(isinstance(item, str | Turn) for item in self.input):
            return tuple(item if isinstance(item, Turn) else Turn(item) for item in self.input)
        return (Turn(_text(self.input)),)

    @property
    def fingerprint(self) -> str:
        """Changes when the input or the spec does: then earlier runs say nothing of this case. 16 hex digits."""
        return sha256(f"{_text(self.input)}\x1f{self.spec.version}".encode()).hexdigest()[:16]


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, sort_keys=True, default=str)


def read_cases(cases: Iterable[Mapping[str, Any]]) -> tuple[Case, ...]:
    """Raises ValueError that names the case and what is wrong with it (SpecError where that is its spec)."""
    read = tuple(_read(case, number) for number, case in enumerate(cases))
    seen: set[str] = set()
    for case in read:
        if case.name in seen:
            raise ValueError(f"two cases are called {case.name!r}; results are kept by name")
        seen.add(case.name)
    return read


def _read(case: Mapping[str, Any], number: int) -> Case:
    for key in ("name", "input"):
        if key not in case:
            raise ValueError(f"cases[{number}]: {key} is missing")
    for key, message in unknown_keys(map(str, case), _KEYS):
        raise ValueError(f"cases[{number}]: {key}: {message}")
    spec = case.get("spec", {})
    try:
        parsed = spec if isinstance(spec, Spec) else Spec.from_mapping(spec)
    except SpecError as error:
        raise SpecError(error.problems, f"case {case['name']!r}") from None
    return Case(str(case["name"]), case["input"], parsed, case.get("expect"))


# ---- grading -----------------------------------------------------------------------------------


def grade(case: Case, run: int, outcome: Outcome) -> tuple[Trajectory, Verdict]:
    """Grade what the runner gave back. Raises whatever `expect` raises, or an unfit outcome causes."""
    steps, output = outcome
    trajectory = steps if isinstance(steps, Trajectory) else Trajectory(steps=tuple(steps))
    trajectory = replace(
        trajectory,
        case=case.name,
        run_id=trajectory.run_id or f"{case.name}#{run}",
        turns=trajectory.turns or case.turns,
        final_output=output if isinstance(output, str) else trajectory.final_output,
    )
    right = None if case.expect is None else bool(case.expect(output))
    return trajectory, check(trajectory, case.spec, output_ok=right)


def failed(case: Case, error: BaseException) -> Verdict:
    """The verdict on a run that raised: a suite that did not finish cannot certify anything."""
    words = f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
    words = words if len(words) <= MAX_ERROR_CHARS else f"{words[:MAX_ERROR_CHARS]}…"
    return Verdict(
        verdict=VerdictLabel.FAIL,
        path=PathState.BAD,
        output=OutputState.NOT_OK,
        output_source=OutputSource.CHECK,
        violations=(Violation("run_failed", "run_failed", Severity.HARD, f"run_failed: {words}"),),
        spec=case.spec.name,
        spec_version=case.spec.version,
        case=case.name,
    )
