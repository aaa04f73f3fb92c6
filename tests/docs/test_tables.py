"""What the docs say of every metric, attribute and setting is what the code says: `make docs` would change nothing."""

import re

import pytest

from luckrate_otel.config import keys
from luckrate_otel.vocabulary import ATTRIBUTES, METRICS
from tests.docs.tables import DOCS, PAGES, places, renew

TEXTS = {name: (DOCS / name).read_text(encoding="utf-8") for name in PAGES}
NAMES = {"metrics.md": [item.name for item in (*METRICS, *ATTRIBUTES)], "configuration.md": list(keys())}


@pytest.mark.parametrize("page", PAGES)
def test_committed_is_generated(page: str) -> None:
    assert renew(TEXTS[page], PAGES[page]) == TEXTS[page], "run `make docs`"


@pytest.mark.parametrize("page", PAGES)
def test_each_table_has_one_place_and_no_row_is_anywhere_else(page: str) -> None:
    assert sorted(places(TEXTS[page])) == sorted(PAGES[page])
    assert sorted(re.findall(r"^\| `([^`]+)` \|", TEXTS[page], re.MULTILINE)) == sorted(NAMES[page])


OLD = "before\n<!-- table one, written by `make docs` -->\n| stale |\n<!-- end of table -->\nafter\n"


def test_only_what_is_between_the_marks_is_written() -> None:
    assert renew(OLD, {"one": lambda: "| new |\n"}) == OLD.replace("| stale |", "| new |")


def test_a_place_for_a_table_that_nobody_makes_is_an_error() -> None:
    with pytest.raises(KeyError, match="one"):
        renew(OLD, {})
