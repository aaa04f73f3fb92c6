"""What single keys cannot tell: whether the configuration as a whole makes sense, and what it lays open."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from luckrate_otel.config.environment import PREFIX, host_port
from luckrate_otel.config.kinds import NONE, Address
from luckrate_otel.config.tree import Auth, ClientTls, Clocks, Config, ServerTls
from luckrate_otel.errors import Problem


def find_problems(config: Config) -> Iterator[Problem]:
    """Contradictions and missing parts; without line numbers, which the loader adds."""
    if config.verdict_spans and config.mode != "tap":
        yield Problem("verdict_spans", "is for `mode: tap`; inline, verdicts are on the runs' own spans")
    yield from _destination_problems(config)
    yield from _listener_problems(config)
    for path, _, tls, auth in _servers(config):
        if _is_half(tls):
            yield Problem(f"{path}.tls", "cert and key belong together; give both or neither")
        elif tls.client_ca is not None and tls.cert is None:
            yield Problem(f"{path}.tls.client_ca", "needs cert and key: client certificates come with TLS")
        if auth.bearer is not None and auth.bearer_file is not None:
            yield Problem(f"{path}.auth", "give bearer or bearer_file, not both")
    yield from _clock_problems(config.clocks)


def _destination_problems(config: Config) -> Iterator[Problem]:
    if not config.destinations:
        example = 'name where graded spans go, such as {backend: {endpoint: "http://127.0.0.1:14317"}}'
        advice = example if config.source else "give --config FILE that names one"
        yield Problem("destinations", f"at least one is required; {advice}, or set {PREFIX}ENDPOINT")
    own = _listeners(config)
    for name, destination in config.destinations.items():
        path = f"destinations.{name}"
        if not destination.endpoint:
            yield Problem(path, 'endpoint is required, such as "http://127.0.0.1:14317"')
            continue
        for listener, address in own.items():
            if _same_place(destination.endpoint, address):
                message = f"{destination.endpoint} is this program's own {_named(listener)}; it would send to itself"
                yield Problem(f"{path}.endpoint", f"{message}. Name the next hop, or listen at another port")
        tls = destination.tls
        if _is_half(tls):
            yield Problem(f"{path}.tls", "cert and key belong together; give both or neither")
        if destination.endpoint.startswith("http://") and (tls.ca or tls.cert):
            yield Problem(f"{path}.tls", "has no effect on http://; write https:// in endpoint")
    otlp = config.metrics.otlp
    if otlp != NONE and otlp not in config.destinations:
        known = ", ".join(config.destinations) or "none yet"
        yield Problem("metrics.otlp", f"there is no destination {otlp!r}; known: {known}")
    elif otlp != NONE and "metrics" not in config.destinations[otlp].signals:
        yield Problem("metrics.otlp", f"the destination {otlp!r} takes no metrics; add metrics to its signals")


def _listener_problems(config: Config) -> Iterator[Problem]:
    if config.receivers.grpc.endpoint is None and config.receivers.http.endpoint is None:
        yield Problem("receivers", "both are switched off, so nothing could arrive; leave one on")
    seen: list[tuple[str, Address]] = []
    for key, address in _listeners(config).items():
        if address.port == 0:
            continue
        for other, taken in seen:
            if taken.port == address.port and (taken.host == address.host or taken.wildcard or address.wildcard):
                yield Problem(key, f"{address} is {_named(other)}'s already")
        seen.append((key, address))


def _clock_problems(clocks: Clocks) -> Iterator[Problem]:
    every = {"clocks": (clocks.settle, clocks.verdict_after)}
    for name, own in clocks.agents.items():
        every[f"clocks.agents.{name}"] = (own.settle or clocks.settle, own.verdict_after or clocks.verdict_after)
    for path, (settle, verdict_after) in every.items():
        if settle > verdict_after:
            yield Problem(f"{path}.settle", "is longer than verdict_after, which then would never wait for a root")


def find_warnings(config: Config) -> list[str]:
    """What the configuration lays open to others, one sentence each, to be said loudly at start."""
    warnings: list[str] = []
    for path, address, tls, auth in _servers(config):
        if address is None or address.loopback:
            continue
        token = auth.bearer is not None or auth.bearer_file is not None
        lacks = [] if tls.cert else ["encryption (tls)"]
        lacks += [] if token or tls.client_ca else ["any check of who connects (auth, or tls.client_ca)"]
        if lacks:
            warnings.append(f"{path} listens at {address}, beyond this machine, without {' or '.join(lacks)}")
    prometheus = config.metrics.prometheus
    if prometheus is not None and not prometheus.loopback:
        warnings.append(
            f"metrics.prometheus listens at {prometheus}, beyond this machine, without any check of who reads"
        )
    for name, destination in config.destinations.items():
        if destination.headers and destination.endpoint.startswith("http://") and not _is_local(destination.endpoint):
            warnings.append(
                f"destinations.{name} sends its headers over plaintext http://; write https:// to protect them"
            )
    return warnings


def _servers(config: Config) -> Iterator[tuple[str, Address | None, ServerTls, Auth]]:
    """What listens with TLS and authentication of its own."""
    grpc, http, admin = config.receivers.grpc, config.receivers.http, config.admin
    yield "receivers.grpc", grpc.endpoint, grpc.tls, grpc.auth
    yield "receivers.http", http.endpoint, http.tls, http.auth
    yield "admin", admin.endpoint, admin.tls, admin.auth


def _listeners(config: Config) -> dict[str, Address]:
    """Every address that is listened at, by the key that sets it."""
    found = {f"{path}.endpoint": address for path, address, _, _ in _servers(config) if address is not None}
    if config.metrics.prometheus is not None:
        found["metrics.prometheus"] = config.metrics.prometheus
    return found


def _named(key: str) -> str:
    return key.removesuffix(".endpoint")


def _is_half(tls: ServerTls | ClientTls) -> bool:
    return (tls.cert is None) != (tls.key is None)


def _same_place(url: str, address: Address) -> bool:
    """Names of other machines are not resolved: start-up must not depend on a name server."""
    host, port = host_port(url)
    if port != address.port or port == 0:
        return False
    local = _is_local(url)
    return host == address.host or (local and (address.loopback or address.wildcard))


def _is_local(url: str) -> bool:
    host, _ = host_port(url)
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        number = ip_address(host)
    except ValueError:
        return False
    return number.is_loopback or number.is_unspecified
