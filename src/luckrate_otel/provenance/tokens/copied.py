"""Prose copied from a source: long runs of the same words."""

from __future__ import annotations

RUN = 8  # words in a row that two texts share only if one was copied; news deduplication uses 5 to 10
MAX_RUNS = 50  # looked at per text, spread evenly


def runs(phrase: str) -> list[str]:
    """Runs of RUN words, evenly spread: a copied passage of 2·RUN words holds at least one."""
    words = phrase.split(" ")
    starts = range(0, len(words) - RUN + 1, max(RUN, len(words) // MAX_RUNS))
    return [" ".join(words[n : n + RUN]) for n in starts]


def anchor(run: str) -> str:
    """The word of a run to look for in texts: the longest is the rarest, near enough."""
    return max(run.split(" "), key=len)
