"""Mapping → `Spec`: what a run is graded against. All problems of a spec are told at once, each with its path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any, TypeVar

from luckrate_otel.canonical import canonical
from luckrate_otel.errors import Problem, SpecError
from luckrate_otel.idle import find_idle
from luckrate_otel.known import listed, suggestion, unknown_keys
from luckrate_otel.match import Match, fits, parse_match
from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.output import OUTPUT_SHAPE, Output, parse_output
from luckrate_otel.provenance import Engine, Policy
from luckrate_otel.provenance.engines import ENGINES
from luckrate_otel.provenance.tokens import Leaf, trace
from luckrate_otel.rules import shapes
from luckrate_otel.rules.contents import contents
from luckrate_otel.rules.key import (
    Key,
    Mention,
    Notes,
    Place,
    choice,
    count,
    entries,
    shown,
    text,
    texts,
    tool_name,
)
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.table import RULES
from luckrate_otel.rules.taint import DELEGATES, FIELDS, PRIVILEGED, TARGETS, UNTRUSTED
from luckrate_otel.rules.unknown_tool import TOOLS
from luckrate_otel.telemetry import NOTHING, Value, nothing

T = TypeVar("T")

# Five runs tell a habit from a slip; more make a suite slow without telling much more.
DEFAULT_K = 5

DEFAULT_NAME = "default"


def _severities(value: Value, place: Place) -> Mapping[str, Severity | None]:
    """Rule id → severity, None for off. YAML 1.1 readers turn off into false, so both are taken."""
    read: dict[str, Severity | None] = {}
    keys_to_ids = {key.name: rule.id for rule in RULES.values() for key in rule.keys}
    for rule, item in entries(value, place, "a mapping from rule ids to severities"):
        if rule not in RULES:
            other = keys_to_ids.get(rule)
            hint = f"; its rule id is {other!r}" if other else suggestion(rule, RULES) or f"; there are {listed(RULES)}"
            place.at(rule).problem(f"no such rule{hint}")
            continue
        word = choice("off", *Severity)("off" if item is False else item, place.at(rule))
        read[rule] = None if word == "off" else Severity(word)
    return MappingProxyType(read)


NAME: Key[str] = Key("name", text, DEFAULT_NAME, shapes.TEXT)
MATCH: Key[Match] = Key("match", parse_match, NOTHING, shapes.a_map(shapes.TEXTS))
SEVERITY: Key[Mapping[str, Severity | None]] = Key(
    "severity",
    _severities,
    NOTHING,
    shapes.block({rule: {"enum": [*Severity, "off", False]} for rule in RULES}),
)
PROVENANCE: Key[str] = Key("provenance", choice(*ENGINES), next(iter(ENGINES)), {"enum": list(ENGINES)})
ORDER: Key[str] = Key("order", choice("issue", "overlap"), "issue", {"enum": ["issue", "overlap"]})
BATCH: Key[int | None] = Key("k", count(1), DEFAULT_K, {"type": ["integer", "null"], "minimum": 1})
OUTPUT: Key[Output] = Key("output", parse_output, Output(), OUTPUT_SHAPE)
GENERAL: tuple[Key[Any], ...] = (NAME, MATCH, SEVERITY, PROVENANCE, ORDER, BATCH, OUTPUT)

# Every key there is. `aliases` stands apart: it is read first, as it decides what the names in all others mean.
ALIASES = "aliases"
KEYS: Mapping[str, Key[Any]] = MappingProxyType(
    {key.name: key for key in (*GENERAL, *(key for rule in RULES.values() for key in rule.keys))}
)


@dataclass(frozen=True, slots=True)
class Spec:
    """What a run is graded against. Made by `from_mapping`, so a Spec is always usable.

    values: the keys that were written, parsed. aliases: other name → canonical name of a tool.
    version: hash of the content, 16 hex digits; does not depend on the order of keys.
    warnings: what it writes that has no effect.
    contents: clause, as findings name it → hash of what it says, by which findings are known again.
    rules: those that are on, in the order of the table. policy: what provenance reads of this spec; without tools when
    taint is off. Both are made once, as every run asks for them.
    """

    values: Mapping[str, Any] = field(default_factory=nothing)
    aliases: Mapping[str, str] = field(default_factory=nothing)
    version: str = ""
    contents: Mapping[str, str] = field(default_factory=nothing, repr=False)
    warnings: tuple[Problem, ...] = field(default=(), repr=False, compare=False)
    rules: tuple[Rule, ...] = field(init=False, repr=False, compare=False)
    policy: Policy = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(rule for rule in RULES.values() if self.asks(rule)))
        object.__setattr__(self, "policy", self._policy())

    @classmethod
    def from_mapping(
        cls, mapping: Mapping[str, Value], *, source: str = "", lines: Mapping[str, int] | None = None
    ) -> Spec:
        """Read a spec from a plain mapping, as Python, YAML, JSON or TOML give it; luckrate 0.3's dicts as they are.

        source: name of the file, lines: path (`before[1][0]`, `output.check.regex`) → 1-based line, both for errors.
        Raises SpecError with every problem.
        """
        notes = Notes(lines or NOTHING)
        top = Place("", notes)
        given: object = mapping
        if not isinstance(given, Mapping):
            top.problem(f"expected a mapping from keys to rules, got {shown(given)}")
            raise SpecError(notes.problems, source)
        for key, message in unknown_keys(_names(mapping, top), (*KEYS, ALIASES)):
            top.at(key).problem(message)
        notes.aliases = _aliases(mapping.get(ALIASES, {}), top.at(ALIASES))
        values = {
            key.name: key.parse(mapping[key.name], top.at(key.name)) for key in KEYS.values() if key.name in mapping
        }
        _compare_with_vocabulary(notes, values.get(TOOLS.name, ()))
        if notes.problems:
            raise SpecError(sorted(notes.problems, key=_place_in_file), source)
        version = sha256(canonical(mapping).encode()).hexdigest()[:16]
        told = contents(KEYS.values(), mapping, notes.aliases)
        spec = cls(MappingProxyType(values), notes.aliases, version, told)
        find_idle(spec, top)
        return replace(spec, warnings=tuple(sorted(notes.warnings, key=_place_in_file)))

    def get(self, key: Key[T]) -> T:
        """The value of a key: as written, else its default."""
        value: T = self.values.get(key.name, key.default)
        return value

    @property
    def name(self) -> str:
        return self.get(NAME)

    @property
    def order(self) -> str:
        """`issue` or `overlap`; see rules.order."""
        return self.get(ORDER)

    @property
    def writes_order(self) -> bool:
        """Whether it says `order` itself; else each rule has its own."""
        return ORDER.name in self.values

    @property
    def k(self) -> int:
        """How many runs of one case form a batch."""
        return self.get(BATCH) or DEFAULT_K

    @property
    def output(self) -> Output:
        """How it is known whether the output was right."""
        return self.get(OUTPUT)

    @property
    def provenance(self) -> str:
        """Name of the provenance engine."""
        return self.get(PROVENANCE)

    @property
    def engine(self) -> Engine:
        return ENGINES[self.provenance]

    def trace(self, trajectory: Trajectory) -> tuple[Leaf, ...]:
        """Where every argument leaf of a run comes from. ValueError: the run is too large."""
        return trace(trajectory)

    def _policy(self) -> Policy:
        if not self.asks(RULES["taint"]):
            return Policy()
        return Policy(
            untrusted=self.get(UNTRUSTED),
            privileged=self.get(PRIVILEGED),
            targets=self.get(TARGETS),
            fields=self.get(FIELDS),
            delegates=self.get(DELEGATES),
        )

    def asks(self, rule: Rule) -> bool:
        """Whether a rule is on."""
        return self.severity(rule) is not None and rule.active(rule, self)

    def writes(self, rule: Rule) -> bool:
        """Whether the spec itself names a rule, as against one that is on by default."""
        return any(key.name in self.values for key in rule.keys)

    def severity(self, rule: Rule) -> Severity | None:
        """The severity of a rule, None when the spec turns it off."""
        return self.get(SEVERITY).get(rule.id, rule.severity)

    def overrides(self, rule: Rule) -> Severity | None:
        """The severity the spec gives every violation of a rule, None when the rule's own stand."""
        return self.get(SEVERITY).get(rule.id)

    def canonical_tool(self, name: str) -> str:
        """The name rules know a tool by."""
        return self.aliases.get(name, name)


def select(specs: Sequence[Spec], trajectory: Trajectory) -> Spec | None:
    """The first spec whose `match:` fits the run; None: the run is not graded."""
    return next((spec for spec in specs if fits(spec.get(MATCH), trajectory)), None)


# ---- reading -----------------------------------------------------------------------------------


def _names(mapping: Mapping[Any, Value], top: Place) -> list[str]:
    for key in mapping:
        if not isinstance(key, str):
            top.problem(f"expected texts as keys, got {shown(key)}")
    return [key for key in mapping if isinstance(key, str)]


def _aliases(value: Value, place: Place) -> Mapping[str, str]:
    """Canonical name → other name or names, turned round. Each other name belongs to one tool."""
    owners: dict[str, str] = {}
    pairs = entries(value, place, "a mapping from tool names to their other names")
    for name, others in pairs:
        place.notes.mentions.append(Mention(place.at(name), name))
        for other in texts(others, place.at(name)):
            tool_name(other, place.at(name))
            if owners.setdefault(other, name) != name:
                place.at(name).problem(f"{other!r} already is another name of {owners[other]!r}")
    for name, _ in pairs:
        if name in owners:
            place.at(name).problem(f"{name!r} is also given as another name of {owners[name]!r}")
    return MappingProxyType(owners)


def _compare_with_vocabulary(notes: Notes, legal: Iterable[str]) -> None:
    """A misspelt tool would look like an agent that never called it."""
    known = tuple(dict.fromkeys(legal))
    if not known:
        _compare_with_words(notes)
        return
    for mention in notes.mentions:
        if mention.name not in known:
            hint = suggestion(mention.name, (*mention.instead, *known))
            mention.place.problem(f"{mention.name!r} is not one of the spec's tools{hint}")


def _compare_with_words(notes: Notes) -> None:
    """Without a vocabulary any tool may be meant; but `usr`, which no other part of the spec names, is not."""
    named = Counter(mention.name for mention in notes.mentions)
    for mention in notes.mentions:
        hint = suggestion(mention.name, mention.instead) if named[mention.name] == 1 else ""
        if hint:
            mention.place.problem(f"no such source{hint} (a tool of that name has to be named under tools)")


def _place_in_file(problem: Problem) -> tuple[int, int]:
    """By line where lines are known; else in the order they were found."""
    return (problem.line is None, problem.line or 0)
