"""Agent runs that were stored as something else than spans: executions, message lists, events.

Plain parsed JSON or live objects in, `Trajectory` out, the same values that spans give. No framework is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from luckrate_otel.errors import InputError
from luckrate_otel.model import Trajectory
from luckrate_otel.payloads import crewai, langchain, messages, n8n
from luckrate_otel.payloads.crewai import from_crewai
from luckrate_otel.payloads.langchain import from_langchain
from luckrate_otel.payloads.messages import from_messages
from luckrate_otel.payloads.n8n.join import merge_with_spans, same_run

__all__ = [
    "READERS",
    "Reader",
    "from_crewai",
    "from_langchain",
    "from_messages",
    "from_n8n",
    "merge_with_spans",
    "recognise",
    "same_run",
]


@dataclass(frozen=True, slots=True)
class Reader:
    """One payload form. read: parsed JSON → its runs, None when it is not of this form."""

    name: str
    read: Callable[[Any], tuple[Trajectory, ...] | None]


# Asked in this order; the forms of messages overlap, and LangChain's are the more particular ones.
READERS = (
    Reader(n8n.ADAPTER, n8n.read),
    Reader(crewai.ADAPTER, crewai.read),
    Reader(langchain.ADAPTER, langchain.read),
    Reader(messages.ADAPTER, messages.read),
)


def recognise(value: Any) -> tuple[Trajectory, ...] | None:
    """The runs in a parsed payload, None when no reader knows its form.

    value: one object or an array. An array of conversations gives one trajectory each. A payload that is known and
    holds no agent run (a workflow without agent) gives an empty tuple. Never raises, whatever the value.
    """
    for reader in READERS:
        found = reader.read(value)
        if found is not None:
            return found
    if isinstance(value, list) and value and not any(isinstance(each, str) for each in value):
        parts = [_one(each) for each in value]
        if all(part is not None for part in parts):
            return tuple(trajectory for part in parts for trajectory in part or ())
    return None


def _one(value: Any) -> tuple[Trajectory, ...] | None:
    """The runs of one member of an array; arrays nest no deeper than this."""
    return next((found for reader in READERS if (found := reader.read(value)) is not None), None)


def from_n8n(execution: Any) -> tuple[Trajectory, ...]:
    """The runs in n8n executions: API or flatted form, one or an array with sub-executions.

    InputError: it is none.
    """
    found = n8n.read(execution)
    if found is None:
        raise InputError("not an n8n execution: no data.resultData, neither plain nor flatted")
    return found
