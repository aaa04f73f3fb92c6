"""Each search that docs/backends.md has for Jaeger finds in Jaeger what the page says, and nothing else."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from luckrate_otel.demo.captured import Play, read_capture, renew
from tests.programs.backends import Jaeger, jaeger
from tests.programs.play import deliver
from tests.programs.running import free_addresses, luckrate, until

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[2]
SERVICE = "order-support"

# What each recipe is to find, by the names of `plays`.
FOUND = {
    "luckrate.verdict=lucky": {"injected"},
    "luckrate.max_severity=hard": {"injected"},
    "luckrate.spec.name=refunds luckrate.verdict=fail": {"failed"},
    "luckrate.close_reason=no_root": {"rootless"},
    "luckrate.late=true": {"late"},
}
RECIPES = re.findall(
    r"^\| [^|]+ \| `(luckrate\.[^`]*=[^`]*)` \|$", (ROOT / "docs/backends.md").read_text("utf-8"), re.MULTILINE
)

_CONFIG = """\
receivers: {{grpc: {{endpoint: "{LUCKRATE}"}}, http: {{endpoint: none}}}}
# As the page says of a destination that is Jaeger itself.
destinations: {{jaeger: {{endpoint: "http://{jaeger}", signals: [traces]}}}}
specs: ["{spec}"]
clocks: {{settle: 500ms, verdict_after: 2s}}
metrics: {{prometheus: none}}
journal: none
admin: {{endpoint: "{LUCKRATE_ADMIN}"}}
"""


@dataclass(frozen=True)
class Stored:
    jaeger: Jaeger
    plays: Mapping[str, Play]

    def find(self, **tags: str) -> set[str]:
        """Names of the plays whose traces Jaeger finds."""
        ids = {trace["traceID"] for trace in self.jaeger.find(SERVICE, **tags)}
        return {name for name, play in self.plays.items() if ids & set(play.trace_ids)}


def captured(scenario: str) -> Play:
    return renew("langgraph", scenario, read_capture("langgraph", scenario), os.urandom(16), time.time_ns())


def without(play: Play, wanted: Any) -> Play:
    """The spans of a play that wanted(span) is not true of."""
    kept = tuple(
        {"resourceSpans": [_thinned(group, wanted) for group in request["resourceSpans"]]} for request in play.requests
    )
    return replace(play, requests=kept)


def _thinned(group: Any, wanted: Any) -> Any:
    scopes = [{**scope, "spans": [s for s in scope["spans"] if not wanted(s)]} for scope in group["scopeSpans"]]
    return {**group, "scopeSpans": scopes}


def is_root(span: Any) -> bool:
    return not span.get("parentSpanId")


def is_policy(span: Any) -> bool:
    return bool(span["name"] == "execute_tool check_policy")


def failed(play: Play) -> Play:
    for request in play.requests:
        for group in request["resourceSpans"]:
            for scope in group["scopeSpans"]:
                for span in filter(is_root, scope["spans"]):
                    span["status"] = {"code": 2}
    return play


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    folder = tmp_path_factory.mktemp("recipes")
    late = captured("s1")
    plays = {
        "careful": captured("s1"),
        "injected": captured("s4"),
        "failed": failed(captured("s1")),
        "rootless": without(captured("s1"), is_root),
        "late": without(late, is_policy),
    }
    with ExitStack() as stack:
        store = stack.enter_context(jaeger(folder))
        env = free_addresses("LUCKRATE", "LUCKRATE_ADMIN")
        spec = ROOT / "collector-config/refunds.yaml"
        (folder / "luckrate.yaml").write_text(_CONFIG.format(**env, jaeger=store.otlp, spec=spec), encoding="utf-8")
        stack.enter_context(luckrate(folder / "luckrate.yaml", folder / "luckrate.log", env))
        deliver(env["LUCKRATE"], *plays.values())
        found = Stored(store, plays)
        graded = {"luckrate__spec__name": "refunds"}
        until(lambda: found.find(**graded) == set(plays), what=lambda: found.find(**graded))
        deliver(env["LUCKRATE"], without(late, lambda span: not is_policy(span)))
        yield found


def test_every_recipe_is_tried() -> None:
    assert set(RECIPES) == set(FOUND)


@pytest.mark.parametrize("recipe", FOUND)
def test_recipe(stored: Stored, recipe: str) -> None:
    tags = dict(pair.split("=") for pair in recipe.replace(".", "__").split())
    until(lambda: stored.find(**tags) == FOUND[recipe], 20, what=lambda: stored.find(**tags))
