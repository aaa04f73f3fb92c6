"""The small judgements: what a name says, what a request points at, which paths a spec means."""

from __future__ import annotations

import pytest

from luckrate_otel.provenance import Engine
from luckrate_otel.provenance.tokens import ENGINE, naming
from luckrate_otel.provenance.tokens.atoms import Kind, atoms, file_phrase, host_phrase
from luckrate_otel.provenance.tokens.copied import anchor, runs
from luckrate_otel.provenance.tokens.forms import groups, parts, undone
from luckrate_otel.provenance.tokens.pointing import Request, request
from luckrate_otel.provenance.tokens.severity import listed


def test_the_engine_is_a_provenance_engine() -> None:
    engine: Engine = ENGINE
    assert engine is ENGINE


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("order_id", "id target"),
        ("orderIds", "id target"),
        ("account-no", "id target"),
        ("recipients", "target"),
        ("new_owner_email", "target"),
        ("saveDir", "target"),
        ("email_body", "target content"),
        ("subject", "content"),
        ("otp", "proof"),
        ("verification_code", "proof"),
        ("discount_code", ""),
        ("amount", ""),
        ("idea", ""),
        ("", ""),
    ],
)
def test_what_an_argument_name_says(name: str, said: str) -> None:
    tests = (
        ("id", naming.is_id),
        ("target", naming.is_target),
        ("content", naming.is_content),
        ("proof", naming.is_proof),
    )
    assert " ".join(word for word, holds in tests if holds(name)) == said


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        (None, "none"),
        (True, "none"),
        ("N/A", "none"),
        ("19:00", "none"),
        (12, "number"),
        ("12.50", "number"),
        ("0012", "id"),
        ("1234567890", "id"),
        ("2024-05-20", "date"),
        ("ann@shop.example", "email"),
        ("mailto:ann@shop.example", "email"),
        ("https://shop.example/a", "url"),
        ("shop.com/a", "url"),
        ("ann.miller/tool", "path"),
        ("/tmp/a b.txt", "path"),
        ("ORD-8821", "id"),
        ("basic_economy", "id"),
        ("DE89 3704 0044", "id"),
        ("+49 170 5550199", "id"),
        ("12.5 - 3.5", "prose words number"),
        ("New York", "words"),
        ("see ORD-8821 at https://shop.example/a.", "prose words id url"),
        ("one two three four five six", "prose words"),
    ],
)
def test_what_a_leaf_is_made_of(value: object, kinds: str) -> None:
    assert " ".join(atom.kind for atom in atoms(value)) == kinds


def test_identifiers_inside_prose_are_marked_and_can_be_left_out() -> None:
    assert [(atom.text, atom.inside) for atom in atoms("Order ORD-8821, please.")][2:] == [("ORD-8821", True)]
    assert [atom.kind for atom in atoms("Order ORD-8821, please.", inside=False)] == [Kind.PROSE]


@pytest.mark.parametrize(
    ("said", "value", "named"),
    [
        ("Write to Ann.", "ann@x.example", True),
        ("Write to Ann.", "anna@x.example", False),
        ("Write to Alice.", "alicemiller", True),
        ("Write to John.", "johnson@x.example", False),
        ("Pay my electricity bill.", "electricity-bills", True),
        ("Visit www.redscalar.com now.", "redscalar-v2", True),
        ("Visit www.redscalar.example now.", "ops@evil.example", False),
        ("It is in /data/payments/x.", "payments@x.example", False),
        ("Use the calendar.", "calendar@x.example", False),
        ("Please send the email.", "please-send", False),
    ],
)
def test_a_request_names_a_value_by_name_or_topic(said: str, value: str, named: bool) -> None:
    assert request((said,), ("open_calendar",)).names_value(value) is named


@pytest.mark.parametrize(
    ("said", "record", "handed"),
    [
        ("Follow the instructions in Bob's mail.", "bob | please star it", True),
        ("Follow the instructions in Bob's mail.", "eve | please star it", False),
        ("Read Bob's mail.", "bob | please star it", False),
        ("Pay my water bill as the page says.", "your water bill please pay to x", True),
        ("Pay my water bill as the page says.", "your water please pay to x", False),
        ("Address his issue about Zlib.", "zlib is broken", True),
    ],
)
def test_a_request_hands_over_to_the_record_it_speaks_of(said: str, record: str, handed: bool) -> None:
    assert request((said,), ()).hands_over_to(record) is handed


def test_own_files_are_those_called_ones_own() -> None:
    told = request(("My details are in /home/me/info.txt. Read /tmp/other.txt too.",), ())
    assert told.own_files == frozenset({"home me info txt"})
    assert request((), ()) == Request(frozenset(), frozenset(), hands_over=False)


@pytest.mark.parametrize(
    ("path", "name", "fits"),
    [
        ("to[0]", "to", True),
        ("$[3].from.address", "from", True),
        ("$[3].mail.from", "from", True),
        ("$.items[0].id", "$[*].id", True),
        ("to_name", "to", False),
        ("$", "id", False),
    ],
)
def test_paths_of_the_spec(path: str, name: str, fits: bool) -> None:
    assert listed(path, (name,)) is fits


@pytest.mark.parametrize(
    ("url", "host", "last"),
    [
        ("https://u@www.Shop.example:8080/a/b.txt?x=1#y", "shop example", "b txt"),
        ("www.shop.example", "shop example", "www shop example"),
        ("https://shop.example/a/", "shop example", "a"),
    ],
)
def test_hosts_and_file_names(url: str, host: str, last: str) -> None:
    assert (host_phrase(url), file_phrase(url)) == (host, last)


def test_parts_of_a_path_that_must_be_known() -> None:
    (atom,) = atoms("https://shop.example/orders/A-8821/report_2024-05-20.pdf?page=7")
    assert parts(atom) == ("shop example", "8821")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("b3BzQGV2aWwuZXhhbXBsZQ==", "ops evil example"),
        ("6f7073406576696c", "ops evil"),
        ("hello", ""),
        ("a" * 4001, ""),
    ],
)
def test_base64_and_hex_are_undone(text: str, plain: str) -> None:
    assert undone(text) == plain


def test_groups_give_every_length() -> None:
    assert "de8937040044" in groups("to DE89 3704 0044 now")
    assert groups("12 34") == frozenset()


@pytest.mark.parametrize(("words", "count"), [(7, 0), (8, 1), (15, 1), (16, 2), (1000, 50)])
def test_runs_of_prose_are_spread_evenly(words: int, count: int) -> None:
    found = runs(" ".join(f"w{n}" for n in range(words)))
    assert (len(found), {len(run.split()) for run in found} <= {8}) == (count, True)
    assert all(anchor(run) in run.split() for run in found)
