"""What an assembler counts about itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """Gauges and counters of one assembler.

    Gauges: held_spans, held_bytes (payloads and facts not judged yet), late_bytes (facts of judged runs), link_bytes,
    open_runs (as of the last look at each trace).
    Counters: late (spans after a verdict), unjudged_late (those whose run was given up for memory), duplicates (same
    content), conflicting (same identity, other content), links_dropped, errors (traces that failed).
    """

    held_spans: int = 0
    held_bytes: int = 0
    late_bytes: int = 0
    link_bytes: int = 0
    open_runs: int = 0
    late: int = 0
    unjudged_late: int = 0
    duplicates: int = 0
    conflicting: int = 0
    links_dropped: int = 0
    errors: int = 0
