"""Where the past of a conversation ends in what a model was given, and the present turn begins."""

from __future__ import annotations

from luckrate_otel.facts import Message, Text


def split_history(inputs: tuple[Message, ...]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Input of a model call, cut where the present turn begins: at the last block of user messages with a text."""
    at = len(inputs)
    while at > 0 and not _is_users(inputs[at - 1]):
        at -= 1
    while at > 0 and _is_users(inputs[at - 1]):
        at -= 1
    return inputs[:at], inputs[at:]


def _is_users(message: Message) -> bool:
    if message.role not in ("user", "unknown"):
        return False
    for part in message.parts:  # noqa: SIM110 - a third of the price of any(), several times per run
        if isinstance(part, Text):
            return True
    return False
