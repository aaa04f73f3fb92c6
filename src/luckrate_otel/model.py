"""Steps, trajectories and verdicts: what rules look at and what they answer. Plain, frozen data.

`None` always means "not captured" or "cannot be told"; an empty text or mapping is a real value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256

from luckrate_otel.facts import CloseReason, Evaluation, Gap, ToolDefinition
from luckrate_otel.record import record
from luckrate_otel.telemetry import Status, Value, nothing


class Severity(StrEnum):
    HARD = "hard"
    SOFT = "soft"
    WARN = "warn"


class PathState(StrEnum):
    OK = "ok"
    BAD = "bad"
    UNKNOWN = "unknown"


class OutputState(StrEnum):
    OK = "ok"
    NOT_OK = "not_ok"
    UNKNOWN = "unknown"


class OutputSource(StrEnum):
    """Who said whether the output was right, in the order they are asked."""

    EVALUATION = "evaluation"
    ATTRIBUTE = "attribute"
    CHECK = "check"
    STATUS = "status"
    NONE = "none"


class VerdictLabel(StrEnum):
    PASS = "pass"  # noqa: S105 - a verdict, not a password
    LUCKY = "lucky"
    UNVERIFIED = "unverified"
    FAIL = "fail"
    UNKNOWN = "unknown"
    NOT_GRADED = "not_graded"


_CUT_SHORT = frozenset({CloseReason.NO_ROOT, CloseReason.MEMORY, CloseReason.SHUTDOWN})


# ---- steps and trajectories --------------------------------------------------------------------


@record(frozen=True, slots=True)
class Step:
    """One tool call. The nine fields are a public contract; the first six are luckrate 0.3's, in its order.

    args: None when not captured (differs from `{}`); ok: None when it cannot be told;
    error: type or message of a failed call, `no_return` (with ok None) for one that never returned;
    t: milliseconds from the run's start to the call being issued; duration: milliseconds;
    span: hex span id, None when rebuilt from messages or a payload.
    """

    tool: str
    args: Mapping[str, Value] | None = field(default_factory=dict)
    ok: bool | None = True
    result: str | None = ""
    t: float = 0.0
    agent: str = "main"
    error: str | None = None
    duration: float | None = None
    span: str | None = None


@record(frozen=True, slots=True)
class Turn:
    """A user turn. before_step: index of the first step that was issued after it was said."""

    text: str
    before_step: int = 0


@record(frozen=True, slots=True)
class Coverage:
    """What the telemetry carried at all. tools False: nothing in it could show a tool call."""

    tools: bool = True
    args: bool = True
    results: bool = True
    task_input: bool = True
    final_output: bool = True


@record(frozen=True, slots=True)
class History:
    """What earlier traces of the same conversation hold: user texts and finished steps, oldest first.

    missing: the conversation has earlier turns that were not seen.
    """

    turns: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    missing: bool = False


@record(frozen=True, slots=True)
class Trajectory:
    """One run's ordered steps, with everything the rules may look at.

    steps: in issue order. turns: what the user said, each from its moment on; empty = no task captured.
    system: system and developer texts. gaps: (step index, "args" | "result" | "ok") → why it is None;
    (step index, "agent") → why nobody knows whose call it was, its agent being given as `main`.
    duration: milliseconds, None if not known. tokens: input + output of the run, None if not told.
    complete: the run's root and all spans above it were seen.
    root: span id that run-level violations go on, None when rebuilt from a payload.
    call_ids: per step, the provider's tool call id or None. Same length as steps, or empty.
    attributes: attributes of the root span and its resource that specs match on.
    """

    steps: tuple[Step, ...] = ()
    turns: tuple[Turn, ...] = ()
    system: tuple[str, ...] = ()
    final_output: str | None = None
    run_id: str = ""
    trace_ids: tuple[str, ...] = ()
    conversation_id: str | None = None
    adapters: tuple[str, ...] = ()
    agent: str | None = None
    close_reason: CloseReason = CloseReason.END_OF_INPUT
    complete: bool = True
    coverage: Coverage = Coverage()
    gaps: Mapping[tuple[int, str], Gap] = field(default_factory=nothing)
    history: History = History()
    definitions: tuple[ToolDefinition, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    call_ids: tuple[str | None, ...] = ()
    root: str | None = None
    root_status: Status = Status.UNSET
    finish_reasons: tuple[str, ...] = ()
    start_ns: int = 0
    duration: float | None = None
    tokens: int | None = None
    case: str | None = None
    has_agent: bool = True
    attributes: Mapping[str, Value] = field(default_factory=nothing)

    @property
    def cut_short(self) -> bool:
        """More of the run may have existed than was seen, so that what is absent proves nothing."""
        return not self.complete or self.close_reason in _CUT_SHORT

    @property
    def task_input(self) -> str | None:
        """The user's first words, None when not captured."""
        return self.turns[0].text if self.turns else None


# ---- verdicts ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Evidence:
    """A step that a finding leans on."""

    step: int
    span: str | None = None


@record(frozen=True, slots=True)
class Violation:
    """One rule broken, at one step or (step None) by the run as a whole.

    clause: the part of the spec, e.g. `before[1]`. argument: path of the argument, e.g. `recipients[0]`.
    sources: where the value came from, readable, never the value itself. evidence: the steps behind it.
    content: what the clause says, wherever in the spec it stands; "" where its name says all. Known once graded.
    """

    rule: str
    clause: str
    severity: Severity
    message: str
    step: int | None = None
    tool: str | None = None
    argument: str | None = None
    sources: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    span: str | None = None
    content: str = ""

    @property
    def fingerprint(self) -> str:
        """Stable id of "this rule, what this clause says, this tool, this argument", for baselines; 16 hex digits."""
        key = "\x1f".join((self.rule, self.content or self.clause, self.tool or "", self.argument or ""))
        return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class NotEvaluated:
    """A rule that could not be judged, and why: neither passed nor violated.

    severity: of the rule in the spec that graded the run, so that the gate knows what went unjudged.
    """

    rule: str
    reason: Gap
    severity: Severity = field(default=Severity.WARN, compare=False)


@record(frozen=True, slots=True)
class Verdict:
    """What a spec found in one run.

    reason: why verdict is not_graded (`no_spec`, `no_agent`, `no_tools`, `error`), else None.
    vacuous: rules that never had a chance to fire. output_source: who said what the output is.
    """

    verdict: VerdictLabel
    path: PathState
    output: OutputState
    output_source: OutputSource
    violations: tuple[Violation, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    vacuous: tuple[str, ...] = ()
    spec: str | None = None
    spec_version: str | None = None
    case: str = ""
    reason: str | None = None
