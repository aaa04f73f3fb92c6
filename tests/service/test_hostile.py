"""Requests meant to harm, or made by broken programs: answered by the table, forwarded as they came, and the next one
is served. Forwarding comes before grading: what is odd inside a span is the next hop's to judge, not ours to refuse."""

from __future__ import annotations

import gzip
import io
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest
from backports import zstd

from luckrate_otel.config import parse
from luckrate_otel.otlp.encode import encode_span, our_envelope, strip_luckrate, traces_request
from luckrate_otel.otlp.shallow import shallow
from luckrate_otel.otlp.wire import delimited, varint
from luckrate_otel.service.receive.answers import JSON, PROTOBUF
from luckrate_otel.service.server import Server
from luckrate_otel.spec import Spec
from luckrate_otel.telemetry import Head, Span, Value
from tests.next_hop import NextHop, grpc_next_hop, within

ENVELOPE = our_envelope({"service.name": "shop"}, "shop.agent")
AGENT: dict[str, Value] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
TOOL: dict[str, Value] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup"}
MIB = 2**20
T, ROOT, CALL = "ab" * 16, "01" * 8, "02" * 8


@asynccontextmanager
async def processor(hop: NextHop, settle: str = "200ms") -> AsyncIterator[Server]:
    config = parse(
        f"""
        receivers: {{grpc: {{endpoint: none}}, http: {{endpoint: "127.0.0.1:0"}}, max_message_bytes: 48MiB}}
        destinations: {{backend: {{endpoint: "{hop.endpoint}"}}}}
        clocks: {{settle: {settle}, verdict_after: 400ms}}
        journal: none
        metrics: {{prometheus: none}}
        admin: {{endpoint: none}}
        """,
        "test.yaml",
        {},
    )
    server = Server(config, [Spec.from_mapping({"name": "any"})])
    await server.start()
    try:
        yield server
    finally:
        await server.stop(5)


def span(attributes: dict[str, Value], span_id: str = ROOT, parent: str = "", **head: object) -> bytes:
    made = Head(trace_id=T, span_id=span_id, parent_id=parent, name="n", kind=1, start_ns=1, end_ns=2)
    return encode_span(Span(replace(made, **head), attributes))  # type: ignore[arg-type]


def request(*wires: bytes) -> bytes:
    return traces_request((ENVELOPE, wire) for wire in wires)


def attribute(value: bytes, key: bytes = b"gen_ai.tool.call.arguments") -> bytes:
    """One attribute of a span, its AnyValue given as bytes."""
    return delimited(0x4A, delimited(0x0A, key) + delimited(0x12, value))


def nested(depth: int) -> bytes:
    """An AnyValue of arrays in arrays."""
    value = b"\x18\x01"
    for _ in range(depth):
        value = delimited(0x2A, delimited(0x0A, value))
    return value


TOOL_SPAN = span(TOOL, CALL, ROOT)
# (what, the spans of a request)
ODD: list[tuple[str, list[bytes]]] = [
    ("any values nested 2,000 deep", [TOOL_SPAN + attribute(nested(2_000))]),
    ("any values nested 90 deep", [TOOL_SPAN + attribute(nested(90))]),
    ("a million attributes", [TOOL_SPAN + attribute(b"\x18\x01", b"k") * 10**6]),
    ("an attribute of 10 MiB", [TOOL_SPAN + attribute(delimited(0x0A, b"x" * 10 * MIB))]),
    ("JSON nested 100,000 deep in an argument", [TOOL_SPAN + attribute(delimited(0x0A, b"[" * 100_000))]),
    (
        "invalid UTF-8 in name, key and value",
        [TOOL_SPAN + delimited(0x2A, b"\xff\xfe") + attribute(delimited(0x0A, b"\xed\xa0\x80"), b"\xff")],
    ),
    ("control characters in names", [span({**TOOL, "gen_ai.tool.name": "a\n\x1b[31m\0b"}, b"\n\0".hex() * 4, ROOT)]),
    ("a trace id of 3 bytes", [span(TOOL, trace_id="abcdef")]),
    ("a trace id of 40 bytes", [span(TOOL, trace_id="ab" * 40)]),
    ("no trace id", [span(TOOL, trace_id="")]),
    ("a trace id of zeros", [span(TOOL, trace_id="00" * 16)]),
    ("a span id of 1 byte", [span(TOOL, "07")]),
    ("no span id", [span(TOOL, "")]),
    ("a parent id of 20 bytes", [span(TOOL, CALL, "07" * 20)]),
    ("a span that is its own parent", [span(AGENT, ROOT, ROOT), span(TOOL, CALL, ROOT)]),
    ("parents in a circle", [span(AGENT, ROOT, CALL), span(TOOL, CALL, "03" * 8), span(AGENT, "03" * 8, ROOT)]),
    ("one id with different contents", [span(TOOL, CALL), span({**TOOL, "gen_ai.tool.name": "other"}, CALL)]),
    ("one span a thousand times", [TOOL_SPAN] * 1000),
    ("no times", [span(TOOL, CALL, start_ns=0, end_ns=0)]),
    ("an end before its start", [span(TOOL, CALL, start_ns=10**18, end_ns=1)]),
    ("times at the end of time", [span(AGENT), span(TOOL, CALL, ROOT, start_ns=2**64 - 1, end_ns=2**64 - 1)]),
    ("a kind and a status that do not exist", [span(TOOL, CALL) + b"\x30\x63" + delimited(0x7A, b"\x18\x63")]),
    (
        "attributes of the wrong types",
        [
            span({**AGENT, "gen_ai.agent.name": 7, "gen_ai.input.messages": b"\xff"}),
            span({**TOOL, "gen_ai.tool.call.arguments": (1, None)}, CALL, ROOT),
        ],
    ),
    ("a span that is no message", [b"\x0a\xff\xff\xff\x7fgen_ai.", TOOL_SPAN]),
    (
        "forged findings",
        [span({**TOOL, "luckrate.verdict": "pass", "luckrate.lucky": False}, CALL)],
    ),
]


@pytest.mark.parametrize(("what", "wires"), ODD, ids=[what for what, _ in ODD])
def test_odd_spans_are_forwarded_as_they_came(what: str, wires: list[bytes]) -> None:
    async def scenario() -> None:
        async with grpc_next_hop() as hop, processor(hop) as server:
            began = time.process_time()
            assert await post(server, request(*wires)) == (200, b"")
            assert await post(server, request(span(AGENT, "0f" * 8, trace_id="cd" * 16))) == (200, b"")
            await server.stop(15)
            assert time.process_time() - began < 10
            came = [w for r in hop.requests if r.signal == "traces" for g in shallow(r.body) for w in g.items]
            stripped = Counter(map(taken_off, came))
            expected = Counter([*map(taken_off, wires), span(AGENT, "0f" * 8, trace_id="cd" * 16)])
            assert stripped == expected, what
            assert server.status()["ledger"]["traces"]["unaccounted"] == 0

    within(60, scenario)


def taken_off(wire: bytes) -> bytes:
    try:
        return strip_luckrate(wire)
    except Exception:  # noqa: BLE001 - no message, so nothing of ours can be on it
        return wire


def one_span(content: str) -> bytes:
    return f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{{content}}}]}}]}}]}}'.encode()


def flood(scope: bytes) -> bytes:
    group = b"\x12" + varint(len(scope)) + scope
    return b"\x0a" + varint(len(group)) + group


def bomb(size: int, wbits: int = 31) -> bytes:
    """`size` zeros as gzip, without ever having them in memory."""
    made = zlib.compressobj(9, zlib.DEFLATED, wbits)
    return b"".join(made.compress(bytes(MIB)) for _ in range(size // MIB)) + made.flush()


def zstd_bomb(size: int) -> bytes:
    made = zstd.ZstdCompressor()
    return b"".join(made.compress(bytes(MIB)) for _ in range(size // MIB)) + made.flush()


DEEP = (
    b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"k","value":'
    + b'{"arrayValue":{"values":[' * 50_000
)
WIDE = b'{"resourceSpans":[' + b",".join([b"{}"] * 300_000) + b"]}"
GZIP = {"Content-Encoding": "gzip"}
BAD: list[tuple[str, bytes, dict[str, str], int]] = [
    ("gzip bomb, 1 GiB in 1 MiB", bomb(1024 * MIB), GZIP, 413),
    ("gzip in gzip", gzip.compress(gzip.compress(request(TOOL_SPAN))), GZIP, 400),
    (
        "a second gzip member cut off",
        gzip.compress(b"") + gzip.compress(request(TOOL_SPAN))[:-9],
        {"Content-Encoding": "gzip"},
        400,
    ),
    ("zstd bomb, 1 GiB in 32 KiB", zstd_bomb(1024 * MIB), {"Content-Encoding": "zstd"}, 413),
    ("zstd bomb of frames", zstd.compress(bytes(MIB)) * 1024, {"Content-Encoding": "zstd"}, 413),
    (
        "a second zstd frame cut off",
        (zstd.compress(b"") + zstd.compress(request(TOOL_SPAN))[:-2]),
        {"Content-Encoding": "zstd"},
        400,
    ),
    ("zstd that says gzip", zstd.compress(request(TOOL_SPAN)), GZIP, 400),
    ("gzip that says zstd", gzip.compress(request(TOOL_SPAN)), {"Content-Encoding": "zstd"}, 400),
    ("deflate bomb, 1 GiB in 1 MiB", bomb(1024 * MIB, zlib.MAX_WBITS), {"Content-Encoding": "deflate"}, 413),
    ("a coding that is not offered", request(TOOL_SPAN), {"Content-Encoding": "br"}, 415),
    ("not gzip at all", request(TOOL_SPAN), GZIP, 400),
    ("deep JSON", DEEP, {"Content-Type": JSON}, 400),
    ("JSON with 300,000 resources", WIDE, {"Content-Type": JSON}, 413),
    ("300,000 resources", b"\x0a\x00" * 300_000, {}, 413),
    ("1,100,000 empty spans", flood(b"\x12\x00" * 1_100_000), {}, 413),
    ("as many of an agent's scope", flood(b"\x0a\x0b\x0a\x09langsmith" + b"\x12\x00" * 1_100_000), {}, 413),
    ("snake_case keys are unknown ones", b'{"resource_spans":[{"scope_spans":[]}]}', {"Content-Type": JSON}, 200),
    ("base64 ids", one_span('"traceId":"q6urq6urq6urq6urq6urqw=="'), {"Content-Type": JSON}, 400),
    ("integers as numbers", one_span('"startTimeUnixNano":5'), {"Content-Type": JSON}, 200),
    ("a charset", b"{}", {"Content-Type": f"{JSON}; charset=utf-8"}, 200),
    ("invalid UTF-8 in JSON", b'{"resourceSpans":"\xff"}', {"Content-Type": JSON}, 400),
    ("a number without end", b'{"resourceSpans":[{"schemaUrl":' + b"9" * 100_000 + b"}]}", {"Content-Type": JSON}, 400),
    ("a length beyond the end", b"\x0a" + varint(2**31), {}, 400),
    ("a varint without end", b"\x0a" + b"\xff" * 1000, {}, 400),
]


@pytest.mark.parametrize(("what", "body", "headers", "status"), BAD, ids=[row[0] for row in BAD])
def test_bad_requests_are_answered_by_the_table_and_the_next_is_served(
    what: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    async def scenario() -> None:
        async with grpc_next_hop() as hop, processor(hop) as server:
            began = time.process_time()
            answered, told = await post(server, body, **headers)
            assert answered == status, what
            assert (told == b"") == (status == 200 and headers.get("Content-Type") is None)  # no empty refusals
            assert time.process_time() - began < 10
            assert await post(server, request(TOOL_SPAN)) == (200, b"")
            assert server.status()["ledger"]["traces"]["unaccounted"] == 0

    within(60, scenario)


async def post(server: Server, body: bytes, **headers: str) -> tuple[int, bytes]:
    url = f"http://{server.addresses['http']}/v1/traces"
    told = {"Content-Type": PROTOBUF, **headers}
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=io.BytesIO(body), headers=told) as answer,
    ):
        return answer.status, await answer.read()
