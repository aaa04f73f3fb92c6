"""Messages that several model calls repeat are kept once per trace: each call of a run carries the whole history."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from luckrate_otel.assemble.sizes import MESSAGE_BYTES, size_of_facts, size_of_message, size_of_value
from luckrate_otel.facts import Call, Facts, Message, Part, Text, ToolDefinition
from luckrate_otel.record import replace
from luckrate_otel.telemetry import Value


class Shared:
    """The messages, system texts and tool definitions of one trace, each kept once.

    Dropped when a run of the trace is judged, so that it keeps nothing alive that its runs do not.
    """

    __slots__ = ("_definitions", "_messages", "_texts")

    def __init__(self) -> None:
        self._messages: dict[Hashable, Message | list[Message]] = {}  # a list only where several are alike
        self._definitions: list[tuple[ToolDefinition, ...]] = []
        self._texts: dict[str, str] = {}

    def share(self, facts: Facts) -> tuple[Facts, int]:
        """The same facts with known parts shared, and the bytes they newly take without their payload."""
        if not has_shareable(facts):
            return self._share_arguments(facts)
        inputs, of_inputs = self._share_messages(facts.inputs)
        outputs, of_outputs = self._share_messages(facts.outputs)
        size = size_of_facts(facts, messages=of_inputs + of_outputs)
        system = facts.system
        if not (system or facts.definitions):
            if inputs is facts.inputs and outputs is facts.outputs:
                return facts, size
            return replace(facts, inputs=inputs, outputs=outputs), size
        if system:
            known = tuple([self._texts.setdefault(text, text) for text in system])
            size -= sum(len(text) for text, own in zip(known, system, strict=True) if text is not own)
            system = known
        definitions = self._share_definitions(facts.definitions)
        return replace(facts, inputs=inputs, outputs=outputs, system=system, definitions=definitions), size

    def _share_arguments(self, facts: Facts) -> tuple[Facts, int]:
        """A call's arguments are those that the model asked for, whose span ended and mostly came before the tool's."""
        size = size_of_facts(facts)
        if not facts.args:
            return facts, size
        asked = self._messages.get((facts.tool, facts.call_id, len(facts.args)))
        if isinstance(asked, Message):
            for part in asked.parts:
                if isinstance(part, Call) and part.args is not None and _are_alike(part.args, facts.args):
                    return replace(facts, args=part.args), size - size_of_value(facts.args)
        return facts, size

    def _share_messages(self, messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], int]:
        """The same tuple if none of its messages is known."""
        if not messages:
            return messages, 0
        shared = []
        size = 8 * len(messages)
        news = 0
        for message in messages:
            known = self._known(message)
            if known is None:
                size += size_of_message(message) + MESSAGE_BYTES
                news += 1
            shared.append(known or message)
        return messages if news == len(messages) else tuple(shared), size

    def _known(self, message: Message) -> Message | None:
        """An equal message of this trace; None if this is the first one, which is then remembered."""
        likeness = _likeness(message)
        alike = self._messages.setdefault(likeness, message)
        if alike is message:
            return None
        if isinstance(alike, Message):
            if isinstance(likeness, str):  # most: both are this text; the rest is compared at a third of the price
                if alike.role == message.role and alike.name == message.name:
                    return alike
            elif alike == message:
                return alike
            self._messages[likeness] = [alike, message]
            return None
        known = next((m for m in alike if m == message), None)
        if known is None and len(alike) < _MAX_ALIKE:
            alike.append(message)
        return known

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


def _are_alike(asked: Mapping[str, Value], ran: Mapping[str, Value]) -> bool:
    """Texts by themselves, all else as it reads: 1, 1.0 and True are equal values but different arguments."""
    if len(asked) == 1:  # most calls: a third of the price
        ((key, value),), ((own_key, own_value),) = asked.items(), ran.items()
        if isinstance(value, str) and isinstance(own_value, str):
            return key == own_key and value == own_value
    return repr(asked) == repr(ran)


def _likeness(message: Message) -> Hashable:
    """Equal for equal messages; arguments are mappings, which have no hash, and count by their number here."""
    parts = message.parts
    if len(parts) == 1:
        only = parts[0]
        return only.content if isinstance(only, Text) else _likeness_of_part(only)
    return tuple(map(_likeness_of_part, message.parts))


def _likeness_of_part(part: Part) -> Hashable:
    if isinstance(part, Text):
        return part.content
    if isinstance(part, Call):
        return part.tool, part.call_id, len(part.args or ())
    return part.call_id, part.result
