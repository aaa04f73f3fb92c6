"""The configuration loader: every key, its default, and every error with its place."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel.config import (
    Address,
    AgentClocks,
    ClientTls,
    Config,
    Destination,
    Secret,
    as_lines,
    find_warnings,
    keys,
    load,
    parse,
)
from luckrate_otel.config.environment import state_folder
from luckrate_otel.errors import ConfigError

BACKEND = 'destinations: {backend: {endpoint: "http://next:4317"}}\n'


def read(text: str, environ: dict[str, str] | None = None) -> Config:
    return parse(BACKEND + text, "c.yaml", environ or {})


def problems(text: str, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text, "c.yaml", environ or {})
    return str(caught.value)


# Each key: a value that is not the default, and what the program then holds.
KEYS: list[tuple[str, str, Any]] = [
    ("mode", "tap", "tap"),
    ("verdict_spans", "true\nmode: tap", True),
    ("receivers.grpc.endpoint", "0.0.0.0:1", Address("0.0.0.0", 1)),
    ("receivers.http.endpoint", '"[::1]:2"', Address("::1", 2)),
    ("receivers.max_message_bytes", "1KiB", 1024),
    ("destinations.<name>.endpoint", "https://a.example/otlp", "https://a.example/otlp"),
    ("destinations.<name>.protocol", "http/protobuf", "http/protobuf"),
    ("destinations.<name>.headers", "{X-Key: abc}", {"x-key": Secret("abc")}),
    ("destinations.<name>.compression", "gzip", "gzip"),
    ("destinations.<name>.timeout", "250ms", 0.25),
    ("destinations.<name>.queue_bytes", "1.5MB", 1_500_000),
    ("destinations.<name>.signals", "[traces, logs]", ("traces", "logs")),
    ("specs", "[a.yaml, /b.json]", (Path("a.yaml"), Path("/b.json"))),
    ("conversation_keys", "session.id", ("session.id",)),
    ("clocks.settle", "3", 3.0),
    ("clocks.release_after", "1m30s", 90.0),
    ("clocks.verdict_after", "1h", 3600.0),
    ("clocks.late_window", "1h", 3600.0),
    ("clocks.agents.<name>.settle", "1.5s", 1.5),
    ("clocks.agents.<name>.release_after", "20s", 20.0),
    ("clocks.agents.<name>.verdict_after", "2d", 172800.0),
    ("limits.held_bytes", "4GiB", 4 * 2**30),
    ("limits.late_bytes", "1MiB", 2**20),
    ("limits.link_bytes", "2MiB", 2**21),
    ("limits.conversation_bytes", "1000", 1000),
    ("limits.conversation_age", "7d", 604800.0),
    ("journal.path", "/tmp/j", Path("/tmp/j")),
    ("journal.max_bytes", "1GiB", 2**30),
    ("journal.fsync", "full", "full"),
    ("metrics.prometheus", "none", None),
    ("metrics.otlp", "backend", "backend"),
    ("metrics.interval", "5s", 5.0),
    ("log.format", "json", "json"),
    ("admin.endpoint", "localhost:3", Address("localhost", 3)),
    *[
        (f"{server}.{name}", value, held)
        for server in ("receivers.grpc", "receivers.http", "admin")
        for name, value, held in (
            ("tls.cert", "c.pem", Path("c.pem")),
            ("tls.key", "k.pem", Path("k.pem")),
            ("tls.client_ca", "ca.pem", Path("ca.pem")),
            ("auth.bearer", "s3cret", Secret("s3cret")),
            ("auth.bearer_file", "token", Path("token")),
        )
    ],
    *[(f"destinations.<name>.tls.{name}", f"{name}.pem", Path(f"{name}.pem")) for name in ("ca", "cert", "key")],
]

# What some keys need beside them to make sense.
COMPANIONS: dict[str, dict[str, str]] = {
    "tls.cert": {"tls.key": "k.pem"},
    "tls.key": {"tls.cert": "c.pem"},
    "tls.client_ca": {"tls.key": "k.pem", "tls.cert": "c.pem"},
}


def written(path: str, value: str) -> str:
    """The key as nested flow mappings, with what it needs beside it."""
    text = f"{path.rsplit('.', maxsplit=1)[-1]}: {value}"
    parents = path.split(".")[:-1]
    for companion, other in COMPANIONS.get(".".join(path.split(".")[-2:]), {}).items():
        text += f", {companion.split('.')[-1]}: {other}"
    for parent in reversed(parents):
        text = f"{'backend' if parent == '<name>' else parent}: {{{text}}}"
    return text


def value_at(config: Any, path: str) -> Any:
    for part in path.split("."):
        config = config["backend"] if part == "<name>" else getattr(config, part)
    return config


@pytest.mark.parametrize(("path", "text", "held"), KEYS, ids=[row[0] for row in KEYS])
def test_each_key(path: str, text: str, held: Any) -> None:
    document = written(path, text)
    if path.startswith("destinations") and not path.endswith("endpoint"):
        document = document.replace("backend: {", 'backend: {endpoint: "https://next", ', 1)
    elif not path.startswith("destinations"):
        document = BACKEND + document
    config = parse(document, "c.yaml", {})
    assert value_at(config, path) == held
    assert held != value_at(read(""), path) if "agents" not in path else True


def test_every_key_is_in_the_table_above() -> None:
    assert sorted(row[0] for row in KEYS) == sorted(keys())


def test_documented_defaults_are_the_defaults() -> None:
    """Writing every documented default gives the same configuration as writing none."""
    plain = read("")
    for path, key in keys().items():
        if key.default:
            document = written(path, key.default)
            if path.startswith("destinations"):
                document = document.replace("backend: {", 'backend: {endpoint: "http://next:4317", ', 1)
            else:
                document = BACKEND + document
            assert parse(document, "c.yaml", {}) == plain, path


def test_relative_files_are_meant_from_the_configuration_file(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(BACKEND + "specs: a.yaml", encoding="utf-8")
    assert load(file, {}).specs == (tmp_path / "a.yaml",)


def test_agents_override_clocks() -> None:
    clocks = read("clocks: {settle: 5s, agents: {slow: {verdict_after: 24h}}}").clocks
    assert clocks.agents == {"slow": AgentClocks(verdict_after=86400.0)}


# ---- environment -------------------------------------------------------------------------------


def test_references_to_the_environment() -> None:
    text = "receivers: {grpc: {auth: {bearer: 'a${env:A}$$${env:B:-b}'}}, max_message_bytes: '${env:SIZE}'}"
    receivers = read(text, {"A": "1", "SIZE": "10"}).receivers
    assert receivers.grpc.auth.bearer == Secret("a1$b")
    assert receivers.max_message_bytes == 10


E = "OTEL_EXPORTER_OTLP_"


def test_destination_from_the_environment() -> None:
    environ = {
        f"{E}ENDPOINT": "https://c.example:4318/base",
        f"{E}HEADERS": "api-key=a%20b , X-Other=2",
        f"{E}COMPRESSION": "gzip",
        f"{E}TIMEOUT": "2500",
        f"{E}CERTIFICATE": "/ca.pem",
        f"{E}CLIENT_CERTIFICATE": "/c.pem",
        f"{E}CLIENT_KEY": "/k.pem",
    }
    destination = Destination(
        endpoint="https://c.example:4318/base",
        protocol="http/protobuf",
        headers={"api-key": Secret("a b"), "x-other": Secret("2")},
        compression="gzip",
        tls=ClientTls(Path("/ca.pem"), Path("/c.pem"), Path("/k.pem")),
        timeout=2.5,
    )
    assert parse("", "", environ).destinations == {"env": destination}
    assert destination.url("traces") == "https://c.example:4318/base/v1/traces"
    assert destination.url("profiles") == "https://c.example:4318/base/v1development/profiles"


def test_signals_of_the_environment_that_go_elsewhere() -> None:
    environ = {
        f"{E}ENDPOINT": "c.example:4317",
        f"{E}PROTOCOL": "grpc",
        f"{E}INSECURE": "true",
        f"{E}LOGS_ENDPOINT": "http://logs.example/in",
        f"{E}LOGS_PROTOCOL": "http/protobuf",
    }
    destinations = parse("", "", environ).destinations
    assert destinations == {
        "env_traces": Destination("http://c.example:4317", signals=("traces", "metrics", "profiles")),
        "env_logs": Destination("http://logs.example/in", protocol="http/protobuf", signals=("logs",), exact=True),
    }
    assert destinations["env_logs"].url("logs") == "http://logs.example/in"


def test_grpc_endpoint_without_scheme_is_secure_unless_told() -> None:
    environ = {f"{E}ENDPOINT": "c.example:4317", f"{E}PROTOCOL": "grpc"}
    assert parse("", "", environ).destinations["env"].endpoint == "https://c.example:4317"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ENDPOINT", "c.example", "must be a URL with its scheme, such as http://127.0.0.1:14317"),
        ("PROTOCOL", "http/json", "must be grpc or http/protobuf (it is 'http/json')"),
        ("COMPRESSION", "zstd", "must be none or gzip (it is 'zstd')"),
        ("TIMEOUT", "10s", "must be a number of milliseconds (it is '10s')"),
        ("HEADERS", "s3cret", "must be name=value pairs with commas between"),
    ],
)
def test_bad_environment(name: str, value: str, message: str) -> None:
    text = problems("", {f"{E}ENDPOINT": "http://next", f"{E}{name}": value})
    assert text == f"c.yaml: {E}{name}: {message}"
    assert "s3cret" not in text


def test_the_file_wins_over_the_environment() -> None:
    assert list(read("", {f"{E}ENDPOINT": "http://other"}).destinations) == ["backend"]


# ---- problems ----------------------------------------------------------------------------------

DURATION = "must be a duration such as 10s, 2m or 1m30s, or a number of seconds"
ADDRESS = "must be host:port such as 127.0.0.1:4317, or none to switch it off"
PROBLEMS = [
    ("modus: tap", "line 2: modus: unknown key; did you mean 'mode'?"),
    ("admin:\n  endpont: none", "line 3: admin.endpont: unknown key; did you mean 'endpoint'?"),
    ("metrics: {xyz: 1}", "line 2: metrics.xyz: unknown key; known here: prometheus, otlp, interval"),
    ("verdict_spans: yes", "line 2: verdict_spans: must be true or false (it is 'yes')"),
    (
        "verdict_spans: true",
        "line 2: verdict_spans: is for `mode: tap`; inline, verdicts are on the runs' own spans",
    ),
    ("mode: outline", "line 2: mode: must be inline or tap (it is 'outline')"),
    ("mode:", "line 2: mode: has no value; give one or leave the key out"),
    ("mode: tap\nmode: tap", "line 3: mode: given twice, first in line 2"),
    (
        "clocks: 5s",
        "line 2: clocks: must be a mapping with settle, release_after, verdict_after, late_window, agents, not '5s'",
    ),
    ("journal: no", "line 2: journal: must be a mapping with path, max_bytes, fsync, or none, not 'no'"),
    (
        "admin: none",
        "line 2: admin: must be a mapping with endpoint, tls, auth, not 'none'; endpoint: none switches it off",
    ),
    ("clocks: {settle: 5x}", f"line 2: clocks.settle: {DURATION} (it is '5x')"),
    ("clocks: {settle: yes}", f"line 2: clocks.settle: {DURATION} (it is 'yes')"),
    ("clocks: {settle: true}", f"line 2: clocks.settle: {DURATION} (it is true)"),
    ("clocks: {settle: 0}", "line 2: clocks.settle: must be longer than 0 and shorter than 30 years (it is 0)"),
    (
        f"clocks: {{settle: {10**20}}}",
        f"line 2: clocks.settle: must be longer than 0 and shorter than 30 years (it is {10**20})",
    ),
    (
        f"clocks: {{settle: {10**400}}}",
        f"line 2: clocks.settle: must be longer than 0 and shorter than 30 years (it is {10**400})",
    ),
    ("clocks: {agents: [a]}", "line 2: clocks.agents: must map names to sections, not a list"),
    (
        "clocks: {settle: 16m}",
        "line 2: clocks.settle: is longer than verdict_after, which then would never wait for a root",
    ),
    (
        "clocks:\n  agents:\n    a: {settle: 16m}",
        "line 4: clocks.agents.a.settle: is longer than verdict_after, which then would never wait for a root",
    ),
    (
        "limits: {held_bytes: 5 MiBs}",
        "line 2: limits.held_bytes: must be a size such as 64MiB, or a number of bytes (it is '5 MiBs')",
    ),
    ("limits: {held_bytes: 0}", "line 2: limits.held_bytes: must be a size from 1 byte to 8 EiB (it is 0)"),
    ("limits: {held_bytes: 1e30}", "line 2: limits.held_bytes: must be a size from 1 byte to 8 EiB (it is 1e+30)"),
    ("admin: {endpoint: 8321}", f"line 2: admin.endpoint: {ADDRESS} (it is 8321)"),
    ("admin: {endpoint: '::1:8321'}", f"line 2: admin.endpoint: {ADDRESS} (it is '::1:8321')"),
    ("admin: {endpoint: 'h:65536'}", f"line 2: admin.endpoint: {ADDRESS} (it is 'h:65536')"),
    ("specs: []", "line 2: specs: must not be empty; leave the key out instead (it is a list)"),
    ("specs: [1]", "line 2: specs[0]: must be a text; put it in quotes (it is 1)"),
    ("specs: 1", "line 2: specs: must be a text; put it in quotes (it is 1)"),
    ("specs:\n- a.yaml\n- ''", "line 4: specs[1]: must be a text that is not empty (it is '')"),
    ("specs: [[a]]", "line 2: specs[0]: must be a text that is not empty (it is a list)"),
    ('specs: ["a\\0b"]', "line 2: specs[0]: must be a path, which holds no NUL character (it is 'a\\x00b')"),
    (
        "journal: {path: ~nobody-of-this-name/x}",
        "line 2: journal.path: must be a path; there is no such user's home (it is '~nobody-of-this-name/x')",
    ),
    ("admin: {auth: {bearer: 5}}", "line 2: admin.auth.bearer: must be a text; put it in quotes"),
    (
        "specs: ['${env:NOPE}']",
        "line 2: specs[0]: the environment variable NOPE is not set; set it or write ${env:NOPE:-default}",
    ),
    (
        "specs: '${NOPE}'",
        "line 2: specs: ${NOPE} is not understood; write ${env:NAME}, or $$ for a dollar sign",
    ),
    ("specs: !!python/name:os.system x", "line 2: specs: the tag tag:yaml.org,2002:python/name:os.system is not"),
    (
        "receivers: {grpc: {endpoint: none}, http: {endpoint: none}}",
        "line 2: receivers: both are switched off, so nothing could arrive; leave one on",
    ),
    (
        "receivers: {http: {endpoint: 127.0.0.1:4317}}",
        "line 2: receivers.http.endpoint: 127.0.0.1:4317 is receivers.grpc's already",
    ),
    (
        "metrics: {prometheus: 0.0.0.0:4318}",
        "line 2: metrics.prometheus: 0.0.0.0:4318 is receivers.http's already",
    ),
    ("metrics: {otlp: other}", "line 2: metrics.otlp: there is no destination 'other'; known: backend"),
    ("admin: {tls: {cert: a}}", "line 2: admin.tls: cert and key belong together; give both or neither"),
    (
        "admin: {tls: {client_ca: a}}",
        "line 2: admin.tls.client_ca: needs cert and key: client certificates come with TLS",
    ),
    ("admin: {auth: {bearer: a, bearer_file: b}}", "line 2: admin.auth: give bearer or bearer_file, not both"),
    ("admin: {", "line 2: not valid YAML: a bracket that was opened is not closed"),
    ("--- \nmode: tap", "line 3: a second document starts here; keep one per file"),
]


@pytest.mark.parametrize(("text", "message"), PROBLEMS, ids=[row[0] for row in PROBLEMS])
def test_each_problem_names_its_place(text: str, message: str) -> None:
    assert problems(BACKEND + text).splitlines()[0].startswith(f"c.yaml: {message}")


DESTINATION_PROBLEMS = [
    ("{}", "line 2: destinations.b: endpoint is required"),
    ("{endpoint: next}", "line 2: destinations.b.endpoint: must be a URL with its scheme"),
    ('{endpoint: "ftp://next"}', "line 2: destinations.b.endpoint: must be http://host:port or https://host:port"),
    ('{endpoint: "http://next:99999"}', "line 2: destinations.b.endpoint: must be a URL with a usable host and port"),
    ('{endpoint: "http://u:s3cret@next"}', "line 2: destinations.b.endpoint: must not hold a user or password"),
    (
        '{endpoint: "http://next", protocol: http/json}',
        "line 2: destinations.b.protocol: must be grpc or http/protobuf",
    ),
    ('{endpoint: "http://next", headers: {"a b": x}}', "line 2: destinations.b.headers: 'a b' is no header name"),
    ('{endpoint: "http://next", headers: {a: "s3cret\\n"}}', "line 2: destinations.b.headers: must be printable ASCII"),
    (
        '{endpoint: "http://next", signals: [logs, spans]}',
        "line 2: destinations.b.signals[1]: must be traces, metrics, logs or profiles (it is 'spans')",
    ),
    (
        '{endpoint: "http://next", headers: [a]}',
        "line 2: destinations.b.headers: must map header names to texts, such as {x-api-key: '${env:KEY}'}",
    ),
    ('{endpoint: "http://next", tls: {ca: x}}', "line 2: destinations.b.tls: has no effect on http://"),
    ('{endpoint: "https://next", tls: {cert: x}}', "line 2: destinations.b.tls: cert and key belong together"),
    *[
        (f'{{endpoint: "http://{own}"}}', f"line 2: destinations.b.endpoint: http://{own} is this program's own")
        for own in ("127.0.0.1:4317", "localhost:4318", "[::1]:9464", "0.0.0.0:8321", "127.1.2.3:4317")
    ],
]


@pytest.mark.parametrize(("text", "message"), DESTINATION_PROBLEMS, ids=[row[0] for row in DESTINATION_PROBLEMS])
def test_each_problem_of_a_destination(text: str, message: str) -> None:
    found = problems(f"destinations:\n  b: {text}\n")
    assert found.splitlines()[0].startswith(f"c.yaml: {message}")
    assert "s3cret" not in found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- a", "line 1: must be a mapping with mode, verdict_spans, receivers, destinations,"),
        ("words", "line 1: must be a mapping with mode, verdict_spans, receivers, destinations,"),
        ("destinations: {'': {endpoint: 'http://a'}}", "line 1: destinations: holds an empty name; give it one"),
        ("destinations: [a]", "line 1: destinations: must map names to sections, not a list"),
    ],
)
def test_what_follows_from_a_problem_is_none_of_its_own(text: str, told: str) -> None:
    (line,) = problems(text).splitlines()
    assert line.startswith(f"c.yaml: {told}")


def test_all_problems_are_told_at_once_in_the_order_of_the_file() -> None:
    text = "mode: x\nclocks:\n  settle: x\n  verdict_aftr: 1s\nadmin: {endpoint: y}\n"
    assert [line.split(": ")[1:3] for line in problems(text).splitlines()] == [
        ["line 1", "mode"],
        ["line 1", "destinations"],
        ["line 3", "clocks.settle"],
        ["line 4", "clocks.verdict_aftr"],
        ["line 5", "admin.endpoint"],
    ]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: cannot be read: no such file or directory"):
        load(tmp_path / "nowhere.yaml", {})
    (tmp_path / "latin.yaml").write_bytes(b"mode: \xff")
    with pytest.raises(ConfigError, match=r"not UTF-8 text \(byte 6\)"):
        load(tmp_path / "latin.yaml", {})


def test_aliases_cannot_expand_without_bound() -> None:
    text = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
        f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n" for before, name in zip("abcdef", "bcdefg", strict=True)
    )
    assert "too large or too deep once aliases are resolved" in problems(text)


# ---- warnings and secrets ----------------------------------------------------------------------


OPEN = "beyond this machine, without encryption (tls) or any check of who connects (auth, or tls.client_ca)"


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("", []),
        (
            "receivers: {grpc: {endpoint: 0.0.0.0:4317}}",
            [f"receivers.grpc listens at 0.0.0.0:4317, {OPEN}"],
        ),
        (
            "receivers: {http: {endpoint: 10.0.0.1:4318, auth: {bearer: a}}}",
            ["receivers.http listens at 10.0.0.1:4318, beyond this machine, without encryption (tls)"],
        ),
        ("admin: {endpoint: '[::]:1', tls: {cert: a, key: b, client_ca: c}}", []),
        (
            "metrics: {prometheus: 0.0.0.0:9464}",
            ["metrics.prometheus listens at 0.0.0.0:9464, beyond this machine, without any check of who reads"],
        ),
    ],
)
def test_what_is_laid_open_is_warned_of(text: str, warnings: list[str]) -> None:
    assert find_warnings(read(text)) == warnings


def test_headers_over_plaintext_are_warned_of() -> None:
    config = parse('destinations: {b: {endpoint: "http://far:1", headers: {k: v}}}', "", {})
    assert find_warnings(config) == [
        "destinations.b sends its headers over plaintext http://; write https:// to protect them"
    ]


def test_secrets_are_never_printed() -> None:
    text = 'destinations: {b: {endpoint: "https://far", headers: {k: s3cret}}}\nadmin: {auth: {bearer: s3cret}}'
    config = parse(text, "", {})
    assert "s3cret" not in repr(config) + "\n".join(as_lines(config))
    assert "destinations.b.headers.k: (secret)" in as_lines(config)


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"STATE_DIRECTORY": "/var/lib/private/a:/b", "XDG_STATE_HOME": "/x"}, "/var/lib/private/a"),
        ({"XDG_STATE_HOME": "/x"}, "/x/luckrate-otel"),
        ({"XDG_STATE_HOME": "relative"}, str(Path("~/.local/state/luckrate-otel").expanduser())),
    ],
)
def test_the_journal_is_where_the_system_keeps_state(
    environ: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert state_folder(environ) == Path(folder)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert state_folder({"XDG_STATE_HOME": "/x"}) == Path("/var/lib/luckrate-otel")


def test_no_journal_is_said_so() -> None:
    config = parse(BACKEND + "journal: none", "c.yaml", {})
    assert config.journal is None
    assert "journal: none" in as_lines(config)
    assert "verdict_spans: false" in as_lines(config)


values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.just(10**400),  # beyond every float
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
        st.sampled_from(
            ["none", "", "a\0b", "~nobody-of-this-name/x", "http://[", "${env:X", "1e999", "[::1]:1", "5x"]
        ),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.sampled_from(list(keys())), values), min_size=1, max_size=3))
def test_whatever_a_key_holds_is_read_or_told_in_one_line(written: list[tuple[str, Any]]) -> None:
    """JSON is YAML, too."""
    whole: dict[str, Any] = {"destinations": {"b": {"endpoint": "http://next:4317"}}}
    for path, value in written:
        *parents, last = path.replace("<name>", "b").split(".")
        here = whole
        for name in parents:
            here = here.setdefault(name, {})
            if not isinstance(here, dict):
                return  # what stands there already holds no keys
        here[last] = value
    try:
        config = parse(json.dumps(whole), "c.yaml", {})
    except ConfigError as error:
        told = str(error).splitlines()
        assert len(told) == len(error.problems)  # noqa: PT017 - most are refused, not all
    else:
        assert as_lines(config)
        find_warnings(config)
