"""What a value of a configuration key may look like, and what it becomes.

A kind is a label for the docs and a function from the raw value; it raises ValueError with what is wrong and what to
write instead. Secrets never appear in such a message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NONE = "none"

_SIZES = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Hidden(ValueError):
    """Like ValueError, but the value holds a secret where none belongs, so it must not be shown."""


class OfItem(ValueError):
    """Of one member of a list. index: which."""

    def __init__(self, index: int, error: ValueError) -> None:
        super().__init__(str(error))
        self.index = index


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that is never printed. `.reveal()` where it goes onto the wire."""

    _value: str = field(repr=False)

    def reveal(self) -> str:
        return self._value

    def __str__(self) -> str:
        return "(secret)"


@dataclass(frozen=True, slots=True)
class Address:
    """A place to listen at. port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def loopback(self) -> bool:
        return self.host in {"localhost", "::1"} or self.host.startswith("127.")

    @property
    def wildcard(self) -> bool:
        return self.host in {"0.0.0.0", "::"}  # noqa: S104 - compared with, not bound to


@dataclass(frozen=True, slots=True)
class Kind:
    """label: the type as the docs show it. secret: the value must not appear in a message."""

    label: str
    read: Callable[[Any], Any]
    secret: bool = False


def _text(raw: Any) -> str:
    if isinstance(raw, int | float):  # bool is one too
        raise ValueError("must be a text; put it in quotes")
    if not isinstance(raw, str) or not raw:
        raise ValueError("must be a text that is not empty")
    return raw


def _size(raw: Any) -> int:
    if isinstance(raw, str) and (found := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?i?B)?", raw, re.IGNORECASE)):
        size = float(found[1]) * _SIZES[(found[2] or "B").upper()]
    elif isinstance(raw, int | float) and not isinstance(raw, bool):
        size = raw
    else:
        raise ValueError("must be a size such as 64MiB, or a number of bytes")
    if not 1 <= size < 2**63:
        raise ValueError("must be a size from 1 byte to 8 EiB")
    return int(size)


def _duration(raw: Any) -> float:
    if isinstance(raw, str) and re.fullmatch(r"\d+(\.\d+)?", raw):  # from an environment variable
        raw = float(raw)
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        seconds = raw
    elif isinstance(raw, str) and re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h|d))+", raw):
        parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", raw)
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    else:
        raise ValueError("must be a duration such as 10s, 2m or 1m30s, or a number of seconds")
    if not 0 < seconds < 10**9:
        raise ValueError("must be longer than 0 and shorter than 30 years")
    return float(seconds)  # not before, as there are integers beyond every float


def _address(raw: Any) -> Address | None:
    if raw == NONE:
        return None
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:]+)\]|([^\s:/\[\]]+)):(\d{1,5})", raw) if isinstance(raw, str) else None
    if found is None or int(found[3]) > 65535:
        raise ValueError("must be host:port such as 127.0.0.1:4317, or none to switch it off")
    return Address(found[1] or found[2], int(found[3]))


def _url(raw: Any) -> str:
    if not isinstance(raw, str) or "://" not in raw:
        raise ValueError("must be a URL with its scheme, such as http://127.0.0.1:14317")
    try:
        parts = urlsplit(raw)
        port = parts.port
    except ValueError as error:
        raise ValueError("must be a URL with a usable host and port, such as http://127.0.0.1:14317") from error
    if parts.username is not None or parts.password is not None:
        raise Hidden("must not hold a user or password; give them as a header with ${env:NAME}")
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0 or parts.query or parts.fragment:
        raise ValueError("must be http://host:port or https://host:port, with a path at most")
    return raw


def _file(raw: Any) -> Path:
    path = _text(raw)
    if "\0" in path:
        raise ValueError("must be a path, which holds no NUL character")
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ValueError("must be a path; there is no such user's home") from error


def _secret(raw: Any) -> Secret:
    value = _text(raw)
    if not value.isascii() or any(ord(c) < 32 or ord(c) == 127 for c in value):
        raise ValueError("must be printable ASCII on one line, as it goes into a header")
    return Secret(value)


def _headers(raw: Any) -> Mapping[str, Secret]:
    if not isinstance(raw, Mapping):
        raise ValueError("must map header names to texts, such as {x-api-key: '${env:KEY}'}")
    for name, value in raw.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise ValueError(f"{name!r} is no header name")
        if not isinstance(value, str):
            raise ValueError(f"the value of {name} must be a text; put it in quotes")
    return {name.lower(): _secret(value) for name, value in raw.items()}


def _switch(raw: Any) -> bool:
    if not isinstance(raw, bool):
        raise ValueError("must be true or false")
    return raw


TEXT = Kind("text", _text)
SIZE = Kind("size", _size)
DURATION = Kind("duration", _duration)
ADDRESS = Kind("host:port or none", _address)
URL = Kind("URL", _url)
FILE = Kind("file", _file)
SECRET = Kind("secret text", _secret, secret=True)
HEADERS = Kind("header name → secret text", _headers, secret=True)
SWITCH = Kind("true or false", _switch)


def choice(*options: str) -> Kind:
    def read(raw: Any) -> str:
        if raw not in options:
            raise ValueError(f"must be {', '.join(options[:-1])} or {options[-1]}")
        return str(raw)

    return Kind(" or ".join(options), read)


def many(kind: Kind) -> Kind:
    """A list of one kind; a single value is taken as a list of one."""

    def read(raw: Any) -> tuple[Any, ...]:
        items = raw if isinstance(raw, list) else [raw]
        if not items:
            raise ValueError("must not be empty; leave the key out instead")
        return tuple(_read_item(kind, index, item) for index, item in enumerate(items))

    return Kind(f"list of {kind.label}", read, kind.secret)


def _read_item(kind: Kind, index: int, item: Any) -> Any:
    try:
        return kind.read(item)
    except Hidden:
        raise
    except ValueError as error:
        raise OfItem(index, error) from error
