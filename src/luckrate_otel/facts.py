"""What adapters say about telemetry: `Facts` of one span or log record, and a run's facts once it closed.

`None` always means "not captured" or "cannot be told"; an empty text or mapping is a real value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from luckrate_otel.record import record
from luckrate_otel.telemetry import Head, Value, nothing


class Role(StrEnum):
    """What part a span plays in an agent run."""

    AGENT = "agent"
    MODEL = "model"
    TOOL = "tool"
    WRAPPER = "wrapper"


class CloseReason(StrEnum):
    """Why a run was judged when it was."""

    ROOT = "root"
    NO_ROOT = "no_root"
    MEMORY = "memory"
    SHUTDOWN = "shutdown"
    END_OF_INPUT = "end_of_input"


class Gap(StrEnum):
    """Why a rule, or one field of a step, could not be judged."""

    NOT_CAPTURED = "not_captured"
    TRUNCATED = "truncated"
    REDACTED = "redacted"
    TOO_LARGE = "too_large"
    INCOMPLETE = "incomplete"
    HISTORY_MISSING = "history_missing"
    NO_TASK = "no_task"
    ERROR = "error"


# The error of a call that never returned: nobody knows whether it succeeded. It has no result, which is not the same as
# one that was not captured.
NO_RETURN: Final = "no_return"

# Kept of what a failed call said: an error may quote whole pages.
MAX_ERROR_CHARS: Final = 500


@record(frozen=True, slots=True)
class Text:
    """A text part of a message."""

    content: str


@record(frozen=True, slots=True)
class Call:
    """A tool call the model asked for. args None: not captured; the reason is in gap."""

    tool: str
    args: Mapping[str, Value] | None
    call_id: str | None = None
    gap: Gap | None = None


@record(frozen=True, slots=True)
class Response:
    """What a tool call gave back to the model. ok None: the message does not tell."""

    call_id: str | None
    result: str | None
    ok: bool | None = None
    tool: str | None = None


Part = Text | Call | Response


@record(frozen=True, slots=True)
class Message:
    """One chat message.

    role: system, user, assistant or tool; `unknown` where the telemetry does not tell: the user's, if it is the last
    message of a run's first model call. name: the participant's, for an assistant the agent's, where told.
    """

    role: str
    parts: tuple[Part, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A `gen_ai.evaluation.result`, from a log event, a span event or span attributes."""

    name: str
    label: str | None = None
    score: float | None = None
    explanation: str | None = None
    time_ns: int = 0


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as offered to the model (`gen_ai.tool.definitions`). parameters: its JSON Schema, if told."""

    name: str
    parameters: Mapping[str, Value] | None = None


@record(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one span or log record tells about an agent run.

    head: of the span; for a log record the ids of the span it belongs to, with its own time as start and end.
    log: the facts come from a log record. agent: the name of the agent this span *is* (role agent) or was issued by
    (role tool or model), where the telemetry says so reliably.
    tool … error: of a tool call; args_gap and result_gap: why args or result are None.
    inputs, outputs: messages of a model call or agent. system: system texts that stand apart from them.
    task_input, final_output: texts an agent or wrapper span states itself.
    handoff: name of the agent that this span passes control to, where the telemetry says so itself.
    delegate: name of the agent that does the work of this call (an agent as a tool that has no agent span of its own).
    """

    role: Role
    adapter: str
    head: Head
    log: bool = False
    agent: str | None = None
    conversation_id: str | None = None
    case: str | None = None
    tool: str | None = None
    call_id: str | None = None
    args: Mapping[str, Value] | None = None
    args_gap: Gap | None = None
    result: str | None = None
    result_gap: Gap | None = None
    ok: bool | None = None
    error: str | None = None
    inputs: tuple[Message, ...] = ()
    outputs: tuple[Message, ...] = ()
    system: tuple[str, ...] = ()
    task_input: str | None = None
    final_output: str | None = None
    definitions: tuple[ToolDefinition, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    finish_reasons: tuple[str, ...] = ()
    tokens: int | None = None
    handoff: str | None = None
    delegate: str | None = None
    attributes: Mapping[str, Value] = field(default_factory=nothing)


@record(frozen=True, slots=True)
class ClosedRun:
    """The facts of one run, and why it closed.

    facts: ordered by (start, end, span id), each span once, log facts after spans of the same start.
    links: span id → parent id of every span of the run's traces that was seen, whether or not an adapter claimed it.
    root: the span that run-level findings go on; None when the run has no agent, model or tool span of its own.
    complete: the root and all its ancestors were seen; without them what is absent may just not have arrived.
    left: ids of spans that were held and forwarded before this verdict; no finding can be written on them any more.
    """

    run_id: str
    trace_ids: tuple[str, ...]
    facts: tuple[Facts, ...]
    close_reason: CloseReason
    root: Head | None = None
    links: Mapping[str, str] = field(default_factory=nothing)
    attributes: Mapping[str, Value] = field(default_factory=nothing)
    complete: bool = True
    left: frozenset[str] = frozenset()
