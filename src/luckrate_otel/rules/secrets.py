"""`secrets`: credential shapes in arguments or results. On by default; the match is never shown.

Only shapes with a fixed prefix that a vendor assigns. Entropy is no sign of a secret: session ids, hashes and UUIDs
look the same, and a warning that fires on those is soon ignored. So a bare random password is missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from luckrate_otel.facts import NO_RETURN, Gap
from luckrate_otel.model import Severity, Step, Trajectory, Violation
from luckrate_otel.rules import shapes
from luckrate_otel.rules.finding import argument_of, argument_path, at_step, concluded, gap_of
from luckrate_otel.rules.key import Key, flag
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView

SECRETS: Key[bool] = Key("secrets", flag, default=True, shape=shapes.FLAG)


@dataclass(frozen=True, slots=True)
class _Shape:
    """sign: a rare character that stands in every match; prefixes: one of them does, too."""

    name: str
    sign: str
    prefixes: tuple[str, ...]
    pattern: re.Pattern[str]


# Each is a fixed prefix followed by one run of characters, so a search is linear in the text.
_SHAPES = (
    _Shape("AWS access key id", "K", ("AKIA",), re.compile(r"\bAKIA[A-Z0-9]{16}\b")),
    _Shape(
        "GitHub token",
        "_",
        ("gho_", "ghp_", "ghr_", "ghs_", "ghu_"),
        re.compile(r"\bgh[oprsu]_[a-zA-Z0-9]{36,}\b"),
    ),
    _Shape("GitHub fine-grained token", "_", ("github_pat_",), re.compile(r"\bgithub_pat_[a-zA-Z0-9_]{50,}\b")),
    _Shape("PyPI token", "-", ("pypi-AgE",), re.compile(r"\bpypi-AgEIcHlwaS5vcmc[a-zA-Z0-9_-]{16,}")),
    _Shape("Slack token", "-", ("xox",), re.compile(r"\bxox[abprs]-[a-zA-Z0-9-]{10,}\b")),
    _Shape("OpenAI key", "-", ("sk-",), re.compile(r"\bsk-(?:proj-)?[a-zA-Z0-9_-]{20,}\b")),
    _Shape("Google API key", "I", ("AIza",), re.compile(r"\bAIza[a-zA-Z0-9_-]{35}\b")),
    _Shape(
        "private key block",
        "-",
        ("-----BEGIN ",),
        re.compile(r"-----BEGIN (?:EC |OPENSSH |PGP |RSA )?PRIVATE KEY-----"),
    ),
    _Shape("bearer token", "B", ("Bearer",), re.compile(r"\bBearer\s+[a-zA-Z0-9._~+/-]{20,}=*")),
)


_MAX_JOINED = 100_000  # characters


def evaluate(trajectory: Trajectory, _spec: SpecView) -> Outcome:
    """One violation per step, field and shape. A field is the result or one top-level argument."""
    violations: list[Violation] = []
    gaps: list[Gap] = []
    suspected = _suspected(trajectory)
    for index, step in enumerate(trajectory.steps):
        if step.args is None or step.result is None:
            gaps += _gaps(trajectory, index)
        for argument, text in _fields(step) if suspected else ():
            violations += (_violation(trajectory, index, argument, name) for name in _shapes_in(text))
    return concluded(violations, gap=next(iter(gaps), None), activated=bool(trajectory.steps))


def _suspected(trajectory: Trajectory) -> bool:
    """False if no prefix stands anywhere in the run: one look at all its short texts takes a third of one at each."""
    texts = [text for step in trajectory.steps for text in _texts(step)]
    if sum(map(len, texts)) > _MAX_JOINED:
        return True
    joined = "\n".join(texts)
    return any(shape.sign in joined and any(prefix in joined for prefix in shape.prefixes) for shape in _SHAPES)


def _texts(step: Step) -> Iterator[str]:
    if step.result:
        yield step.result
    if step.args:
        yield from map(str, step.args.values())


def _shapes_in(text: str) -> list[str]:
    """Nearly every text holds no prefix, and looking for one is thirteen times as fast as the pattern is on 2 KiB: the
    word boundary in front keeps `re` from skipping to the prefix. Looking for one character is ten times faster still.
    """
    return [
        shape.name
        for shape in _SHAPES
        if shape.sign in text and any(prefix in text for prefix in shape.prefixes) and shape.pattern.search(text)
    ]


def _fields(step: Step) -> Iterator[tuple[str | None, str]]:
    """The result under None, then the text of each argument under its path, by name."""
    if step.result:
        yield None, step.result
    for key, text in sorted((str(key), str(value)) for key, value in (step.args or {}).items()):
        yield argument_path(key), text


def _gaps(trajectory: Trajectory, index: int) -> Iterator[Gap]:
    step = trajectory.steps[index]
    if step.args is None:
        yield gap_of(trajectory, index, "args")
    if step.result is None and step.error != NO_RETURN:
        yield gap_of(trajectory, index, "result")


def _violation(trajectory: Trajectory, index: int, argument: str | None, name: str) -> Violation:
    where = argument_of(trajectory.steps[index].tool, "result" if argument is None else argument)
    return at_step(
        trajectory,
        index,
        rule=RULE.id,
        clause="secrets",
        severity=RULE.severity,
        message=f"possible {name} in {where} (step {index})",
        argument=argument,
    )


RULE = Rule(
    "secrets",
    Severity.WARN,
    (SECRETS,),
    evaluate,
    mend="rotate what leaked, and pass credentials by reference instead of through the model",
)
