"""TLS and mTLS on both receivers, and certificates that are renewed under them."""

from __future__ import annotations

import logging
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from luckrate_otel.service.answers import Accepted
from luckrate_otel.service.exporter_grpc import GrpcTransport
from luckrate_otel.service.exporter_http import HttpTransport
from luckrate_otel.service.receiver_grpc import GrpcReceiver
from luckrate_otel.service.receiver_http import HttpReceiver
from luckrate_otel.service.replies import Kind, Transport
from luckrate_otel.service.signals import Signal
from luckrate_otel.service.tls import Tls
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
            assert await send(wire, endpoint, TRUSTING_OTHER) is Kind.SENT
            (tmp_path / "tls.pem").write_text("half a certific")
            assert await send(wire, endpoint, TRUSTING_OTHER) is Kind.SENT
            install("server")
            assert await send(wire, endpoint, TRUSTING) is Kind.SENT

    with caplog.at_level(logging.WARNING):
        within(30, scenario)
    assert "unusable, keeping the old" in caplog.text
