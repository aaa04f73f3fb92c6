"""The admin page: is it alive, can it take telemetry, what does it hold. Also the Prometheus scrape page.

Both show counts, names and ids only; never a prompt, a tool result or a secret.
"""

from __future__ import annotations

import html
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from luckrate_otel.service.receive.answers import Refused
from luckrate_otel.service.receive.auth import Token, authorise

Snapshot = Mapping[str, Any]

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>luckrate-otel</title>
<style>body{{font:14px/1.5 system-ui;margin:2rem;max-width:60rem}}td,th{{text-align:left;padding:.1rem 1rem .1rem 0;
vertical-align:top}}table table{{border-left:1px solid #ccc;padding-left:.6rem}}</style>
<h1>luckrate-otel</h1>{body}</html>"""


# What `/` lists for whoever tries the address in a browser.
ADMIN_PAGES = {
    "/healthz": "ok while the process answers",
    "/readyz": "ok, or 503 and why requests would be refused now",
    "/status": "what it holds, as HTML or JSON; asks for the token of admin.auth, if there is one",
}
SCRAPE_PAGES = {"/metrics": "for Prometheus to scrape"}


def admin_app(status: Callable[[], Snapshot], ready: Callable[[], str | None], token: Token) -> web.Application:
    """`/healthz` 200 while the process answers; `/readyz` 200, or 503 with the reason; `/status` HTML or JSON.

    status: a snapshot of plain values. ready: None, or why requests would be refused now. The two probes need no
    token, so that an orchestrator can ask; nor does `/`, which tells nothing that the docs do not.
    """

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        reason = ready()
        return web.Response(text=f"{reason or 'ok'}\n", status=503 if reason else 200)

    async def show(request: web.Request) -> web.Response:
        try:
            authorise(request.headers.get("Authorization"), token)
        except Refused:
            return web.Response(status=401, text="unauthenticated\n", headers={"WWW-Authenticate": "Bearer"})
        snapshot = status()
        if "text/html" in request.headers.get("Accept", ""):
            return web.Response(text=_PAGE.format(body=_table(snapshot)), content_type="text/html")
        return web.Response(text=json.dumps(snapshot, indent=2) + "\n", content_type="application/json")

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/status", show)])
    app.add_routes([web.get("/", _listing(ADMIN_PAGES))])
    return app


def scrape_app(registry: CollectorRegistry) -> web.Application:
    """`/metrics` in the format the scraper asks for."""

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(registry), headers={"Content-Type": content_type})

    app = web.Application()
    app.add_routes([web.get("/metrics", metrics), web.get("/", _listing(SCRAPE_PAGES))])
    return app


def _listing(pages: Mapping[str, str]) -> Callable[[web.Request], Awaitable[web.Response]]:
    width = max(map(len, pages))
    text = "".join(f"{path:<{width}}  {words}\n" for path, words in pages.items())

    async def listing(_: web.Request) -> web.Response:
        return web.Response(text=text)

    return listing


def _table(value: Any) -> str:
    """Plain values as nested tables; every text escaped, as names in it come from telemetry."""
    if isinstance(value, Mapping):
        rows = "".join(
            f"<tr><th>{html.escape(str(key))}</th><td>{_table(item)}</td></tr>" for key, item in value.items()
        )
        return f"<table>{rows}</table>"
    if isinstance(value, list | tuple):
        return "<br>".join(_table(item) for item in value) or "&mdash;"
    return html.escape("\u2014" if value is None else str(value))
