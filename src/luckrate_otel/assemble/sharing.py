"""Messages that several model calls repeat are kept once per trace: each call of a run carries the whole history."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from luckrate_otel.assemble.sizes import MESSAGE_BYTES, size_of_facts, size_of_message
from luckrate_otel.facts import Call, Facts, Message, Part, Text, ToolDefinition


class Shared:
    """The messages, system texts and tool definitions of one trace, each kept once.

    Dropped when a run of the trace is judged, so that it keeps nothing alive that its runs do not.
    """

    __slots__ = ("_definitions", "_messages", "_texts")

    def __init__(self) -> None:
        self._messages: dict[Hashable, list[Message]] = {}
        self._definitions: list[tuple[ToolDefinition, ...]] = []
        self._texts: dict[str, str] = {}

    def share(self, facts: Facts) -> tuple[Facts, int]:
        """The same facts with known parts shared, and the bytes they newly take without their payload."""
        inputs, of_inputs = self._share_messages(facts.inputs)
        outputs, of_outputs = self._share_messages(facts.outputs)
        size = size_of_facts(facts, messages=of_inputs + of_outputs)
        system = []
        for text in facts.system:
            known = self._texts.setdefault(text, text)
            size -= len(text) if known is not text else 0
            system.append(known)
        shared = replace(
            facts,
            inputs=inputs,
            outputs=outputs,
            system=tuple(system),
            definitions=self._share_definitions(facts.definitions),
        )
        return shared, size

    def _share_messages(self, messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], int]:
        shared = []
        size = 0
        for message in messages:
            alike = self._messages.setdefault(_likeness(message), [])
            known = next((m for m in alike if m == message), None)
            if known is None:
                if len(alike) < _MAX_ALIKE:
                    alike.append(message)
                size += size_of_message(message) + MESSAGE_BYTES
            shared.append(known or message)
            size += 8
        return tuple(shared), size

    def _share_definitions(self, definitions: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
        if not definitions:
            return definitions
        for known in self._definitions:
            if known == definitions:
                return known
        if len(self._definitions) < _MAX_DEFINITIONS:
            self._definitions.append(definitions)
        return definitions


# Sets of tools offered in one trace: one per agent, in practice. Beyond it they are kept unshared, not lost.
_MAX_DEFINITIONS = 32
# Different messages of one likeness are compared one by one; more than a few are somebody's attack.
_MAX_ALIKE = 8


def has_shareable(facts: Facts) -> bool:
    return bool(facts.inputs or facts.outputs or facts.system or facts.definitions)


def _likeness(message: Message) -> Hashable:
    """Equal for equal messages; arguments are mappings, which have no hash, and count by their number here."""
    return message.role, tuple(map(_likeness_of_part, message.parts))


def _likeness_of_part(part: Part) -> Hashable:
    if isinstance(part, Text):
        return part.content
    if isinstance(part, Call):
        return part.tool, part.call_id, len(part.args or ())
    return part.call_id, part.result
