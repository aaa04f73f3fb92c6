"""What the assembler tells its shell to do, as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from luckrate_otel.facts import ClosedRun, Facts
from luckrate_otel.record import record


@record(frozen=True, slots=True)
class Held:
    """One held span, as it is handed out.

    payload: what add() was given. size: its bytes. compacted: facts lacks args, result and messages; so in what
    `restore` is called with, and in an effect only if restoring failed. late: it came after the verdict on its run
    (`luckrate.late`).
    """

    facts: Facts
    payload: object
    size: int
    compacted: bool = False
    late: bool = False


class ReleaseReason(StrEnum):
    """Why spans leave without the verdict of their run."""

    RELEASE_AFTER = "release_after"  # the run goes on
    NO_RUN = "no_run"  # there is nothing to judge: wrappers or chains without agent and tool
    DUPLICATE = "duplicate"  # a retry of a span that is known already
    LATE = "late"  # the facts of its run are no longer kept
    ERROR = "error"  # assembling the trace failed; its spans must not suffer


@dataclass(frozen=True, slots=True)
class Release:
    """Forward these spans now. error: with reason error, the kind of exception; its text might quote a prompt."""

    trace_id: str
    reason: ReleaseReason
    held: tuple[Held, ...]
    error: str = ""


@record(frozen=True, slots=True)
class Closed:
    """Judge this run, then forward its held spans, annotated.

    revision: 1 for the first verdict; from 2 on it was judged before, and some of `held` may be late.
    supersedes: run ids of the earlier verdicts that this one replaces: the run's own, or those of inner runs that an
    outer agent took in. Empty for revision 1.
    """

    run: ClosedRun
    held: tuple[Held, ...]
    revision: int = 1
    supersedes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Final:
    """The last verdict on this run stands: nothing late can change it any more."""

    run_id: str
    revision: int


Effect = Release | Closed | Final
Compact = Callable[[Facts], Facts]
Restore = Callable[[Held], Facts]
