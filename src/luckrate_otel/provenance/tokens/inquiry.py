"""What is known while one run is judged for taint, step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from luckrate_otel.provenance import Policy
from luckrate_otel.provenance.tokens.atoms import Atom
from luckrate_otel.provenance.tokens.pointing import Request
from luckrate_otel.provenance.tokens.run import Match, Run
from luckrate_otel.provenance.tokens.severity import Level, Taint


@dataclass(frozen=True, slots=True)
class Lead:
    """A value that stands only in untrusted texts; where exactly is looked up when it matters."""

    atom: Atom
    dirty: tuple[Match, ...]


@dataclass(slots=True)
class Inquiry:
    """One pass over a run, looking for taint.

    suspects: phrase → how it first came in; what happens to it later is an echo. own: phrase → the step at which the
    agent wrote it out of nothing. files: name of a file fetched from a suspect URL or path → that phrase.
    steered: source → the suspect phrases that its call carried and that recur in it.
    """

    run: Run
    policy: Policy
    request: Request
    weigh: Callable[[Inquiry, Lead], Taint | None]
    suspects: dict[str, Lead | Taint] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    steered: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def taint_of(self, phrase: str) -> Taint | None:
        """The taint of a suspect phrase; None if it is none, or stands in a field that the spec trusts."""
        known = self.suspects.get(phrase)
        if isinstance(known, Lead):
            del self.suspects[phrase]  # a lead that leads back to itself ends here
            found = self.weigh(self, known)
            if found is None:
                return None
            self.suspects[phrase] = found
            return found
        return known

    def led_astray(self, phrase: str) -> bool:
        """The phrase was supplied by free text that nobody pointed to."""
        known = self.taint_of(phrase)
        return known is not None and known.level in (Level.FREE, Level.STEERED)
