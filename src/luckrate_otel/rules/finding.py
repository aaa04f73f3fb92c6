"""Making violations and gaps: what every rule says in the same way."""

from __future__ import annotations

import re
from collections.abc import Iterable

from luckrate_otel.facts import Gap
from luckrate_otel.model import Evidence, Severity, Trajectory, Violation
from luckrate_otel.rules.outcome import SATISFIED, VACUOUS, Outcome

# Tool names come from a model: a message is one short line whatever they hold.
MAX_NAME_CHARS = 80

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def at_step(
    trajectory: Trajectory,
    index: int,
    *,
    rule: str,
    clause: str,
    severity: Severity,
    message: str,
    argument: str | None = None,
    sources: tuple[str, ...] = (),
    evidence: Iterable[int] = (),
    content: str = "",
) -> Violation:
    """A violation at one step.

    evidence: the indexes of the other steps behind it. content: what tells it from others of its clause, tool and
    argument, see Violation.
    """
    step = trajectory.steps[index]
    return Violation(
        rule=rule,
        clause=clause,
        severity=severity,
        message=f"{clause}: {message}",
        step=index,
        tool=step.tool,
        argument=argument,
        sources=sources,
        evidence=tuple(Evidence(i, trajectory.steps[i].span) for i in evidence),
        span=step.span,
        content=content,
    )


def on_run(
    trajectory: Trajectory,
    *,
    rule: str,
    clause: str,
    severity: Severity,
    message: str,
    tool: str | None = None,
    evidence: Iterable[int] = (),
) -> Violation:
    """A violation of the run as a whole."""
    return Violation(
        rule=rule,
        clause=clause,
        severity=severity,
        message=f"{clause}: {message}",
        tool=tool,
        evidence=tuple(Evidence(i, trajectory.steps[i].span) for i in evidence),
        span=trajectory.root,
    )


def named(name: str) -> str:
    """A tool or argument name fit for a message: printable, one line, of bounded length."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name[: MAX_NAME_CHARS + 1])
    return shown if len(shown) <= MAX_NAME_CHARS else shown[:MAX_NAME_CHARS] + "…"


def argument_path(key: str) -> str:
    """A top-level argument as findings name it. A key that is no plain name may itself be data, and is masked."""
    return key if _PLAIN_NAME.fullmatch(key) else "[*]"


def inner_path(parts: Iterable[str | int]) -> str:
    """`lines[0].sku`, with keys that may be data masked likewise."""
    text = ""
    for part in parts:
        shown = f"[{part}]" if isinstance(part, int) else argument_path(part)
        text += shown if shown.startswith("[") or not text else f".{shown}"
    return text


def argument_of(tool: str, path: str) -> str:
    """`issue_refund.order_id`, for messages."""
    return f"{named(tool)}{path}" if path.startswith("[") else f"{named(tool)}.{path}"


def call(trajectory: Trajectory, index: int) -> str:
    """`issue_refund (step 2)`."""
    return f"{named(trajectory.steps[index].tool)} (step {index})"


def positions(trajectory: Trajectory) -> dict[str, list[int]]:
    """Tool → indexes of its calls, both in order of appearance."""
    found: dict[str, list[int]] = {}
    for index, step in enumerate(trajectory.steps):
        found.setdefault(step.tool, []).append(index)
    return found


def gap_of(trajectory: Trajectory, index: int, part: str) -> Gap:
    """Why `args`, `result` or `ok` of a step is None, or its agent not known."""
    return trajectory.gaps.get((index, part), Gap.NOT_CAPTURED)


def agent_of(trajectory: Trajectory, index: int) -> str | None:
    """Which agent made a call; None where that cannot be told."""
    return None if (index, "agent") in trajectory.gaps else trajectory.steps[index].agent


def concluded(violations: Iterable[Violation], *, gap: Gap | None = None, activated: bool = True) -> Outcome:
    """The outcome of a rule that has looked at everything."""
    found = tuple(violations)
    if found or gap is not None:
        return Outcome(found, gap)
    return SATISFIED if activated else VACUOUS
