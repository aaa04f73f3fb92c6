"""What a spec writes that has no effect: told as a warning, as it is legal and seldom meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from luckrate_otel.rules.key import Place
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.table import RULES
from luckrate_otel.rules.taint import DELEGATES, FIELDS, PRIVILEGED, TARGETS, UNTRUSTED

if TYPE_CHECKING:
    from luckrate_otel.spec import Spec

_UNREAD = (TARGETS, FIELDS, DELEGATES)
_BOTH = {
    UNTRUSTED.name: "untrusted (tools whose results strangers may write)",
    PRIVILEGED.name: "privileged (tools that no such data may reach)",
}


def find_idle(spec: Spec, top: Place) -> None:
    """Note a warning for each key that asks for something no rule then judges. Off by `severity` is meant."""
    for key, words in _idle(spec):
        top.at(key).warning(words)


def _idle(spec: Spec) -> Iterator[tuple[str, str]]:
    taint = RULES["taint"]
    written = [key.name for key in taint.keys if spec.values.get(key.name)]
    if written and spec.severity(taint) is not None and not spec.asks(taint):
        missing = [words for name, words in _BOTH.items() if not spec.values.get(name)]
        yield written[0], f"the rule taint is off without {' and '.join(missing)}"
    elif spec.asks(taint) and spec.provenance == "substring":
        yield from ((key.name, "provenance: substring does not read it") for key in _UNREAD if spec.get(key))
    yield from ((key, "asks for nothing, so no rule judges it") for key in _asking_nothing(spec))


def _asking_nothing(spec: Spec) -> Iterator[str]:
    """Keys with something in them, such as a tool without a schema, all of whose rules are off."""
    readers: dict[str, list[Rule]] = {}
    for rule in RULES.values():
        for key in rule.keys:
            readers.setdefault(key.name, []).append(rule)
    for name, rules in readers.items():
        meant_off = any(spec.severity(rule) is None for rule in rules)
        if spec.values.get(name) and not meant_off and not any(map(spec.asks, rules)) and rules != [RULES["taint"]]:
            yield name
