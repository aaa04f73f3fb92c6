"""Destinations from OpenTelemetry's own environment variables.

Source: OpenTelemetry specification, "OpenTelemetry Protocol Exporter". A per-signal variable wins over the general one;
a per-signal HTTP endpoint is used as it is, the general one gets `/v1/<signal>`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from luckrate_otel.config.kinds import HEADERS, URL, Secret
from luckrate_otel.config.tree import SIGNALS, ClientTls, Destination
from luckrate_otel.errors import Problem

PREFIX = "OTEL_EXPORTER_OTLP_"
_PROTOCOLS = ("grpc", "http/protobuf")


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where a program keeps what must outlive it: as systemd says, else as the system's own conventions do."""
    given = environ.get("STATE_DIRECTORY", "").partition(":")[0]
    if given:
        return Path(given)
    if os.geteuid() == 0:
        return Path("/var/lib/luckrate-otel")
    home = environ.get("XDG_STATE_HOME", "")
    return (Path(home) if home.startswith("/") else Path("~/.local/state").expanduser()) / "luckrate-otel"


def read_environment(environ: Mapping[str, str]) -> tuple[dict[str, Destination], list[Problem]]:
    """Signals that go to one place the same way become one destination, named `env` or `env_<signal>`."""
    problems: list[Problem] = []
    found: dict[str, Destination] = {}
    for signal in SIGNALS:
        variables = _Variables(environ, signal)
        if not variables.get("ENDPOINT"):
            continue
        destination = _destination(variables, signal, problems)
        if destination is None:
            continue
        for name, other in found.items():
            if not destination.exact and replace(other, signals=()) == replace(destination, signals=()):
                found[name] = replace(other, signals=(*other.signals, signal))
                break
        else:
            found[f"env_{signal}"] = destination
    if len(found) == 1:
        found = {"env": next(iter(found.values()))}
    return found, list(dict.fromkeys(problems))


@dataclass(frozen=True, slots=True)
class _Variables:
    environ: Mapping[str, str]
    signal: str

    def name(self, what: str) -> str:
        own = f"{PREFIX}{self.signal.upper()}_{what}"
        return own if self.environ.get(own) else f"{PREFIX}{what}"

    def get(self, what: str) -> str:
        """An empty variable counts as unset, as the specification says."""
        return self.environ.get(self.name(what), "")


def _destination(variables: _Variables, signal: str, problems: list[Problem]) -> Destination | None:
    before = len(problems)
    # The specification's default is http/protobuf; grpc on the conventional port is the mistake people make with it.
    protocol = variables.get("PROTOCOL") or "http/protobuf"
    if protocol not in _PROTOCOLS:
        problems.append(_problem(variables, "PROTOCOL", f"must be grpc or http/protobuf (it is {protocol!r})"))
    endpoint = variables.get("ENDPOINT")
    if protocol == "grpc" and "://" not in endpoint:
        insecure = variables.get("INSECURE").lower() == "true"
        endpoint = f"{'http' if insecure else 'https'}://{endpoint}"
    try:
        URL.read(endpoint)
    except ValueError as error:
        problems.append(_problem(variables, "ENDPOINT", str(error)))
    compression = variables.get("COMPRESSION") or "none"
    if compression not in {"none", "gzip"}:
        problems.append(_problem(variables, "COMPRESSION", f"must be none or gzip (it is {compression!r})"))
    timeout = variables.get("TIMEOUT") or "10000"
    if not (timeout.isascii() and timeout.isdigit() and int(timeout) > 0):
        problems.append(_problem(variables, "TIMEOUT", f"must be a number of milliseconds (it is {timeout!r})"))
    headers = _headers(variables, problems)
    if len(problems) > before:
        return None
    return Destination(
        endpoint=endpoint,
        protocol=protocol,
        headers=headers,
        compression=compression,
        tls=ClientTls(
            ca=_path(variables.get("CERTIFICATE")),
            cert=_path(variables.get("CLIENT_CERTIFICATE")),
            key=_path(variables.get("CLIENT_KEY")),
        ),
        timeout=int(timeout) / 1000,
        signals=(signal,),
        exact=protocol == "http/protobuf" and variables.name("ENDPOINT") != f"{PREFIX}ENDPOINT",
    )


def _headers(variables: _Variables, problems: list[Problem]) -> Mapping[str, Secret]:
    """`a=b,c=d` with percent-encoded values, as W3C Baggage without properties."""
    raw: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in variables.get("HEADERS").split(","))):
        name, equals, value = part.partition("=")
        if not equals:
            problems.append(_problem(variables, "HEADERS", "must be name=value pairs with commas between"))
            return {}
        raw[unquote(name.strip())] = unquote(value.strip())
    try:
        headers: Mapping[str, Secret] = HEADERS.read(raw)
    except ValueError as error:
        problems.append(_problem(variables, "HEADERS", str(error)))
        return {}
    return headers


def _problem(variables: _Variables, what: str, message: str) -> Problem:
    return Problem(variables.name(what), message)


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def host_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
