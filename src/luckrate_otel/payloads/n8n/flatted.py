"""The flatted form in which n8n stores `execution_data.data`.

A JSON array whose entry 0 is the root; a string at value position is the index of the entry it stands for, every other
scalar stands for itself. Entries may be shared and may form cycles, so what comes out is a graph, not a tree.
"""

from __future__ import annotations

from typing import Any

from luckrate_otel.payloads.fields import parse


def is_flatted(value: Any) -> bool:
    """Whether value looks like a flatted n8n execution: its root names its members by index."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return False
    reference = value[0].get("resultData")
    return isinstance(reference, str) and reference.isdecimal()


def unflatten(table: list[Any]) -> Any:
    """The root value. Indices that lead nowhere become None. Linear and without recursion, whatever the depth."""
    entries: list[Any] = [_empty(entry) for entry in table]

    def meant(member: Any) -> Any:
        if not isinstance(member, str):
            return member
        # isascii: int() would accept other scripts' digits, and len: very long numerals are slow to read
        valid = member.isascii() and member.isdecimal() and len(member) <= len(str(len(entries)))
        return entries[int(member)] if valid and int(member) < len(entries) else None

    for raw, entry in zip(table, entries, strict=True):
        if isinstance(raw, dict):
            entry.update((key, meant(member)) for key, member in raw.items())
        elif isinstance(raw, list):
            entry.extend(meant(member) for member in raw)
    return entries[0] if entries else None


def unflatten_text(value: Any) -> Any:
    """Execution data given as text or as a parsed flatted array, as a graph; anything else as it is."""
    parsed = parse(value) if isinstance(value, str) else value
    return unflatten(parsed) if is_flatted(parsed) else parsed


def _empty(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {}
    return [] if isinstance(entry, list) else entry
