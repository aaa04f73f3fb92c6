"""TLS and mTLS on both receivers, and certificates that are renewed under them."""

from __future__ import annotations

import logging
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from luckrate_otel.config import parse
from luckrate_otel.service.receive.answers import Accepted
from luckrate_otel.service.receive.receiver_grpc import GrpcReceiver
from luckrate_otel.service.receive.receiver_http import HttpReceiver
from luckrate_otel.service.send.exporter_grpc import GrpcTransport
from luckrate_otel.service.send.exporter_http import HttpTransport
from luckrate_otel.service.send.replies import Kind, Transport
from luckrate_otel.service.server import Server
from luckrate_otel.service.signals import Signal
from luckrate_otel.service.tls import Tls, client_context
from tests.next_hop import within
from tests.service.test_contract import Intake
from tests.service.test_exporters import CERTS, KNOWN, MUTUAL, SERVER, STRANGER, TRUSTING

TRUSTING_OTHER = Tls(ca=str(CERTS / "other-ca.pem"))


@asynccontextmanager
async def receiver(wire: str, tls: Tls) -> AsyncIterator[str]:
    intake = Intake(Accepted())
    if wire == "grpc":
        over_grpc = GrpcReceiver(intake.accept)
        yield f"https://localhost:{await over_grpc.start('127.0.0.1:0', tls)}"
        await over_grpc.stop(0)
    else:
        over_http = HttpReceiver(intake.accept, grace=0.1)
        yield f"https://localhost:{await over_http.start('127.0.0.1', 0, tls)}"
        await over_http.stop()


async def send(wire: str, endpoint: str, tls: Tls | None) -> Kind:
    transport: Transport = (GrpcTransport if wire == "grpc" else HttpTransport)(endpoint, tls=tls, timeout=5)
    reply = await transport.send(Signal.TRACES, b"body")
    await transport.close()
    return reply.kind


@pytest.mark.parametrize("wire", ["grpc", "http"])
@pytest.mark.parametrize(
    ("server", "client", "kind"),
    [
        (SERVER, TRUSTING, Kind.SENT),
        (SERVER, TRUSTING_OTHER, Kind.RETRY),
        (MUTUAL, KNOWN, Kind.SENT),
        (MUTUAL, TRUSTING, Kind.RETRY),
        (MUTUAL, STRANGER, Kind.RETRY),
    ],
)
def test_who_gets_in(wire: str, server: Tls, client: Tls, kind: Kind) -> None:
    async def scenario() -> None:
        async with receiver(wire, server) as endpoint:
            assert await send(wire, endpoint, client) is kind

    within(20, scenario)


@pytest.mark.parametrize("wire", ["grpc", "http"])
def test_a_renewed_certificate_is_used_at_once_and_a_broken_one_never(
    wire: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def install(name: str) -> None:
        shutil.copy(CERTS / f"{name}.key", tmp_path / "tls.key")
        shutil.copy(CERTS / f"{name}.pem", tmp_path / "tls.pem")

    async def scenario() -> None:
        install("server")
        async with receiver(wire, Tls(str(tmp_path / "tls.pem"), str(tmp_path / "tls.key"))) as endpoint:
            assert await send(wire, endpoint, TRUSTING) is Kind.SENT
            install("other")
            assert await send(wire, endpoint, TRUSTING_OTHER) is Kind.SENT
            assert await send(wire, endpoint, TRUSTING) is Kind.RETRY
            (tmp_path / "tls.pem").unlink()
            for _ in range(3):  # said once, not at each connection
                assert await send(wire, endpoint, TRUSTING_OTHER) is Kind.SENT
            (tmp_path / "tls.pem").write_text("half a certific")
            assert await send(wire, endpoint, TRUSTING_OTHER) is Kind.SENT
            shutil.copy(CERTS / "server.pem", tmp_path / "tls.pem")  # its key is still the other's
            assert await send(wire, endpoint, TRUSTING_OTHER) is Kind.SENT
            install("server")
            assert await send(wire, endpoint, TRUSTING) is Kind.SENT

    with caplog.at_level(logging.INFO, "luckrate_otel"):
        within(30, scenario)
    said = [record.getMessage() for record in caplog.records if "TLS" in record.getMessage()]
    kinds = ["read again" if "read again" in line else line.rpartition(": ")[2] for line in said]
    assert kinds == ["read again", "FileNotFoundError", "SSLError", "SSLError", "read again"]


@pytest.mark.parametrize("wire", ["grpc", "http"])
def test_who_senders_must_be_signed_by_is_read_again_too(wire: str, tmp_path: Path) -> None:
    def trust(name: str) -> None:
        shutil.copy(CERTS / name, tmp_path / "clients.pem")

    async def scenario() -> None:
        trust("ca.pem")
        assert MUTUAL.cert is not None
        async with receiver(wire, Tls(MUTUAL.cert, MUTUAL.key, str(tmp_path / "clients.pem"))) as endpoint:
            assert [await send(wire, endpoint, who) for who in (KNOWN, STRANGER)] == [Kind.SENT, Kind.RETRY]
            trust("other-ca.pem")
            assert [await send(wire, endpoint, who) for who in (KNOWN, STRANGER)] == [Kind.RETRY, Kind.SENT]

    within(30, scenario)


def test_the_admin_page_renews_its_certificate_and_asks_for_one_where_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def install(name: str) -> None:
        shutil.copy(CERTS / f"{name}.key", tmp_path / "tls.key")
        shutil.copy(CERTS / f"{name}.pem", tmp_path / "tls.pem")

    async def asked(address: str, tls: Tls) -> int | None:
        """HTTP status; None if no connection came about."""
        url = f"https://localhost:{address.rpartition(':')[2]}/healthz"
        async with aiohttp.ClientSession() as session:
            try:
                async with session.get(url, ssl=client_context(tls)) as answer:
                    return answer.status
            except aiohttp.ClientError:
                return None

    async def scenario() -> None:
        install("server")
        config = parse(
            f"""
            receivers: {{grpc: {{endpoint: none}}, http: {{endpoint: "127.0.0.1:0"}}}}
            destinations: {{backend: {{endpoint: "http://127.0.0.1:1"}}}}
            journal: none
            metrics: {{prometheus: none}}
            admin:
              endpoint: "127.0.0.1:0"
              tls: {{cert: {tmp_path}/tls.pem, key: {tmp_path}/tls.key, client_ca: {tmp_path}/clients.pem}}
            """,
            "test.yaml",
            {},
        )
        shutil.copy(CERTS / "ca.pem", tmp_path / "clients.pem")
        server = Server(config, [])
        await server.start()
        address = server.addresses["admin"]
        known_to_other = Tls(KNOWN.cert, KNOWN.key, TRUSTING_OTHER.ca)
        assert [await asked(address, who) for who in (KNOWN, TRUSTING, known_to_other)] == [200, None, None]
        install("other")
        assert [await asked(address, who) for who in (KNOWN, TRUSTING, known_to_other)] == [None, None, 200]
        (tmp_path / "tls.pem").write_text("half a certific")
        assert await asked(address, known_to_other) == 200
        install("server")
        assert await asked(address, KNOWN) == 200
        await server.stop(1)

    with caplog.at_level(logging.INFO):
        within(30, scenario)
    assert "TLS files of the admin page are unusable, keeping the old" in caplog.text
