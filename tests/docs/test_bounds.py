"""Bounds that pages tell are those of the code: whoever changes one is told which sentence says otherwise."""

from pathlib import Path

import pytest

from luckrate_otel import annotate, compare
from luckrate_otel.adapters import MARKERS
from luckrate_otel.check import MAX_LISTED
from luckrate_otel.infer import counted
from luckrate_otel.otlp import shallow
from luckrate_otel.provenance.tokens import derived, index, leaves, pointing, sources
from luckrate_otel.reports import markdown
from luckrate_otel.sdk import processor
from luckrate_otel.service import reading, server
from luckrate_otel.service.receive import inflate, receiver_http
from luckrate_otel.service.send import queue
from luckrate_otel.service.show import meter

DOCS = Path(__file__).parents[2] / "docs"
MILLION = 10**6
WORDS = {4: "four", 5: "five", 6: "six"}

TOLD = [
    ("limits", f"keeps {meter.MAX_LABEL_VALUES} values"),
    ("metrics", f"at most {meter.MAX_LABEL_VALUES} values"),
    ("security", f"at most {meter.MAX_LABEL_VALUES} label values"),
    ("metrics", f"gets {annotate.MAX_EVENTS_PER_SPAN} events at most"),
    ("spec", f"lists its first {MAX_LISTED} findings"),
    ("spec", f"nothing is proposed from fewer than {WORDS[counted.MIN_SUPPORT]} runs"),
    ("reports", f"At most {markdown.MAX_FINDINGS} findings and {markdown.MAX_CASES} cases"),
    ("reports", f"at least {WORDS[compare.MIN_RUNS]} runs"),
    ("provenance", f"a text over {sources.MAX_TEXT // MILLION} million characters"),
    ("provenance", f"{sources.MAX_CHARS // MILLION} million in all"),
    ("provenance", f"more than {leaves.MAX_LEAVES:,} argument leaves"),
    ("provenance", f"nested deeper than {leaves.MAX_DEPTH}"),
    ("provenance", f"beyond {index.MAX_COMPARED // MILLION} million compared characters"),
    ("provenance", f"the latest {derived.MAX_READ:,} characters"),
    ("provenance", f"the first {pointing.MAX_REQUEST:,} characters of a turn"),
    ("library", f"queue ({processor.MAX_WAITING} spans"),
    ("reliability", f"a window of at most {2**inflate.WINDOW_LOG // 1024**2} MiB"),
    ("reliability", f"over {shallow.MAX_GROUPS:,} resources and scopes, or {reading.MAX_ITEMS:,} spans or log records"),
    ("reliability", f"takes over {receiver_http.DEADLINE:.0f} s in all"),
    ("security", f"all bodies in work share {receiver_http.MAX_BUFFERED_BYTES // 1024**2} MiB"),
    ("performance", f"at most {queue.LINGER_NS // MILLION} ms later"),
    ("decisions", f"one of {WORDS[len(MARKERS)]} attribute keys"),
    ("performance", f"searched for {WORDS[len(MARKERS)]} attribute names"),
    ("start", f"takes {server.DRAIN:.0f} seconds"),
]


@pytest.mark.parametrize(("page", "sentence"), TOLD, ids=[f"{page}: {sentence}" for page, sentence in TOLD])
def test_a_bound_is_as_told(page: str, sentence: str) -> None:
    assert sentence in " ".join((DOCS / f"{page}.md").read_text("utf-8").split())
