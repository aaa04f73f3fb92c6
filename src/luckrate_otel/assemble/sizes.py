"""How many bytes of memory facts take: an estimate, as Python objects have no exact size worth its cost.

Measured with tracemalloc on CPython 3.11 (tests/assemble/test_memory.py): an entry with the facts of a small tool span
takes about 0.8 KiB beside its payload; texts take their length plus a header.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luckrate_otel.facts import Call, Facts, Message, Part, Text

ENTRY_BYTES = 800  # Facts, Head, ids, times, and the places in the indexes
TRACE_BYTES = 900  # its object and the places in the indexes of traces; charged with its first entry
SPENT_BYTES = 1300  # what is left of a run whose facts were given up, its trace included
LINK_BYTES = 300  # two ids, a time, two places in indexes
MESSAGE_BYTES = 300  # a message's place in the index that shares it
RUN_BYTES = 400  # what is remembered of a judged run beside its facts
_OBJECT_BYTES = 60  # header of a text or a small container
_DEPTH = 8  # deeper values are counted as one object; decoding bounds depth, so this is rare


def size_of_facts(facts: Facts, *, messages: int | None = None) -> int:
    """Bytes of an entry without its payload. messages: bytes of its messages, if counted already."""
    if messages is None:
        messages = sum(map(size_of_message, facts.inputs)) + sum(map(size_of_message, facts.outputs))
    size = ENTRY_BYTES + messages
    # One by one, as to loop over them takes twice as long, for every span.
    if facts.result:
        size += _OBJECT_BYTES + len(facts.result)
    if facts.error:
        size += _OBJECT_BYTES + len(facts.error)
    if facts.task_input:
        size += _OBJECT_BYTES + len(facts.task_input)
    if facts.final_output:
        size += _OBJECT_BYTES + len(facts.final_output)
    if facts.case:
        size += _OBJECT_BYTES + len(facts.case)
    for text in facts.system:
        size += _OBJECT_BYTES + len(text) if text else 0
    if facts.args:
        size += size_of_value(facts.args)
    if facts.attributes:
        size += size_of_value(facts.attributes)
    if facts.evaluations:
        size += sum(len(e.explanation or "") + 4 * _OBJECT_BYTES for e in facts.evaluations)
    return size


def size_of_message(message: Message) -> int:
    return _OBJECT_BYTES * 2 + sum(map(_size_of_part, message.parts))


def _size_of_part(part: Part) -> int:
    if isinstance(part, Text):
        return _OBJECT_BYTES * 2 + len(part.content)
    if isinstance(part, Call):
        return _OBJECT_BYTES * 3 + len(part.tool) + size_of_value(part.args)
    return _OBJECT_BYTES * 3 + len(part.result or "")


def size_of_value(value: Any, depth: int = 0) -> int:
    """Asked of every attribute: decoded values are str, dict, tuple and list, tested before their abstract kinds."""
    if isinstance(value, (str, bytes)):
        return _OBJECT_BYTES + len(value)
    if depth < _DEPTH:
        if isinstance(value, (dict, Mapping)):
            size = _OBJECT_BYTES
            for key, item in value.items():
                of_item = _OBJECT_BYTES + len(item) if isinstance(item, str) else size_of_value(item, depth + 1)
                size += len(str(key)) + 100 + of_item
            return size
        if isinstance(value, (tuple, list)):
            return _OBJECT_BYTES + sum(8 + size_of_value(item, depth + 1) for item in value)
    return 0 if value is None else _OBJECT_BYTES // 2
