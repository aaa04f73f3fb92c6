"""Judging the clauses of an order rule: each by its automaton, with what is certain told from what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from luckrate_otel.facts import Gap
from luckrate_otel.model import Severity, Trajectory, Violation
from luckrate_otel.rules.finding import at_step, concluded, on_run
from luckrate_otel.rules.lens import Lens
from luckrate_otel.rules.order import order_of
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.spec_view import SpecView

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Found:
    """One break of a clause. step None: of the run as a whole, tool then says which was meant.

    open: nothing that happened breaks it, but something that did not; in a run cut short that may still have come.
    """

    step: int | None
    message: str
    evidence: tuple[int, ...] = ()
    open: bool = False
    tool: str | None = None


@dataclass(slots=True)
class Reading:
    """What an automaton makes of a run. activated: the clause had something to ask."""

    found: list[Found] = field(default_factory=list)
    activated: bool = False


Automaton = Callable[[C, Lens], Reading]


def judge(
    rule: tuple[str, Severity],
    clauses: Iterable[tuple[str, C]],
    automaton: Automaton[C],
    trajectory: Trajectory,
    spec: SpecView,
    *,
    order: str = "overlap",
) -> Outcome:
    """rule: id and severity. clauses: (`leads_to[0]`, clause). order: the rule's own, unless the spec writes one."""
    known = order_of(trajectory, spec.order if spec.writes_order else order)
    violations: list[Violation] = []
    gaps: list[Gap] = []
    activated = False
    for name, clause in clauses:
        lens = Lens(trajectory, known)
        reading = automaton(clause, lens)
        certain = [found for found in reading.found if not (found.open and trajectory.cut_short)]
        activated |= reading.activated
        if certain:
            violations += (_violation(trajectory, rule, name, found) for found in certain)
        elif reading.found:
            gaps.append(Gap.INCOMPLETE)
        elif lens.gap is not None:
            doubt = automaton(clause, Lens(trajectory, known, doubting=True))
            activated |= doubt.activated
            gaps += [lens.gap] if doubt.found else []
    return concluded(violations, gap=next(iter(gaps), None), activated=activated)


def _violation(trajectory: Trajectory, rule: tuple[str, Severity], clause: str, found: Found) -> Violation:
    name, severity = rule
    if found.step is None:
        return on_run(
            trajectory,
            rule=name,
            clause=clause,
            severity=severity,
            message=found.message,
            tool=found.tool,
            evidence=found.evidence,
        )
    return at_step(
        trajectory,
        found.step,
        rule=name,
        clause=clause,
        severity=severity,
        message=found.message,
        evidence=found.evidence,
    )


def numbered(key: str, clauses: Iterable[C]) -> list[tuple[str, C]]:
    """`leads_to[0]`, `leads_to[1]` … with their clauses."""
    return [(f"{key}[{i}]", clause) for i, clause in enumerate(clauses)]
