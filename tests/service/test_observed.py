"""Every metric that is read at collection is one of the vocabulary, and every gauge of the vocabulary is read."""

from __future__ import annotations

from luckrate_otel.assemble import Counts
from luckrate_otel.service.ledger import Ledger
from luckrate_otel.service.show.balance import Balance
from luckrate_otel.service.show.observed import observed
from luckrate_otel.vocabulary import METRICS, Kind


def test_a_gauge_has_a_value_to_show() -> None:
    counts, ledger = Counts(), Ledger()
    shown = observed(counts, ledger, Balance(ledger, counts, ()), (), {}, None)
    assert set(shown) <= {metric.name for metric in METRICS}
    assert {metric.name for metric in METRICS if metric.kind is Kind.GAUGE} <= set(shown)
