"""The configuration as frozen values: one table that loader, docs and tests read. How a row is written: keys.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from luckrate_otel.config.keys import Key, keys_of, named, option, section, section_or_none
from luckrate_otel.config.kinds import (
    ADDRESS,
    DURATION,
    FILE,
    HEADERS,
    SECRET,
    SIZE,
    SWITCH,
    TEXT,
    URL,
    Address,
    Secret,
    choice,
    many,
)
from luckrate_otel.telemetry import nothing

SIGNALS = ("traces", "metrics", "logs", "profiles")

MIB = 2**20


# ---- in ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ServerTls:
    cert: Path | None = option(FILE, None, "PEM certificate chain shown to senders; switches TLS on.")
    key: Path | None = option(FILE, None, "PEM private key of `cert`.")
    client_ca: Path | None = option(
        FILE, None, "PEM authorities; senders must then present a certificate that one of them signed (mTLS)."
    )


@dataclass(frozen=True, slots=True)
class Auth:
    bearer: Secret | None = option(
        SECRET,
        None,
        "Token that senders must give as `authorization: Bearer …`.",
        "Write `${env:NAME}`, so that the file holds no secret.",
    )
    bearer_file: Path | None = option(FILE, None, "File whose first line is the token; instead of `bearer`.")


@dataclass(frozen=True, slots=True)
class GrpcReceiver:
    endpoint: Address | None = option(
        ADDRESS,
        Address("127.0.0.1", 4317),
        "Where OTLP over gRPC is received. `none` switches it off.",
        "OTLP's own port; loopback, as spans hold prompts and tool results.",
        default="127.0.0.1:4317",
    )
    tls: ServerTls = section(ServerTls)
    auth: Auth = section(Auth)


@dataclass(frozen=True, slots=True)
class HttpReceiver:
    endpoint: Address | None = option(
        ADDRESS,
        Address("127.0.0.1", 4318),
        "Where OTLP over HTTP (protobuf and JSON) is received. `none` switches it off.",
        "OTLP's own port; loopback, as spans hold prompts and tool results.",
        default="127.0.0.1:4318",
    )
    tls: ServerTls = section(ServerTls)
    auth: Auth = section(Auth)


@dataclass(frozen=True, slots=True)
class Receivers:
    grpc: GrpcReceiver = section(GrpcReceiver)
    http: HttpReceiver = section(HttpReceiver)
    max_message_bytes: int = option(
        SIZE,
        64 * MIB,
        "Largest request taken, before and after decompression.",
        "Agent spans hold whole conversations; gRPC's usual 4 MiB is too small for them.",
        default="64MiB",
    )


# ---- out ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClientTls:
    ca: Path | None = option(FILE, None, "PEM authorities to trust instead of the system's.")
    cert: Path | None = option(FILE, None, "PEM certificate to present (mTLS).")
    key: Path | None = option(FILE, None, "PEM private key of `cert`.")


@dataclass(frozen=True, slots=True)
class Destination:
    endpoint: str = option(
        URL,
        "",
        "Where to send: `http://` is plaintext, `https://` TLS. Over HTTP `/v1/traces` and so on are added.",
        "Required: a processor without a next hop would lose everything it is given.",
    )
    protocol: str = option(
        choice("grpc", "http/protobuf"), "grpc", "How to send.", "What a Collector speaks best.", default="grpc"
    )
    headers: Mapping[str, Secret] = field(
        default_factory=nothing,
        metadata={"key": Key(HEADERS, "", "Sent with every request, as metadata over gRPC. Never printed.", "")},
    )
    compression: str = option(
        choice("none", "gzip"),
        "none",
        "Of request bodies.",
        "Next hops are mostly near; gzip costs CPU.",
        default="none",
    )
    tls: ClientTls = section(ClientTls)
    timeout: float = option(
        DURATION, 10.0, "One request may take this long.", "OpenTelemetry's own default.", default="10s"
    )
    queue_bytes: int = option(
        SIZE,
        256 * MIB,
        "What waits for this destination at most; when full, senders are told to retry.",
        "Minutes of a busy agent fleet, and each destination has its own.",
        default="256MiB",
    )
    signals: tuple[str, ...] = option(
        many(choice(*SIGNALS)),
        SIGNALS,
        "Which signals go there. Violations and verdicts are in traces; verdict events in logs.",
        "All; leave `logs` out for a backend that shows the logs of a trace as span events too.",
        default="[traces, metrics, logs, profiles]",
    )
    exact: bool = False  # the endpoint is a whole URL: OTEL_EXPORTER_OTLP_<SIGNAL>_ENDPOINT is used as it is

    def url(self, signal: str) -> str:
        """The URL to POST one signal to (HTTP)."""
        path = "v1development/profiles" if signal == "profiles" else f"v1/{signal}"
        return self.endpoint if self.exact else f"{self.endpoint.rstrip('/')}/{path}"


# ---- between -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AgentClocks:
    """Clocks of one agent; None: as for all."""

    settle: float | None = option(DURATION, None, "As `clocks.settle`, for this agent.")
    release_after: float | None = option(DURATION, None, "As `clocks.release_after`, for this agent.")
    verdict_after: float | None = option(
        DURATION, None, "As `clocks.verdict_after`, for this agent.", "Agents that wait hours for a human need longer."
    )


@dataclass(frozen=True, slots=True)
class Clocks:
    settle: float = option(
        DURATION,
        10.0,
        "A run is judged this long after its root was seen and nothing new came.",
        "More than an SDK's 5 s batch and a Collector's together.",
        default="10s",
    )
    release_after: float = option(
        DURATION,
        120.0,
        "Spans are held for their verdict no longer than this, then forwarded.",
        "So that a live run can be watched.",
        default="2m",
    )
    verdict_after: float = option(
        DURATION,
        900.0,
        "A run whose root never came is judged after this long without a span.",
        "Longer than a slow tool, short enough to be seen the same day.",
        default="15m",
    )
    late_window: float = option(
        DURATION,
        1800.0,
        "A run is judged again when something of it comes this long after its verdict.",
        "Longer than `verdict_after`: a span whose parents never came is only then given to its run.",
        default="30m",
    )
    agents: Mapping[str, AgentClocks] = named(AgentClocks)


@dataclass(frozen=True, slots=True)
class Limits:
    held_bytes: int = option(
        SIZE,
        512 * MIB,
        "Memory of open runs; above it the heaviest and oldest are judged early, never dropped.",
        "Thousands of open runs with captured content.",
        default="512MiB",
    )
    late_bytes: int = option(
        SIZE,
        64 * MIB,
        "Memory of judged runs within `clocks.late_window`; above it the oldest are no longer judged again.",
        "Thousands of runs; what comes late is forwarded all the same.",
        default="64MiB",
    )
    link_bytes: int = option(
        SIZE,
        64 * MIB,
        "Memory of parent links of other spans in open traces; above it those of the oldest trace are forgotten.",
        "About 200,000 spans.",
        default="64MiB",
    )
    conversation_bytes: int = option(
        SIZE,
        64 * MIB,
        "Memory of what earlier turns of conversations held, so that later arguments can be traced to it.",
        "Texts only; about ten thousand turns.",
        default="64MiB",
    )
    conversation_age: float = option(
        DURATION, 86400.0, "Earlier turns are forgotten after this long.", "A working day and its night.", default="24h"
    )


@dataclass(frozen=True, slots=True)
class Journal:
    path: Path | None = option(
        FILE,
        None,
        "Folder of the journal. By default `$STATE_DIRECTORY` (systemd), `/var/lib/luckrate-otel` for root, else "
        "`luckrate-otel` in `$XDG_STATE_HOME` or `~/.local/state`.",
        "Holds prompts and tool results: made for its owner alone.",
    )
    max_bytes: int = option(
        SIZE,
        4096 * MIB,
        "Size on disk at which senders are told to retry. Verdicts already owed still go in.",
        "More than the queues and open runs that memory allows, so it is the last bound to be met.",
        default="4GiB",
    )
    fsync: str = option(
        choice("normal", "full"),
        "normal",
        "`normal` survives the death of the process; `full` also a power cut, at the price of a disk flush per commit.",
        "Processes die more often than machines.",
        default="normal",
    )


@dataclass(frozen=True, slots=True)
class Metrics:
    prometheus: Address | None = option(
        ADDRESS,
        Address("127.0.0.1", 9464),
        "Where Prometheus scrapes `/metrics`. `none` switches it off.",
        "OpenTelemetry's port for it. The scrape page carries no exemplars; OTLP does.",
        default="127.0.0.1:9464",
    )
    otlp: str = option(
        TEXT,
        "none",
        "Name of the destination that gets luckrate's own metrics.",
        "Many trace backends refuse metrics, so nothing is sent unasked.",
        default="none",
    )
    interval: float = option(DURATION, 15.0, "How often they are sent.", "A common scrape interval.", default="15s")


@dataclass(frozen=True, slots=True)
class Log:
    format: str = option(
        choice("text", "json"),
        "text",
        "Of the program's own log on standard error: lines for people, or one JSON object a line.",
        default="text",
    )


@dataclass(frozen=True, slots=True)
class Admin:
    endpoint: Address | None = option(
        ADDRESS,
        Address("127.0.0.1", 8321),
        "Where `/healthz`, `/readyz` and `/status` are. `none` switches it off.",
        "A port of its own, so that senders need no way to it.",
        default="127.0.0.1:8321",
    )
    tls: ServerTls = section(ServerTls)
    auth: Auth = section(Auth)


@dataclass(frozen=True, slots=True)
class Config:
    """Everything `serve` needs to know. source: the file it came from, "" when there was none."""

    mode: str = option(
        choice("inline", "tap"),
        "inline",
        "`inline` forwards everything, annotated; `tap` takes a copy and sends only what is luckrate's own.",
        default="inline",
    )
    verdict_spans: bool = option(
        SWITCH,
        False,
        "In `tap` mode, also send one span named `luckrate.verdict` a run, child of its root.",
        "Backends that show no logs have no other place for a verdict; some bill by span.",
        default="false",
    )
    receivers: Receivers = section(Receivers)
    destinations: Mapping[str, Destination] = named(Destination)
    specs: tuple[Path, ...] = option(
        many(FILE),
        (),
        "Spec files, relative to this file; the first whose `match` fits grades a run.",
        "Without one only the rules that are on by default are graded.",
    )
    conversation_keys: tuple[str, ...] = option(
        many(TEXT),
        (),
        "Attributes that name the conversation where `gen_ai.conversation.id` is absent, first that is set.",
    )
    clocks: Clocks = section(Clocks)
    limits: Limits = section(Limits)
    journal: Journal | None = section_or_none(Journal)
    metrics: Metrics = section(Metrics)
    admin: Admin = section(Admin)
    log: Log = section(Log)
    source: str = ""


def keys() -> dict[str, Key]:
    """Every key by its dotted path, in order; a name that the user chooses is `<name>`."""
    return keys_of(Config)
