"""`exec` on real programs: a real SDK over both wires, captures of every kind, and commands that fail."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from luckrate_otel.cli import main
from luckrate_otel.demo.sink import Sink, listening
from luckrate_otel.execute import Command, Executed, execute
from luckrate_otel.execute.environment import CAPTURE, child_environment
from tests.captured import CASES, Case

ROOT = Path(__file__).parents[2]
AGENT = ROOT / "examples/ci/agent.py"
SPEC = ROOT / "examples/ci/refunds.yaml"
REPLAY = Path(__file__).parent / "replay.py"
PYTHON = sys.executable
pytestmark = pytest.mark.slow

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `exec` in this process with quick clocks: exit status, stdout, stderr."""
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", *(setting.variable for setting in CAPTURE)):
        monkeypatch.delenv(name, raising=False)

    def run(*words: object, spec: Path = SPEC, settle: float = 0.1) -> tuple[int, str, str]:
        status = main(["exec", "--spec", str(spec), "--settle", str(settle), *map(str, words)])
        said = capfd.readouterr()
        return status, said.out, said.err

    return run


# ---- agents ------------------------------------------------------------------------------------


def test_an_agent_that_keeps_to_the_spec_passes(run: Run) -> None:
    status, out, err = run("--show-values", "--", PYTHON, AGENT, "Refund order 88213.")
    assert status == 0
    assert err == "Done: refunded order 88213.\n"
    assert "  task   Refund order 88213.\n" in out
    assert "= pass: output ok (by check), path ok, spec refunds" in out
    assert out.endswith("Gate passed\n")


def test_one_that_does_not_fails(run: Run) -> None:
    status, out, _ = run("--runs", "2", "--format", "json", "--", PYTHON, AGENT, "Refund order 88213.", "--hasty")
    report = json.loads(out)
    assert status == 1
    assert [found["verdict"] for found in report["runs"]] == ["lucky", "lucky"]
    assert len({found["case"] for found in report["runs"]}) == 1
    assert report["gate"]["reasons"] == ["hard: 2 violations in 2 of 2 runs (before 2)"]


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_exporters_of_both_protocols_find_the_one_address(run: Run, tmp_path: Path, protocol: str) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT.read_text("utf-8").replace("otlp.proto.http", f"otlp.proto.{protocol}"), encoding="utf-8")
    status, out, err = run("--", PYTHON, agent, "Refund order 88213.")
    assert (status, err) == (0, "Done: refunded order 88213.\n")
    assert "lookup_order" in out


def test_without_content_nothing_is_claimed(run: Run) -> None:
    status, out, _ = run("--no-capture", "--", PYTHON, AGENT, "Refund order 88213.")
    assert status == 0
    assert "not_captured" in out


def test_a_proxy_is_not_in_the_way(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    status, _, _ = run("--", PYTHON, AGENT, "Refund order 88213.")
    assert status == 0


def test_the_case_can_be_named(run: Run) -> None:
    _, out, _ = run("--case", "refund, small", "--format", "json", "--", PYTHON, AGENT, "Refund order 88213.")
    assert [found["case"] for found in json.loads(out)["runs"]] == ["refund, small"]


def test_telemetry_still_goes_where_it_went(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink()
    with listening(sink) as address:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{address}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        status, _, _ = run("--", PYTHON, AGENT, "Refund order 88213.")
        assert sink.wait_for(lambda spans, _: len(spans) == 4, 10)
    assert status == 0


# ---- the same findings everywhere ----------------------------------------------------------------


@pytest.mark.parametrize("case", CASES[::6], ids=str)
def test_exec_and_check_say_the_same(run: Run, case: Case, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "s.yaml"
    spec.write_text("forbidden: [issue_refund]\nmax_steps: 1\nbefore: [[ask_human, lookup_order]]\n", encoding="utf-8")
    files = [path for path in (case.path("traces.jsonl"), case.path("logs.jsonl")) if path.exists()]
    check = main(["check", *map(str, files), "--spec", str(spec), "--format", "json", "--show-values"])
    told = capfd.readouterr().out
    status, out, _ = run("--format", "json", "--show-values", "--wait", 0.3, "--", PYTHON, REPLAY, *files, spec=spec)
    assert (status, out) == (check, told)


# ---- commands that fail --------------------------------------------------------------------------


def test_a_command_that_fails_fails_the_gate(run: Run, tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT.read_text("utf-8") + "    raise SystemExit(3)\n", encoding="utf-8")
    status, out, err = run("--", PYTHON, agent, "Refund order 88213.")
    assert status == 1
    assert out.endswith("Gate failed\n  command: exited with status 3 in 1 of 1 execution\n")
    assert err.endswith("luckrate-otel: command: exited with status 3 in 1 of 1 execution\n")


def test_a_command_that_cannot_be_run_is_one_line(run: Run) -> None:
    assert run("--", "no-such-program") == (
        2,
        "",
        "luckrate-otel: no-such-program: cannot be run: no such file or directory\n",
    )


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("absent", "{path} cannot be read: no such file or directory"),
        ("text", "no certificate or crl found; give PEM files, and the key that belongs to the certificate"),
    ],
)
def test_certificates_that_cannot_be_used_are_one_line(
    file: str, told: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the endpoint is not secure they are not looked at, as OpenTelemetry has it."""
    (tmp_path / "text").write_text("no certificate", encoding="utf-8")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(tmp_path / file))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:9")
    words = told.format(path=tmp_path / file)
    line = f"luckrate-otel: environment: certificates for https://127.0.0.1:9: {words}\n"
    assert run("--", PYTHON, "-c", "") == (2, "", line)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    assert run("--allow-empty", "--wait", 0.1, "--", PYTHON, "-c", "")[0] == 0


def test_no_command(run: Run) -> None:
    assert run("--") == (2, "", "luckrate-otel: exec: no command given; write it after --\n")


def test_a_command_without_telemetry(run: Run) -> None:
    status, out, err = run("--wait", "0.1", "--", PYTHON, "-c", "print('hello')")
    assert (status, out) == (2, "")
    assert err == (
        "hello\nluckrate-otel: no agent run seen: the command sent no telemetry; it has to export OpenTelemetry spans, "
        "and to flush them before it ends\n"
    )
    status, out, _ = run("--wait", "0.1", "--allow-empty", "--", PYTHON, "-c", "print('hello')")
    assert status == 0
    assert out.startswith("Luck Rate —")


def test_telemetry_without_an_agent(run: Run, tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    text = AGENT.read_text("utf-8").replace("gen_ai.", "other.").replace("invoke_agent", "handle")
    agent.write_text(text.replace("execute_tool", "work"), encoding="utf-8")
    status, _, err = run("--wait", "0.3", "--", PYTHON, agent, "Refund order 88213.")
    assert status == 2
    assert "luckrate-otel: no agent run seen: 4 spans and 0 log records, none of an agent's run; scopes: " in err
    assert err.count("\n") == 2


def test_ctrl_c_ends_the_command_and_reports_what_came(tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT.read_text("utf-8") + "    print('ready', flush=True)\n    input()\n", encoding="utf-8")
    words = [PYTHON, "-m", "luckrate_otel", "exec", "--spec", str(SPEC), "--runs", "9", "--settle", "0.1", "--"]
    words += [PYTHON, "-u", str(agent), "Refund order 88213."]
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    while process.stderr.readline() != "ready\n":
        pass
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "= pass: output ok" in out
    assert "command: exited with status" in err or "command: was ended by SIGINT" in err


def test_a_command_that_will_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("luckrate_otel.execute.command.STOP", 0.1)
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    program = (
        "import signal\n"
        "for number in (signal.SIGINT, signal.SIGTERM):\n    signal.signal(number, signal.SIG_IGN)\n"
        f"open({str(ready)!r}, 'w').close()\nsignal.pause()\n"
    )

    def interrupt() -> None:
        ready.read_text(encoding="utf-8")  # returns once the command has opened it
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    done = execute(Command((PYTHON, "-c", program), wait=0.1), dict(os.environ), lambda _: None)
    thread.join()
    assert (done.statuses, done.interrupted) == ((-signal.SIGKILL,), True)
    assert done.reasons == ("command: was ended by SIGKILL in 1 of 1 execution",)


@pytest.mark.parametrize(
    ("statuses", "reasons"),
    [
        ((0, 0), ()),
        ((0, 1, 2), ("command: exited with status 1, exited with status 2 in 2 of 3 executions",)),
        ((-9,), ("command: was ended by SIGKILL in 1 of 1 execution",)),
        ((-250,), ("command: was ended by signal 250 in 1 of 1 execution",)),
    ],
)
def test_how_commands_end(statuses: tuple[int, ...], reasons: tuple[str, ...]) -> None:
    assert Executed((), statuses).reasons == reasons


def test_an_endpoint_that_cannot_be_understood_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "backend")
    status, _, err = run("--", PYTHON, "-c", "")
    assert status == 2
    assert err.startswith("luckrate-otel: environment: OTEL_EXPORTER_OTLP_ENDPOINT: ")


@pytest.mark.parametrize("words", [["--runs", "0"], ["--settle", "0"], ["--wait", "x"]])
def test_bad_usage(run: Run, words: list[str]) -> None:
    status, _, err = run(*words, "--", "true")
    assert status == 2
    assert err.startswith(f"luckrate-otel: argument {words[0]}: must be a ")


def test_what_the_next_hop_has_to_say_is_told_as_everything_else(tmp_path: Path) -> None:
    """In a process of its own: here pytest listens to the log."""
    words = [PYTHON, "-m", "luckrate_otel", "exec", "--spec", str(SPEC), "--settle", "0.1", "--"]
    words += [PYTHON, str(AGENT), "Refund order 88213."]
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    done = subprocess.run(
        words,
        env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_EXPORTER_OTLP_TIMEOUT": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert lines[0] == "Done: refunded order 88213."
    assert lines[1:]
    assert all(line.startswith("luckrate-otel: ") for line in lines[1:])


# ---- the environment -----------------------------------------------------------------------------


def test_the_environment_of_a_command() -> None:
    child = child_environment({"PATH": "/bin"}, "http://127.0.0.1:1", case="a b")
    assert child == {
        "PATH": "/bin",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_INSECURE": "true",
        "OTEL_SDK_DISABLED": "false",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_TRACES_SAMPLER": "always_on",
        "OTEL_RESOURCE_ATTRIBUTES": "luckrate.case=a%20b",
        **{setting.variable: setting.value for setting in CAPTURE},
    }


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (
            {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://far:1/v1/traces"},
            {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": None},
        ),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}),
        ({"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_TRACES_EXPORTER": "otlp"}),
        (
            {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1"},
            {"OTEL_TRACES_SAMPLER": "always_on", "OTEL_TRACES_SAMPLER_ARG": None},
        ),
        ({"TRACELOOP_TRACE_CONTENT": "false"}, {"TRACELOOP_TRACE_CONTENT": "false"}),
        (
            {"OTEL_SEMCONV_STABILITY_OPT_IN": "http"},
            {"OTEL_SEMCONV_STABILITY_OPT_IN": "http,gen_ai_latest_experimental"},
        ),
        (
            {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"},
            {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"},
        ),
        ({"OTEL_RESOURCE_ATTRIBUTES": "a=b"}, {"OTEL_RESOURCE_ATTRIBUTES": "a=b"}),
        ({"NO_PROXY": "a"}, {"NO_PROXY": "a", "no_proxy": None}),
        ({"HTTP_PROXY": "p"}, {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "HTTP_PROXY": "p"}),
        (
            {"https_proxy": "p", "no_proxy": "a,b", "NO_PROXY": "b"},
            {"NO_PROXY": "a,b,127.0.0.1", "no_proxy": "a,b,127.0.0.1"},
        ),
    ],
)
def test_what_becomes_of_what_was_set(given: dict[str, str], found: dict[str, str | None]) -> None:
    child = child_environment(given, "http://127.0.0.1:1")
    assert {name: child.get(name) for name in found} == found


def test_capture_can_be_left_alone() -> None:
    child = child_environment({}, "http://127.0.0.1:1", capture=False)
    assert not {setting.variable for setting in CAPTURE} & set(child)
