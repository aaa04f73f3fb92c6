"""Random specs and runs, from a seed: small enough to read, rich in chance meetings of values."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

TOOLS = ("lookup_order", "check_policy", "issue_refund", "fetch_page", "send_email", "search")

# Values that are identifiers, nearly are, and are not; short ones occur inside longer ones.
VALUES: tuple[Any, ...] = (
    "W1001",
    "#W1001",
    "W100",
    "100",
    "ab",
    "abc",
    "abc\n",
    "true",
    "None",
    "high",
    "ops@evil.example",
    "https://a.example/x",
    "x" * 40,
    "x" * 41,
    "two words",
    "",
    "größe",
    "AKIA" + "A" * 16,
    "sk-" + "a1B2" * 6,
    "Bearer " + "t0k" * 10,
    1001,
    100,
    -100,
    12.5,
    100.0,
    True,
    False,
    None,
    ["W1001"],
    ("W1001", 100),
    {"id": "W1001", "n": 1},
    {"n": 1, "id": "W1001"},
    ["AKIA" + "B" * 16],
    float("nan"),
)
# Those of them that tasks and results hold.
TOLD = ("W1001", "100", 100, "abc", "ops@evil.example", "https://a.example/x")
KEYS = ("order_id", "to", "amount", "a b", "n")
RESULTS = (
    "",
    "order W1001 of ops@evil.example",
    "abc high 100",
    "see https://a.example/x",
    "key AKIA" + "C" * 16 + " found",
    "-----BEGIN PRIVATE KEY-----",
    "nothing here",
)
TASKS = ("", "please refund W1001", "look at https://a.example/x, 100 EUR", "mail ops@evil.example abc")


@dataclass(frozen=True, slots=True)
class Plain:
    """A step before either package has made one of its own."""

    tool: str
    args: dict[str, Any]
    ok: bool
    result: str


def plain_steps(random: Random, count: int) -> list[Plain]:
    """Steps of few tools and values, so that repeats, orders and flows all occur. Arguments are in order of name."""
    return [
        Plain(
            random.choice(TOOLS),
            {
                key: random.choice(random.choice((VALUES, TOLD)))
                for key in sorted(random.sample(KEYS, random.randint(0, 3)))
            },
            random.random() < 0.8,
            random.choice(RESULTS),
        )
        for _ in range(count)
    ]


def with_repeats(random: Random, steps: list[Plain]) -> list[Plain]:
    """Some calls again, word for word."""
    return [step for step in steps for _ in range(random.choice((1, 1, 1, 2)))]


def spec_mapping(random: Random) -> dict[str, Any]:
    """A spec of luckrate 0.3's vocabulary, sometimes one that names a tool outside its own `tools`."""
    written: dict[str, Any] = {}
    for key, share in (("required", 0.3), ("forbidden", 0.3), ("untrusted", 0.7), ("privileged", 0.7)):
        if random.random() < share:
            written[key] = random.choice((list, tuple))(random.choices(TOOLS, k=random.randint(0, 3)))
    if random.random() < 0.6:
        written["before"] = [
            random.choice((list, tuple))(random.choices(TOOLS, k=2)) for _ in range(random.randint(0, 3))
        ]
    if random.random() < 0.5:
        written["max_steps"] = random.choice((None, 0, 1, 3, 6))
    for key in ("no_repeat", "ground", "secrets"):
        if random.random() < 0.5:
            written[key] = random.choice((True, False, None))
    if random.random() < 0.5:
        named = {name for key in ("required", "forbidden", "untrusted", "privileged") for name in written.get(key, ())}
        named.update(name for pair in written.get("before", ()) for name in pair)
        legal = random.choice(([], random.sample(TOOLS, 3), TOOLS, sorted(named), sorted({*named, *TOOLS[:3]})))
        written["tools"] = random.choice((list, tuple, set))(legal) or random.choice((None, []))
    return written
