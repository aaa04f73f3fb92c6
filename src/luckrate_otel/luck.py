"""The Luck Rate: of the runs that looked green, the share that got there on a bad path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt

from luckrate_otel.model import Verdict, VerdictLabel

# Standard normal quantile of a two-sided 95 % interval.
_Z = 1.959963984540054

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class LuckRate:
    """lucky / green, with the counts behind it. Shares are 0 to 1; None while no run is green, which is not "no luck".

    green: lucky + pass + unverified. With unverified runs rate is a lower bound, and upper the upper one, as if each
    of them was lucky. interval: Wilson, 95 %, of rate. unknown and not_graded runs are in no denominator.
    """

    rate: float | None
    lucky: int
    green: int
    unverified: int
    upper: float | None
    interval: Interval | None
    runs: int
    unknown: int
    not_graded: int

    def __str__(self) -> str:
        """`—`, `25 %`, or `≥ 12 %` where unverified runs make it a lower bound."""
        if self.rate is None:
            return "—"
        return f"{'≥ ' if self.unverified else ''}{self.rate:.0%}".replace("%", " %")

    def to_json(self) -> Mapping[str, float | int | list[float] | None]:
        """As the reports write it."""
        return {
            "rate": self.rate,
            "lucky": self.lucky,
            "green": self.green,
            "unverified": self.unverified,
            "upper": self.upper,
            "interval": list(self.interval) if self.interval else None,
            "runs": self.runs,
            "unknown": self.unknown,
            "not_graded": self.not_graded,
        }


def luck_rate(verdicts: Iterable[Verdict]) -> LuckRate:
    """Count verdicts, one per run."""
    counts = Counter(verdict.verdict for verdict in verdicts)
    lucky, unverified = counts[VerdictLabel.LUCKY], counts[VerdictLabel.UNVERIFIED]
    green = lucky + unverified + counts[VerdictLabel.PASS]
    return LuckRate(
        rate=lucky / green if green else None,
        lucky=lucky,
        green=green,
        unverified=unverified,
        upper=(lucky + unverified) / green if green else None,
        interval=wilson(lucky, green),
        runs=counts.total(),
        unknown=counts[VerdictLabel.UNKNOWN],
        not_graded=counts[VerdictLabel.NOT_GRADED],
    )


def wilson(hits: float, of: float) -> Interval | None:
    """Wilson score interval, 95 %, of a share; None of nothing. Sound for small counts and shares near 0 and 1."""
    if not of:
        return None
    share = hits / of
    spread = _Z * sqrt(share * (1 - share) / of + _Z**2 / (4 * of**2))
    middle = share + _Z**2 / (2 * of)
    scale = 1 + _Z**2 / of
    # At the ends the bound is exact, and must not come out as -1e-17 or 0.9999999.
    low = 0.0 if hits == 0 else (middle - spread) / scale
    high = 1.0 if hits == of else (middle + spread) / scale
    return low, high
