"""Labels that come late, verdicts that wait for one, and the last runs of a case: over real sockets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import grpc.aio
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from luckrate_otel.service.server import Server
from luckrate_otel.service.signals import ROUTES, Signal
from luckrate_otel.spec import Spec
from luckrate_otel.telemetry import LogRecord, Value
from tests.faults.processor import processor
from tests.next_hop import NextHop, grpc_next_hop, within
from tests.service.test_server import configuration, events, get, running, sample, spans


def spec(wait: str, **more: Value) -> Spec:
    written = {"name": "s", "forbidden": ["pay"], "output": {"evaluation": {"name": "right", "wait": wait}}}
    return Spec.from_mapping({**written, **more})


# ---- what an agent and a judge of its answers send ----------------------------------------------


def keys(**values: str) -> list[KeyValue]:
    return [KeyValue(key=k.replace("__", "."), value=AnyValue(string_value=v)) for k, v in values.items()]


def agent_run(number: int, *tools: str, case: str = "") -> bytes:
    """A run, all of it in one request: an agent span and its calls, one after the other."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.extend(keys(service__name="shop"))
    made = resource.scope_spans.add().spans
    root = made.add(
        trace_id=trace(number), span_id=b"root" + bytes(4), name="invoke_agent shop", start_time_unix_nano=1
    )
    root.end_time_unix_nano = 10_000_000_000
    root.attributes.extend(keys(gen_ai__operation__name="invoke_agent", gen_ai__agent__name="shop"))
    root.attributes.extend(keys(luckrate__case=case) if case else [])
    for place, tool in enumerate(tools, 1):
        call = made.add(trace_id=trace(number), span_id=bytes([place]) * 8, parent_span_id=root.span_id, name="call")
        call.start_time_unix_nano, call.end_time_unix_nano = place * 1_000_000_000, place * 1_000_000_000 + 1
        call.attributes.extend(keys(gen_ai__operation__name="execute_tool", gen_ai__tool__name=tool))
    return request.SerializeToString()


def trace(number: int) -> bytes:
    return number.to_bytes(16, "big")


def label(number: int, said: str, name: str = "right", second: int = 20) -> bytes:
    """What an evaluation service sends when it has looked at a run."""
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    record.trace_id, record.span_id = trace(number), b"root" + bytes(4)
    record.event_name, record.time_unix_nano = "gen_ai.evaluation.result", second * 1_000_000_000
    record.attributes.extend(keys(gen_ai__evaluation__name=name, gen_ai__evaluation__score__label=said))
    return request.SerializeToString()


Send = Callable[[Server, Signal, bytes], Awaitable[None]]


async def by_grpc(server: Server, signal: Signal, body: bytes) -> None:
    async with grpc.aio.insecure_channel(server.addresses["grpc"]) as channel:
        await channel.unary_unary(ROUTES[signal].method, None, None)(body)


async def by_http(server: Server, signal: Signal, body: bytes) -> None:
    url = f"http://{server.addresses['http']}/v1/{signal}"
    headers = {"Content-Type": "application/x-protobuf"}
    async with aiohttp.ClientSession() as session, session.post(url, data=body, headers=headers) as answer:
        assert answer.status == 200


# ---- what came out --------------------------------------------------------------------------------


def verdicts(hop: NextHop) -> list[LogRecord]:
    """Ours; the labels pass through beside them."""
    return [e for e in events(hop) if e.attributes.get("gen_ai.evaluation.name") == "luckrate.path"]


def told(hop: NextHop) -> list[tuple[Value, ...]]:
    """Trace, verdict, who said whether the output was right, revision."""
    return [
        (
            int(event.trace_id, 16),
            event.attributes["gen_ai.evaluation.score.label"],
            event.attributes["luckrate.output.source"],
            event.attributes.get("luckrate.revision"),
        )
        for event in verdicts(hop)
    ]


def saying(count: int) -> Callable[[NextHop], bool]:
    return lambda hop: len(verdicts(hop)) >= count


async def page(server: Server) -> str:
    return (await get(f"http://{server.addresses['prometheus']}/metrics"))[1]


def runs(page: str) -> dict[tuple[str, str, str], float]:
    """(output, source, path) → runs, of those that there were."""
    found = {}
    for output in ("ok", "not_ok", "unknown"):
        for source in ("evaluation", "status", "none"):
            for path in ("ok", "bad", "unknown"):
                labels = {"luckrate_output": output, "luckrate_output_source": source, "luckrate_path": path}
                if count := sample(page, "luckrate_runs_total", labels):
                    found[output, source, path] = count
    return found


# ---- labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("send", [by_grpc, by_http])
@pytest.mark.parametrize(
    ("tool", "said", "verdict", "output", "path"),
    [
        ("look", "pass", "pass", "ok", "ok"),
        ("pay", "pass", "lucky", "ok", "bad"),
        ("pay", "fail", "fail", "not_ok", "bad"),
    ],
)
def test_a_verdict_comes_with_the_label_that_it_waited_for(
    send: Send, tool: str, said: str, verdict: str, output: str, path: str
) -> None:
    async def scenario() -> None:
        async with grpc_next_hop() as hop, running(configuration(hop.endpoint), spec("5m")) as server:
            await send(server, Signal.TRACES, agent_run(1, tool))
            await hop.until(lambda h: len(spans(h)) == 2)  # the spans do not wait
            root = next(span for span in spans(hop) if span.head.name == "invoke_agent shop")
            assert "luckrate.path" in root.attributes
            assert not {"luckrate.verdict", "luckrate.output", "luckrate.lucky"} & set(root.attributes)
            assert verdicts(hop) == []
            assert runs(await page(server)) == {}
            await send(server, Signal.LOGS, label(2, "pass"))  # of another run
            await send(server, Signal.LOGS, label(1, "pass", name="tone"))  # of something else
            await send(server, Signal.LOGS, label(1, said))
            await hop.until(saying(1))
            assert told(hop) == [(1, verdict, "evaluation", None)]
            assert runs(await page(server)) == {(output, "evaluation", path): 1}
            assert len([e for e in events(hop) if e not in verdicts(hop)]) == 3  # the labels themselves pass through

    within(30, scenario)


def test_without_its_label_a_verdict_waits_no_longer_than_it_is_told() -> None:
    """And a label that comes later still corrects it, upwards: no counter is ever taken back."""

    async def scenario() -> None:
        async with grpc_next_hop() as hop, running(configuration(hop.endpoint), spec("300ms")) as server:
            await by_grpc(server, Signal.TRACES, agent_run(1, "pay"))
            await hop.until(saying(1))
            assert told(hop) == [(1, "lucky", "status", None)]
            before = await page(server)
            assert runs(before) == {("ok", "status", "bad"): 1}
            await by_grpc(server, Signal.LOGS, label(1, "fail"))
            await hop.until(saying(2))
            await by_grpc(server, Signal.LOGS, label(1, "fail"))  # says nothing new
            await by_grpc(server, Signal.LOGS, label(1, "pass", second=21))
            await hop.until(saying(3))
            assert told(hop)[1:] == [(1, "fail", "evaluation", 2), (1, "lucky", "evaluation", 3)]
            after = await page(server)
            assert runs(after) == runs(before)
            for moved in (("lucky", "fail"), ("fail", "lucky")):
                labels = {"luckrate_from": moved[0], "luckrate_to": moved[1]}
                assert sample(after, "luckrate_revisions_total", labels) == 1

    within(30, scenario)


def test_a_label_that_is_there_first_makes_nothing_wait() -> None:
    async def scenario() -> None:
        async with grpc_next_hop() as hop, running(configuration(hop.endpoint), spec("5m")) as server:
            await by_grpc(server, Signal.LOGS, label(1, "pass"))
            await by_grpc(server, Signal.TRACES, agent_run(1, "pay"))
            await hop.until(saying(1))
            assert told(hop) == [(1, "lucky", "evaluation", None)]
            await hop.until(lambda h: len(spans(h)) == 2)
            root = next(span for span in spans(hop) if span.head.name == "invoke_agent shop")
            assert (root.attributes["luckrate.verdict"], root.attributes["luckrate.lucky"]) == ("lucky", True)

    within(30, scenario)


def test_what_waits_at_the_end_is_said_before_it() -> None:
    async def scenario() -> None:
        async with grpc_next_hop() as hop:
            async with running(configuration(hop.endpoint), spec("5m")) as server:
                await by_grpc(server, Signal.TRACES, agent_run(1, "pay"))
                await hop.until(lambda h: len(spans(h)) == 2)
                assert verdicts(hop) == []
            assert told(hop) == [(1, "lucky", "status", None)]

    within(30, scenario)


# ---- the last runs of a case --------------------------------------------------------------------

_OF_CASE = ("luckrate.case.runs", "luckrate.case.soft", "luckrate.case.soft_majority")


def test_the_last_k_runs_of_a_case_decide_what_most_of_them_do() -> None:
    """One after the other, of two cases at once; k is the spec's."""
    soft, clean = ("look", "look"), ("look",)
    played = [
        ("A", soft, (1, 1, True)),
        ("A", clean, (2, 1, False)),
        ("B", clean, (1, 0, False)),
        ("A", soft, (3, 2, True)),
        ("A", clean, (3, 1, False)),  # the first has left the window
        ("B", soft, (2, 1, False)),
        ("A", clean, (3, 1, False)),
        ("A", clean, (3, 0, False)),
    ]

    async def scenario() -> None:
        by_case = Spec.from_mapping({"name": "s", "max_steps": 1, "k": 3})
        async with grpc_next_hop() as hop, running(configuration(hop.endpoint), by_case) as server:
            for number, (case, tools, _) in enumerate(played, 1):
                await by_grpc(server, Signal.TRACES, agent_run(number, *tools, case=case))
                await hop.until(saying(number))
            assert [tuple(event.attributes[key] for key in _OF_CASE) for event in verdicts(hop)] == [
                expected for _, _, expected in played
            ]
            ids = [event.attributes["luckrate.case.id"] for event in verdicts(hop)]
            assert len(set(ids)) == 2
            assert "A" not in ids  # a case may be the text of a task
            assert sample(await page(server), "luckrate_case_soft_majority_total", {"luckrate_spec_name": "s"}) == 2

    within(60, scenario)


def test_a_corrected_run_is_not_two_runs_of_its_case() -> None:
    async def scenario() -> None:
        labelled = spec("300ms", max_steps=1, k=3)
        async with grpc_next_hop() as hop, running(configuration(hop.endpoint), labelled) as server:
            await by_grpc(server, Signal.TRACES, agent_run(1, "look", "look", case="A"))
            await hop.until(saying(1))
            await by_grpc(server, Signal.LOGS, label(1, "fail"))
            await hop.until(saying(2))
            assert [tuple(event.attributes[key] for key in _OF_CASE) for event in verdicts(hop)] == [(1, 1, True)] * 2

    within(30, scenario)


# ---- the whole program --------------------------------------------------------------------------


@pytest.mark.slow
def test_the_program_waits_for_a_label_and_takes_a_correction(tmp_path: Path) -> None:
    """`serve` as a process, with a spec from a file."""
    written = tmp_path / "spec.yaml"
    written.write_text(
        "name: s\nforbidden: [pay]\noutput: {evaluation: {name: right, wait: 500ms}}\n", encoding="utf-8"
    )

    async def send(address: str, signal: Signal, body: bytes) -> None:
        async with grpc.aio.insecure_channel(address) as channel:
            await channel.unary_unary(ROUTES[signal].method, None, None)(body)

    async def scenario() -> None:
        async with grpc_next_hop() as hop:
            specs = f"none\nspecs: [{written}]"
            async with processor(tmp_path, hop.endpoint, journal=specs) as serving:
                await send(serving.grpc, Signal.TRACES, agent_run(1, "pay"))
                await hop.until(saying(1))
                assert told(hop) == [(1, "lucky", "status", None)]
                await send(serving.grpc, Signal.LOGS, label(1, "fail"))
                await hop.until(saying(2))
                assert told(hop)[1:] == [(1, "fail", "evaluation", 2)]
                assert await serving.stop() == 0

    within(60, scenario)
