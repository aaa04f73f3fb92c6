"""The configuration of `serve`: one tree of frozen values, its loader, and what it warns of."""

from luckrate_otel.config.check import find_warnings
from luckrate_otel.config.keys import Key
from luckrate_otel.config.kinds import Address, Secret
from luckrate_otel.config.load import as_lines, load, parse
from luckrate_otel.config.tree import (
    SIGNALS,
    Admin,
    AgentClocks,
    Auth,
    ClientTls,
    Clocks,
    Config,
    Destination,
    GrpcReceiver,
    HttpReceiver,
    Journal,
    Limits,
    Log,
    Metrics,
    Receivers,
    ServerTls,
    keys,
)

__all__ = [
    "SIGNALS",
    "Address",
    "Admin",
    "AgentClocks",
    "Auth",
    "ClientTls",
    "Clocks",
    "Config",
    "Destination",
    "GrpcReceiver",
    "HttpReceiver",
    "Journal",
    "Key",
    "Limits",
    "Log",
    "Metrics",
    "Receivers",
    "Secret",
    "ServerTls",
    "as_lines",
    "find_warnings",
    "keys",
    "load",
    "parse",
]
