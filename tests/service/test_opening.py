"""What the configuration names outside itself, such as a port or a token file, is told by its key if it is unusable."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from luckrate_otel import cli
from luckrate_otel.config import parse
from luckrate_otel.errors import ConfigError
from luckrate_otel.service.server import Server

CERTS = Path(__file__).parent / "certs"
ADVICE = "; give PEM files, and the key that belongs to the certificate"
ABSENT = "absent cannot be read: no such file or directory"


@pytest.fixture
def taken() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as held:
        yield f"127.0.0.1:{held.getsockname()[1]}"


def configuration(**sections: str) -> str:
    """Every listener on a free port, and what is to be different."""
    every = {
        "receivers": "{grpc: {endpoint: 127.0.0.1:0}, http: {endpoint: 127.0.0.1:0}}",
        "destinations": '{b: {endpoint: "https://127.0.0.1:9"}}',
        "metrics": "{prometheus: 127.0.0.1:0}",
        "admin": "{endpoint: 127.0.0.1:0}",
        "journal": "none",
    }
    return "".join(f"{key}: {value}\n" for key, value in (every | sections).items())


def refusal(text: str, source: Path) -> str:
    """What a start that has to fail says."""

    async def scenario() -> str:
        with pytest.raises(ConfigError) as caught:
            await Server(parse(text, str(source), {}), []).start()
        return str(caught.value)

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("key", "sections"),
    [
        ("receivers.grpc.endpoint", {"receivers": "{grpc: {endpoint: TAKEN}, http: {endpoint: none}}"}),
        ("receivers.http.endpoint", {"receivers": "{grpc: {endpoint: none}, http: {endpoint: TAKEN}}"}),
        ("metrics.prometheus", {"metrics": "{prometheus: TAKEN}"}),
        ("admin.endpoint", {"admin": "{endpoint: TAKEN}"}),
    ],
)
def test_a_port_in_use(key: str, sections: dict[str, str], taken: str, tmp_path: Path) -> None:
    text = configuration(**{name: value.replace("TAKEN", taken) for name, value in sections.items()})
    cause = f"cannot listen on {taken}: address already in use; stop what listens there, or name another port"
    assert refusal(text, tmp_path / "c.yaml") == f"{tmp_path}/c.yaml: {key}: {cause}"


@pytest.mark.parametrize("receiver", ["grpc", "http"])
def test_an_address_of_another_machine(receiver: str, tmp_path: Path) -> None:
    other = {"grpc": "http", "http": "grpc"}[receiver]
    text = configuration(receivers=f"{{{receiver}: {{endpoint: 192.0.2.1:0}}, {other}: {{endpoint: none}}}}")
    assert refusal(text, tmp_path / "c.yaml") == (
        f"{tmp_path}/c.yaml: receivers.{receiver}.endpoint: cannot listen on 192.0.2.1:0: cannot assign requested "
        "address; name an address that this machine has, and a port that this user may take"
    )


PLACES = [
    ("receivers.grpc", "receivers", "{{grpc: {{endpoint: 127.0.0.1:0, {}}}, http: {{endpoint: none}}}}"),
    ("receivers.http", "receivers", "{{http: {{endpoint: 127.0.0.1:0, {}}}, grpc: {{endpoint: none}}}}"),
    ("admin", "admin", "{{endpoint: 127.0.0.1:0, {}}}"),
]
FILES = [
    ("tls", "tls: {cert: absent, key: broken}", ABSENT),
    ("tls", "tls: {cert: broken, key: broken}", "not PEM" + ADVICE),
    ("tls", f"tls: {{cert: {CERTS}/server.pem, key: {CERTS}/other.key}}", "key values mismatch" + ADVICE),
    ("auth.bearer_file", "auth: {bearer_file: absent}", ABSENT),
    ("auth.bearer_file", "auth: {bearer_file: empty}", "empty holds no token"),
    ("auth.bearer_file", "auth: {bearer_file: binary}", "binary holds no token: it is not UTF-8 text"),
]
CASES = [
    (f"{key}.{what}", section, shape.format(given), cause)
    for key, section, shape in PLACES
    for what, given, cause in FILES
] + [
    ("destinations.b.tls", "destinations", f'{{b: {{endpoint: "https://127.0.0.1:9", tls: {{ca: {file}}}}}}}', cause)
    for file, cause in (("absent", ABSENT), ("broken", "no certificate or crl found" + ADVICE))
]


@pytest.mark.parametrize(("key", "section", "value", "cause"), CASES)
def test_a_file_that_cannot_be_used(
    key: str, section: str, value: str, cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a pipeline checks the configuration its secrets are not there, so that is a warning to `config check`."""
    (tmp_path / "broken").write_text("no certificate", encoding="utf-8")
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    file = tmp_path / "c.yaml"
    file.write_text(configuration(**{section: value}), encoding="utf-8")
    told = f"{key}: {cause if ADVICE in cause else f'{tmp_path}/{cause}'}"
    assert refusal(file.read_text("utf-8"), file) == f"{file}: {told}"
    status = cli.main(["config", "check", "--config", str(file)])
    err = capsys.readouterr().err
    if "absent" in value:
        assert (status, err) == (0, f"luckrate-otel: warning: {told}; the processor does not start without it\n")
    else:
        assert (status, err) == (2, f"luckrate-otel: {file}: {told}\n")


def test_a_journal_below_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that is not there yet is made at start, and is no problem."""
    file = tmp_path / "c.yaml"
    for path, told in (
        (
            "c.yaml",
            f"luckrate-otel: {file}: journal.path: {file} is no folder; name another folder, or write journal: none\n",
        ),
        ("absent/journal", ""),
    ):
        file.write_text(configuration(journal=f"{{path: {path}}}"), encoding="utf-8")
        assert cli.main(["config", "check", "--config", str(file)]) == (2 if told else 0)
        assert capsys.readouterr().err == told
    assert not (tmp_path / "absent").exists()


def test_files_that_can_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.yaml"
    (tmp_path / "token").write_text("t\n", encoding="utf-8")
    tls = f"tls: {{cert: {CERTS}/server.pem, key: {CERTS}/server.key}}"
    receivers = f"{{http: {{{tls}, auth: {{bearer_file: token}}}}}}"
    file.write_text(configuration(receivers=receivers), encoding="utf-8")
    assert cli.main(["config", "check", "--config", str(file)]) == 0
    assert capsys.readouterr().err == ""
