"""Values made by the dozen for every span: frozen to the type checker, plain slotted dataclasses at run time.

A frozen dataclass sets each field through `object.__setattr__` and takes six times as long to make: 2.7 µs instead of
0.4 for Facts; `dataclasses.replace` another five. Together that was a sixth of all the time a span costs. The type
checker refuses assignments to both alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from dataclasses import replace
else:
    from dataclasses import dataclass, fields
    from dataclasses import replace as replace_frozen

    def record(*, frozen: bool, **options: Any) -> Any:
        """`@record(frozen=True, slots=True)`, as `dataclass`; equality and hash are those of a frozen one."""

        def made(cls: type) -> type:
            cls = dataclass(unsafe_hash=frozen, **options)(cls)
            cls.__copy__ = _copier(cls)
            return cls

        return made

    def replace(value: Any, /, **changes: Any) -> Any:
        """A copy of a record with other fields, as `dataclasses.replace`. AttributeError: it has no such field.

        Of a frozen dataclass too: to the type checker both are the same, so it cannot tell where one is meant.
        """
        try:
            copied = value.__copy__()
        except AttributeError:
            return replace_frozen(value, **changes)
        for name, new in changes.items():
            setattr(copied, name, new)
        return copied

    def _copier(cls: type) -> Any:
        """Written out field by field, as dataclasses write `__init__`: a loop would take as long as their replace."""
        lines = [f"    new.{field.name} = self.{field.name}" for field in fields(cls)]
        scope = {"blank": object.__new__, "cls": cls}
        text = "\n".join(["def __copy__(self):", "    new = blank(cls)", *lines, "    return new"])
        exec(text, scope)  # noqa: S102 - of names that stand in our own classes
        return scope["__copy__"]


__all__ = ["record", "replace"]
