"""CPU of one OTLP/HTTP request in the server process, for the web toolkits that were considered (docs/decisions.md).

    pip install uvicorn httptools starlette uvloop    # none of them is a dependency
    python benchmarks/http_toolkit.py [--rounds 3]

Each server reads a POST body as a stream and answers 200 with no body. One client sends over one connection, so the
figures are the toolkit's own cost, not that of contention.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import socket
import subprocess
import sys
import time
from statistics import median
from typing import Any

SERVERS = ("aiohttp", "starlette", "aiohttp-uvloop", "starlette-uvloop")
SPAN_BYTES = 300
MEDIA = "application/x-protobuf"


def cpu() -> bytes:
    return str(time.process_time()).encode()


def serve_aiohttp(port: int, *, uvloop: bool) -> None:
    from aiohttp import web

    async def answer(request: web.BaseRequest) -> web.Response:
        if request.path == "/cpu":
            return web.Response(body=cpu())
        b"".join([chunk async for chunk in request.content.iter_any()])
        return web.Response(body=b"", content_type=MEDIA)

    async def main() -> None:
        runner = web.ServerRunner(web.Server(answer, access_log=None))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()

    if uvloop:
        import uvloop as loops

        loops.run(main())
    else:
        asyncio.run(main())


def serve_starlette(port: int, *, uvloop: bool) -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def traces(request: Request) -> Response:
        b"".join([chunk async for chunk in request.stream()])
        return Response(b"", media_type=MEDIA)

    async def used(_request: Request) -> Response:
        return Response(cpu())

    app: Any = Starlette(routes=[Route("/v1/traces", traces, methods=["POST"]), Route("/cpu", used)])
    loop = "uvloop" if uvloop else "asyncio"
    uvicorn.run(app, host="127.0.0.1", port=port, http="httptools", loop=loop, access_log=False, log_level="error")


def measure(server: str, spans: int, requests: int) -> float:
    """CPU-microseconds of the server per request."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    process = subprocess.Popen([sys.executable, __file__, "--serve", server, "--port", str(port)])
    try:
        client = connected(port)
        body = b"x" * SPAN_BYTES * spans

        def used() -> float:
            client.request("GET", "/cpu")
            return float(client.getresponse().read())

        def send(count: int) -> None:
            for _ in range(count):
                client.request("POST", "/v1/traces", body, {"Content-Type": MEDIA})
                client.getresponse().read()

        send(requests // 5)
        before = used()
        send(requests)
        return (used() - before) / requests * 1e6
    finally:
        process.terminate()
        process.wait()


def connected(port: int) -> http.client.HTTPConnection:
    while True:
        client = http.client.HTTPConnection("127.0.0.1", port)
        try:
            client.connect()
        except OSError:
            time.sleep(0.05)
        else:
            return client


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU of one OTLP/HTTP request, by web toolkit")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of which the median is shown")
    parser.add_argument("--serve", choices=SERVERS, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        toolkit, _, loop = options.serve.partition("-")
        {"aiohttp": serve_aiohttp, "starlette": serve_starlette}[toolkit](options.port, uvloop=loop == "uvloop")
        return
    print(f"{'toolkit':<20} {'1 span, µs':>12} {'512 spans, µs':>14}")
    for server in SERVERS:
        figures = [median(measure(server, *load) for _ in range(options.rounds)) for load in ((1, 2000), (512, 600))]
        print(f"{server:<20} {figures[0]:>12.0f} {figures[1]:>14.0f}", flush=True)


if __name__ == "__main__":
    main()
