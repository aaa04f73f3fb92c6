"""A configuration file → `Config`, or every problem in it at once, each with its line and path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any

from luckrate_otel.config.check import find_problems
from luckrate_otel.config.environment import read_environment, state_folder
from luckrate_otel.config.keys import Key, settable
from luckrate_otel.config.kinds import NONE, Address, Hidden, OfItem, Secret
from luckrate_otel.config.tree import Config
from luckrate_otel.document import read_text, read_yaml
from luckrate_otel.errors import ConfigError, Problem
from luckrate_otel.known import unknown_keys
from luckrate_otel.paths import join_path, line_of

_REFERENCE = re.compile(r"\$\$|\$\{env:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{[^}]*\}?")


def load(path: Path | None, environ: Mapping[str, str]) -> Config:
    """Read and check the configuration. path None: defaults and environment only.

    environ: for `${env:NAME}` and, when no destination is given, OTEL_EXPORTER_OTLP_*. Raises ConfigError.
    """
    if path is None:
        return parse("", "", environ)
    text, problem = read_text(path)
    if problem is not None:
        raise ConfigError([problem], str(path))
    return parse(text, str(path), environ)


def parse(text: str, source: str, environ: Mapping[str, str]) -> Config:
    """The same for a text. source: names it in messages; relative paths are taken from its directory."""
    document = read_yaml(text, source)
    if document.problems:
        raise ConfigError(document.problems, source)
    reader = _Reader(document.lines, environ, Path(source).parent)
    config: Config = reader.section(Config, {} if document.value is None else document.value, "")
    config = replace(config, source=source)
    if not config.destinations and "destinations" not in reader.failed:
        destinations, problems = read_environment(environ)
        reader.problems += problems
        reader.failed |= {"destinations"} if problems else set()
        config = replace(config, destinations=destinations)
    if config.journal is not None and config.journal.path is None:
        config = replace(config, journal=replace(config.journal, path=state_folder(environ)))
    reader.problems += [
        Problem(p.path, p.message, line_of(document.lines, p.path))
        for p in find_problems(config)
        if "" not in reader.failed
        and not any(f"{p.path}.".startswith(f"{bad}.") or bad.startswith(f"{p.path}.") for bad in reader.failed)
    ]
    if reader.problems:
        raise ConfigError(sorted(reader.problems, key=lambda p: p.line or 0), source or "configuration")
    return config


@dataclass(slots=True)
class _Reader:
    """Walks values along the tree of dataclasses and collects what is wrong. failed: paths without a usable value."""

    lines: Mapping[str, int]
    environ: Mapping[str, str]
    base: Path
    problems: list[Problem] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)

    def report(self, path: str, message: str) -> None:
        self.failed.add(path)
        self.problems.append(Problem(path, message, line_of(self.lines, path)))

    def section(self, kind: type, raw: Any, path: str, *, or_none: bool = False) -> Any:
        if raw is None:
            raw = {}
        known = settable(kind)
        if not isinstance(raw, Mapping):
            off = f", or {NONE}" if or_none else ""
            hint = f"; endpoint: {NONE} switches it off" if raw == NONE and "endpoint" in known else ""
            self.report(path, f"must be a mapping with {', '.join(known)}{off}, not {_shape(raw)}{hint}")
            return kind()
        values: dict[str, Any] = {}
        unknown = dict(unknown_keys(raw, known))
        for name, value in raw.items():
            child = join_path(path, name)
            if name in unknown:
                self.report(child, unknown[name])
                continue
            metadata = known[name].metadata
            if "none" in metadata and value == NONE:
                values[name] = None
            elif "section" in metadata:
                values[name] = self.section(metadata["section"], value, child, or_none="none" in metadata)
            elif "named" in metadata:
                values[name] = self.named(metadata["named"], value, child)
            else:
                self.leaf(metadata["key"], value, child, values, name)
        return kind(**values)

    def named(self, kind: type, raw: Any, path: str) -> Mapping[str, Any]:
        if raw is None:
            raw = {}
        if not isinstance(raw, Mapping):
            self.report(path, f"must map names to sections, not {_shape(raw)}")
            return {}
        if "" in raw:
            self.report(path, "holds an empty name; give it one")
        return {name: self.section(kind, value, join_path(path, name)) for name, value in raw.items()}

    def leaf(self, spec: Key, raw: Any, path: str, values: dict[str, Any], name: str) -> None:
        if raw is None:
            self.report(path, "has no value; give one or leave the key out")
            return
        before = len(self.problems)
        value = self.expand(raw, path)
        if len(self.problems) > before:
            return
        try:
            values[name] = self.place(spec.kind.read(value))
        except ValueError as error:
            # What came out of the environment may be a secret even where the key is none, so the reference is shown.
            if isinstance(error, OfItem) and isinstance(raw, list):
                path, raw = join_path(path, error.index), raw[error.index]
            shown = "" if spec.kind.secret or isinstance(error, Hidden) else f" (it is {_shape(raw)})"
            self.report(path, f"{error}{shown}")

    def place(self, value: Any) -> Any:
        """Relative paths are meant from the file that names them, not from where the command was started."""
        if isinstance(value, Path):
            return self.base / value
        if isinstance(value, tuple):
            return tuple(self.place(item) for item in value)
        return value

    def expand(self, raw: Any, path: str) -> Any:
        """Replace `${env:NAME}` and `${env:NAME:-default}` in texts; `$$` is a dollar sign."""
        if isinstance(raw, Mapping):
            return {name: self.expand(value, join_path(path, name)) for name, value in raw.items()}
        if isinstance(raw, list):
            return [self.expand(value, join_path(path, i)) for i, value in enumerate(raw)]
        if not isinstance(raw, str):
            return raw

        def value_of(found: re.Match[str]) -> str:
            if found[0] == "$$":
                return "$"
            name, default = found[1], found[2]
            if name is None:
                self.report(path, f"{found[0]} is not understood; write ${{env:NAME}}, or $$ for a dollar sign")
            elif name in self.environ:
                return self.environ[name]
            elif default is None:
                self.report(
                    path, f"the environment variable {name} is not set; set it or write ${{env:{name}:-default}}"
                )
            return default or ""

        return _REFERENCE.sub(value_of, raw)


def _shape(raw: Any) -> str:
    if isinstance(raw, str):
        return repr(raw if len(raw) <= 80 else f"{raw[:77]}...")
    if isinstance(raw, bool):
        return str(raw).lower()
    if isinstance(raw, int | float):
        return str(raw)
    return "a mapping" if isinstance(raw, Mapping) else "a list"


def as_lines(config: Config) -> list[str]:
    """The configuration in use, one `path: value` a line, for `config check`; secrets as (secret)."""
    return _flat(config, "")


def _flat(value: Any, path: str) -> list[str]:
    if is_dataclass(value) and not isinstance(value, Address | Secret):
        names = settable(type(value))
        return [line for name in names for line in _flat(getattr(value, name), join_path(path, name))]
    if isinstance(value, Mapping):
        return [line for name, child in value.items() for line in _flat(child, join_path(path, name))]
    if value is None and path == "journal":
        return [f"{path}: {NONE}"]  # the one absence that costs something
    if value is None or value == ():
        return []
    if isinstance(value, tuple):
        return [f"{path}: [{', '.join(str(item) for item in value)}]"]
    if isinstance(value, bool):
        return [f"{path}: {str(value).lower()}"]  # as YAML 1.2 has it, and this program alone takes it
    return [f"{path}: {value}"]
