"""Divides a refused request, so that only what is wrong with it is dropped."""

from __future__ import annotations

from luckrate_otel.errors import Rejected
from luckrate_otel.otlp.split import count as count_of
from luckrate_otel.otlp.split import halve
from luckrate_otel.service.signals import ROUTES, Signal


def divide(signal: Signal, body: bytes, count: int) -> tuple[tuple[bytes, int], tuple[bytes, int]] | None:
    """Two requests with half of the spans, log records or metrics each; None if there are fewer than two, or none can
    be found. The counts add up to `count`: where that is in whole requests, a request counts with its first half.
    """
    if not ROUTES[signal].joins:
        return None  # what does not join does not come apart either
    try:
        halves = halve(body)
        if halves is None:
            return None
        left, right = (count_of(signal, half) for half in halves)
    except Rejected:
        return None
    if left + right != count:
        left, right = count, 0
    return (halves[0], left), (halves[1], right)
