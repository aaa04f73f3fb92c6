"""Send captured requests as an exporter would: every other one over gRPC, the rest as OTLP/JSON over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPConnection
from typing import Any, Self

import grpc

from luckrate_otel.errors import LuckrateError
from luckrate_otel.otlp.json import to_protobuf

_EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
SECONDS = 10.0


class Sender:
    """One connection of each kind, to loopback. Use as a context manager."""

    def __init__(self, grpc_address: str, http_address: str) -> None:
        self._channel = grpc.insecure_channel(grpc_address)
        self._export = self._channel.unary_unary(_EXPORT, request_serializer=None, response_deserializer=None)
        self._http = HTTPConnection(http_address, timeout=SECONDS)
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()
        self._http.close()

    def send(self, request: Mapping[str, Any]) -> None:
        """Deliver one OTLP/JSON trace request; raises LuckrateError if it was not taken."""
        self._count += 1
        if self._count % 2:
            self._send_grpc(to_protobuf("traces", request))
        else:
            self._send_http(json.dumps(request).encode())

    def _send_grpc(self, body: bytes) -> None:
        try:
            self._export(body, timeout=SECONDS, wait_for_ready=True)
        except grpc.RpcError as error:
            raise LuckrateError(f"the processor did not take a request over gRPC: {error}") from error

    def _send_http(self, body: bytes) -> None:
        try:
            self._http.request("POST", "/v1/traces", body, {"content-type": "application/json"})
            answer = self._http.getresponse()
            answer.read()
        except OSError as error:
            raise LuckrateError(f"the processor did not take a request over HTTP: {error}") from error
        if answer.status != 200:
            raise LuckrateError(f"the processor refused a request over HTTP with status {answer.status}")
