"""OTLP files → decoded spans and log records.

Forms, told apart by content and never by name: OTLP/JSON, one object or one a line (the Collector's file exporter);
OTLP protobuf, one request or length-prefixed ones (the same exporter, `format: proto`); Jaeger JSON; each plain or
under gzip or zstd. What is good in a damaged file is kept, what is bad is named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any, BinaryIO, TypeVar

from google.protobuf.message import DecodeError

from luckrate_otel.errors import InputError, Rejected, TooLarge
from luckrate_otel.otlp import jaeger, schema
from luckrate_otel.otlp.compression import inflate
from luckrate_otel.otlp.decode import decode_log, decode_span, is_well_formed
from luckrate_otel.otlp.json import load, to_protobuf
from luckrate_otel.otlp.shallow import Envelope, shallow
from luckrate_otel.telemetry import LogRecord, Span

T = TypeVar("T")

# A file is read whole. JSON takes about ten times its size in memory, so this is what a CI machine can bear.
MAX_FILE_BYTES = 1024**3

_SIGNALS = {"resourceSpans": "traces", "resourceLogs": "logs", "resourceMetrics": "metrics"}
_SNAKE_CASE = {
    "resource_spans": "resourceSpans",
    "resource_logs": "resourceLogs",
    "resource_metrics": "resourceMetrics",
}

FORMS = "give OTLP JSON, JSONL or protobuf, Jaeger JSON, or a stored run of a form in docs/adapters.md"


@dataclass(frozen=True, slots=True)
class FileProblem:
    """One unusable part of a file. line: 1-based line, or None where the file has no lines."""

    file: str
    line: int | None
    cause: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.cause}"


@dataclass(frozen=True, slots=True)
class FileContent:
    """What a file held.

    other: parsed JSON that is neither OTLP nor Jaeger, for the payload readers; a tuple if the file had several
    lines of it. None otherwise. Metrics are recognised and passed over.
    """

    spans: tuple[Span, ...] = ()
    logs: tuple[LogRecord, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    other: Any | None = None


@dataclass(slots=True)
class _Found:
    """Collects while one file is read. recognised: at least one part had a known form, be it empty."""

    file: str
    spans: list[Span] = field(default_factory=list)
    logs: list[LogRecord] = field(default_factory=list)
    problems: list[FileProblem] = field(default_factory=list)
    others: list[tuple[int | None, Any]] = field(default_factory=list)
    recognised: bool = False

    def problem(self, line: int | None, cause: object) -> None:
        self.problems.append(FileProblem(self.file, line, str(cause)))


def read(source: str | PathLike[str] | BinaryIO, *, max_bytes: int = MAX_FILE_BYTES) -> FileContent:
    """Read one file, or standard input for "-", or an open binary stream.

    Raises InputError with file, place and cause if nothing in it is usable.
    """
    name, data = _bytes_of(source, max_bytes)
    return read_bytes(data, name, max_bytes=max_bytes)


def read_bytes(data: bytes, name: str, *, max_bytes: int = MAX_FILE_BYTES) -> FileContent:
    """As read, of bytes at hand; name is how messages call them."""
    found = _Found(name)
    try:
        content, damage = inflate(data, max_bytes)
    except TooLarge as error:
        raise InputError(f"{name}: {error}; split the file") from None
    text = content.removeprefix(b"\xef\xbb\xbf")
    if not text.strip():
        raise InputError(f"{name}: {damage or 'the file is empty'}; {FORMS}")
    if text[:1] not in {b"{", b"["}:
        _read_protobuf(content, found)
    if not found.recognised and _looks_like_json(text):
        found = _Found(name)
        _read_json(text, found)
    if damage:  # the first to be told: the rest may follow from it
        found.problems.insert(0, FileProblem(name, None, damage))
    return _content(found)


def _looks_like_json(text: bytes) -> bool:
    """From its beginning, or from a later line: a rotated file can begin in the middle of a line."""
    return text.lstrip()[:1] in {b"{", b"["} or b"\n{" in text


def _bytes_of(source: str | PathLike[str] | BinaryIO, max_bytes: int) -> tuple[str, bytes]:
    if isinstance(source, (str, PathLike)):
        if fspath(source) == "-":
            return "standard input", sys.stdin.buffer.read(max_bytes + 1)
        try:
            with open(source, "rb") as file:  # noqa: PTH123  # source may be text or a path
                return fspath(source), file.read(max_bytes + 1)
        except OSError as error:
            raise InputError(f"{fspath(source)}: cannot be read: {(error.strerror or str(error)).lower()}") from None
    return str(getattr(source, "name", "input")), source.read(max_bytes + 1)


def _content(found: _Found) -> FileContent:
    others = found.others
    if found.recognised:
        for line, _ in others:
            found.problem(line, "JSON, but not OTLP")
        others = []
    if not found.recognised and not others:
        first = found.problems[0] if found.problems else f"{found.file}: of no known form"
        more = f" (and {len(found.problems) - 1} more)" if len(found.problems) > 1 else ""
        raise InputError(f"{first}{more}; {FORMS}")
    other = None if not others else others[0][1] if len(others) == 1 else tuple(value for _, value in others)
    found.problems.sort(key=lambda problem: problem.line or 0)
    return FileContent(tuple(found.spans), tuple(found.logs), tuple(found.problems), other)


def _read_json(text: bytes, found: _Found) -> None:
    lines = [(number, line) for number, line in enumerate(text.split(b"\n"), 1) if line.strip()]
    first: Any = None
    try:
        first = load(lines[0][1], local=True)
    except Rejected as error:
        whole: Any = error
        if len(lines) > 1:
            try:
                whole = load(text, local=True)
            except Rejected as error_of_whole:
                whole = error_of_whole
        if not isinstance(whole, Rejected):
            _read_document(whole, None, found)
            return
        if not any(_looks_like_line(line) for _, line in lines[1:]):
            found.problem(None if len(lines) > 1 else lines[0][0], whole)
            return
        found.problem(lines[0][0], error)
    else:
        _read_document(first, lines[0][0], found)
    for number, line in lines[1:]:
        try:
            document = load(line, local=True)
        except Rejected as error:
            found.problem(number, error)
        else:
            _read_document(document, number, found)


def _looks_like_line(line: bytes) -> bool:
    """Whether a line is a JSON object by itself, rather than a piece of a pretty-printed document."""
    return line[:1] == b"{" and line.rstrip()[-1:] == b"}"


def _read_document(document: Any, line: int | None, found: _Found) -> None:
    documents = document if isinstance(document, list) and document and all(map(_is_otlp, document)) else [document]
    for one in documents:
        if _is_otlp(one):
            _read_otlp(one, line, found)
        elif jaeger.is_jaeger(one):
            _read_jaeger(one, line, found)
        elif isinstance(one, Mapping) and not _SNAKE_CASE.keys().isdisjoint(one):
            key = next(key for key in one if key in _SNAKE_CASE)
            found.problem(line, f"{key}: OTLP/JSON keys are lowerCamelCase ({_SNAKE_CASE[key]})")
        elif isinstance(one, (Mapping, list)):
            found.others.append((line, one))
        else:
            found.problem(line, "JSON, but neither an object nor an array")


def _is_otlp(document: Any) -> bool:
    return isinstance(document, Mapping) and not _SIGNALS.keys().isdisjoint(document)


def _read_jaeger(document: Any, line: int | None, found: _Found) -> None:
    found.recognised = True
    for span in jaeger.spans(document):
        if isinstance(span, Rejected):
            found.problem(line, span)
        else:
            found.spans.append(span)


def _read_otlp(document: Mapping[str, Any], line: int | None, found: _Found) -> None:
    for key in document:
        signal = _SIGNALS.get(key)
        if signal is None:
            continue
        if signal == "metrics":
            found.recognised = True
            continue
        try:
            body = to_protobuf(signal, document)
        except Rejected as error:
            found.problem(line, error)
            continue
        found.recognised = True
        for envelope, wire in _items(body):
            try:
                _read_item(signal, wire, envelope, found)
            except Rejected as error:
                found.problem(line, error)


def _read_item(signal: str, wire: bytes, envelope: Envelope, found: _Found) -> None:
    if signal == "logs":
        found.logs.append(decode_log(wire, envelope))
        return
    span = decode_span(wire, envelope)
    if not is_well_formed(span.head):
        raise Rejected("a span with an id that is not 16 or 8 bytes, or zero")
    found.spans.append(span)


def _items(body: bytes) -> Iterator[tuple[Envelope, bytes]]:
    for group in shallow(body):
        for wire in group.items:
            yield group.envelope, wire


def _read_protobuf(content: bytes, found: _Found) -> None:
    """One request starts with the tag of its first field; a length prefix starts so only past 160 MiB a message."""
    records = [(None, content)] if content[:1] == b"\n" else _records(content, found)
    for number, record in records:
        place = "" if number is None else f"record {number}: "
        try:
            body, damage = inflate(record, MAX_FILE_BYTES)
            if damage:
                found.problem(None, f"{place}{damage}")
            if body[:1] == b"{":
                _read_document(load(body, local=True), None, found)
                continue
            items = list(_items(body))
        except Rejected as error:
            found.problem(None, f"{place}{error}")
            continue
        for envelope, wire in items:
            try:
                _read_unnamed_item(wire, envelope, found)
            except Rejected as error:
                found.problem(None, f"{place}{error}")


def _records(content: bytes, found: _Found) -> Iterable[tuple[int | None, bytes]]:
    """The messages of a length-prefixed file: four bytes of length, big-endian, then the message."""
    at = 0
    number = 0
    while at < len(content):
        number += 1
        size = int.from_bytes(content[at : at + 4], "big")
        record = content[at + 4 : at + 4 + size]
        if len(record) < size or at + 4 > len(content):
            found.problem(None, "neither JSON nor OTLP protobuf" if number == 1 else f"record {number} breaks off")
            return
        yield number, record
        at += 4 + size


def _read_unnamed_item(wire: bytes, envelope: Envelope, found: _Found) -> None:
    """A request does not name its signal, so each item is told by what only its own kind has: ids and times."""
    span = _attempt(decode_span, wire, envelope)
    if span and (span.head.start_ns or span.head.end_ns) and is_well_formed(span.head):
        found.recognised = True
        found.spans.append(span)
        return
    log = _attempt(decode_log, wire, envelope)
    if log and log.time_ns and len(log.trace_id) in {0, 32} and len(log.span_id) in {0, 16}:
        found.recognised = True
        found.logs.append(log)
    elif _is_metric(wire):
        found.recognised = True
    else:
        raise Rejected("neither a span nor a log record nor a metric")


def _attempt(decode: Callable[[bytes, Envelope], T], wire: bytes, envelope: Envelope) -> T | None:
    """What is no span can still be a log record; what is too large for one is so for the other."""
    try:
        return decode(wire, envelope)
    except TooLarge:
        raise
    except Rejected:
        return None


def _is_metric(wire: bytes) -> bool:
    try:
        metric = schema.Metric.FromString(wire)
    except DecodeError:
        return False
    return bool(metric.name) and any(metric.HasField(kind) for kind in schema.METRIC_DATA)
