"""What was acknowledged is delivered or kept, and nothing else is left over, in whatever order things go wrong."""

from __future__ import annotations

import asyncio
import random
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import grpc
import grpc.aio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckrate_otel.config import parse
from luckrate_otel.service.journal import room, writer
from luckrate_otel.service.journal.file import Full, JournalFile
from luckrate_otel.service.journal.rows import Change
from luckrate_otel.service.receive.answers import PROTOBUF
from luckrate_otel.service.server import Server
from luckrate_otel.service.signals import ROUTES, Signal
from tests.faults.load import arrived, run, spans_in
from tests.faults.processor import assert_balanced
from tests.next_hop import Say, grpc_next_hop, within


@dataclass(frozen=True)
class Act:
    """One agent run, sent in its three requests. after: turns of the event loop before it begins. patience: turns until
    its sender hangs up, None for one that waits. refuses: commits that the disk then refuses."""

    wire: str
    after: int
    patience: int | None
    refuses: int


ACTS = st.builds(
    Act, st.sampled_from(["grpc", "http"]), st.integers(0, 30), st.none() | st.integers(0, 60), st.integers(0, 2)
)


@settings(max_examples=12, deadline=None)
@given(acts=st.lists(ACTS, min_size=1, max_size=24), seed=st.integers(0, 2**32), listens=st.booleans())
def test_what_was_acknowledged_is_delivered_or_kept(acts: Sequence[Act], seed: int, *, listens: bool) -> None:
    """Senders come at once over both wires and hang up, the disk fills, and the next hop takes it or does not."""

    async def scenario() -> None:
        async with grpc_next_hop(lambda _signal, _body: Say() if listens else Say(grpc.StatusCode.UNAVAILABLE)) as hop:
            server = Server(parse(CONFIG.format(endpoint=hop.endpoint, folder=folder), "test.yaml", {}), ())
            await server.start()
            async with grpc.aio.insecure_channel(server.addresses["grpc"]) as channel, aiohttp.ClientSession() as http:
                senders = Senders(server, channel, http, disk, random.Random(seed))
                await asyncio.gather(*(senders.act(act) for act in acts))
            await server.stop(5 if listens else 0)
            assert_nothing_is_left(server)
            assert_balanced(dict(server.status()))
            came = arrived([hop])
            assert max(came.verdicts.values(), default=1) == 1
            delivered.update(came.spans)
            acknowledged.update(senders.acknowledged)
            refused.update(senders.refused)
            doubled.append(came.doubled)

    before = journals()
    delivered: set[tuple[bytes, bytes]] = set()
    acknowledged: set[tuple[bytes, bytes]] = set()
    refused: set[tuple[bytes, bytes]] = set()
    doubled: list[int] = []
    with tempfile.TemporaryDirectory() as folder, full_at_times() as disk:
        within(30, scenario)
        kept = kept_in(folder)
        assert acknowledged <= delivered | kept
        assert refused.isdisjoint(delivered | kept)
        assert doubled == [0]
    assert journals() == before


def journals() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "journal"]


CONFIG = """
receivers: {{grpc: {{endpoint: "127.0.0.1:0"}}, http: {{endpoint: "127.0.0.1:0"}}}}
destinations: {{backend: {{endpoint: "{endpoint}"}}}}
journal: {{path: {folder}}}
admin: {{endpoint: none}}
metrics: {{prometheus: none}}
"""


class Disk:
    """refuses: so many of the next commits find no room."""

    refuses = 0


@contextmanager
def full_at_times() -> Iterator[Disk]:
    disk = Disk()
    write = JournalFile.write

    def refusing(self: JournalFile, changes: Sequence[Change]) -> None:
        if disk.refuses:
            disk.refuses -= 1
            raise Full("disk is full")
        write(self, changes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JournalFile, "write", refusing)
        patch.setattr(writer, "RETRY_AFTER", 0.001)
        patch.setattr(room, "RESERVE_BYTES", 4096)
        yield disk


class Senders:
    """acknowledged, refused: spans of requests that were answered so; nothing is known of those that were not."""

    def __init__(
        self,
        server: Server,
        channel: grpc.aio.Channel,
        http: aiohttp.ClientSession,
        disk: Disk,
        chance: random.Random,
    ) -> None:
        self._call = channel.unary_unary(ROUTES[Signal.TRACES].method, None, None)
        self._url = f"http://{server.addresses['http']}/v1/traces"
        self._http = http
        self._disk = disk
        self._chance = chance
        self.acknowledged: set[tuple[bytes, bytes]] = set()
        self.refused: set[tuple[bytes, bytes]] = set()

    async def act(self, act: Act) -> None:
        made = run(self._chance)
        await turns(act.after)
        self._disk.refuses = max(self._disk.refuses, act.refuses)
        for body in made.requests:
            sending = asyncio.create_task(self._send(act.wire, body))
            if act.patience is not None:
                await turns(act.patience)
                sending.cancel()
            with suppress(asyncio.CancelledError):
                answered = self.acknowledged if await sending else self.refused
                answered.update(spans_in([body]))

    async def _send(self, wire: str, body: bytes) -> bool:
        if wire == "grpc":
            return await self._call(body).code() is grpc.StatusCode.OK
        async with self._http.post(self._url, data=body, headers={"Content-Type": PROTOBUF}) as answer:
            return answer.status == 200


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def assert_nothing_is_left(server: Server) -> None:
    """Promises to requests that never came to be, and what works for them."""
    intake, journal, keeping = server._intake, server._journal, server._keeping
    assert journal is not None
    assert keeping is not None
    left = (intake._promised_bytes, dict(keeping._coming), keeping.traces, journal._pending_bytes)
    assert (*left, journal._steps, journal._timer) == (0, {}, 0, 0, [], None)
    ours = [task for task in asyncio.all_tasks() if "luckrate_otel" in repr(task.get_coro())]
    assert ours == []


def kept_in(folder: str) -> set[tuple[bytes, bytes]]:
    """The spans that the next process would find."""
    file = JournalFile(Path(folder))
    file.close()
    assert file.kept.pieces == []  # as all was judged when it stopped
    return set(spans_in(body.wire for body in file.kept.bodies if body.signal is Signal.TRACES))
