"""The command line: what is asked for is done, and what is wrong is told in one line with exit status 2."""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from luckrate_otel.cli import ends, main, parse

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process: exit status, stdout, stderr."""

    def run(*argv: object) -> tuple[int, str, str]:
        status = main([str(word) for word in argv])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "refunds.yaml"
    path.write_text("name: refunds\nforbidden: [issue_refund]\n", encoding="utf-8")
    return path


def request(*spans: dict[str, object]) -> str:
    return json.dumps(
        {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "s"}, "spans": list(spans)}]}]}
    )


def span(number: int, name: str, parent: int = 0, **attributes: str) -> dict[str, object]:
    return {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": f"{number:016x}",
        **({"parentSpanId": f"{parent:016x}"} if parent else {}),
        "name": name,
        "startTimeUnixNano": str(1_000_000_000 + number * 1_000_000),
        "endTimeUnixNano": str(2_000_000_000 - number * 1_000_000),
        "attributes": [
            {"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in attributes.items()
        ],
    }


AGENT = span(1, "invoke_agent shop", gen_ai__operation__name="invoke_agent", gen_ai__agent__name="shop")


def tool(number: int, name: str) -> dict[str, object]:
    return span(
        number,
        f"execute_tool {name}",
        1,
        gen_ai__operation__name="execute_tool",
        gen_ai__tool__name=name,
        gen_ai__tool__call__arguments='{"order_id": "88213"}',
        gen_ai__tool__call__result="s3cret",
    )


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """One run of two calls, the second of which the spec above forbids."""
    path = tmp_path / "traces.jsonl"
    path.write_text(request(AGENT, tool(2, "lookup_order"), tool(3, "issue_refund")) + "\n", encoding="utf-8")
    return path


# ---- usage -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["serve"],
        ["demo"],
        ["steps"],
        ["check"],
        ["compare"],
        ["spec"],
        ["spec", "check"],
        ["spec", "schema"],
        ["spec", "infer"],
        ["spec", "test"],
        ["config"],
        ["config", "check"],
        ["health"],
    ],
)
def test_help_reads_well(run: Run, words: list[str]) -> None:
    status, out, err = run(*words, "--help")
    assert (status, err) == (0, "")
    assert out.startswith(f"usage: luckrate-otel {' '.join(words)}".rstrip())
    assert all(len(line) <= 100 for line in out.splitlines())


def test_help_shows_only_commands_that_work_and_every_exit_status() -> None:
    """`exec`, of which the help stops at --, is in it too. Commands with one status, 0, need not tell it."""
    told = {name: text for name, text in vars(ends).items() if name.isupper()}
    lines = [line for text in told.values() for line in text.splitlines() if line.startswith("  ")]
    for command in (line.partition("luckrate-otel ")[2] for line in lines if "luckrate-otel " in line):
        parse(shlex.split(command.partition(" > ")[0]))
    silent = {"PROGRAM", "DEMO", "SPEC_SCHEMA"}
    assert {name for name, text in told.items() if "exit status: 0" not in text} == silent


def test_version(run: Run) -> None:
    status, out, _ = run("--version")
    assert status == 0
    assert out.startswith("luckrate-otel 0.")


SHARE = "between 0 and 1, such as 0.05, not"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: COMMAND (see luckrate-otel --help)"),
        (["chekc"], "argument COMMAND: invalid choice: 'chekc'"),
        (["check", "x"], "the following arguments are required: --spec (see luckrate-otel check --help)"),
        (
            ["exec", "true", "--spec", "s"],
            "the following arguments are required: --spec; options stand before CMD (see luckrate-otel exec --help)",
        ),
        *(
            (words, f"argument {words[-2] if words[-2].startswith('--') else 'FILE'}: must name a file, not ''")
            for words in (
                ["check", "--spec", "s", "x", ""],
                ["steps", ""],
                ["spec", "check", ""],
                ["spec", "infer", ""],
                ["check", "x", "--spec", ""],
                ["serve", "--config", ""],
                ["config", "check", "--spec", ""],
                ["check", "x", "--spec", "s", "--baseline", ""],
                ["spec", "test", "--spec", "s", "--good", ""],
            )
        ),
        (["compare", "a", ""], "argument B: must name a file, not ''"),
        (["spec", "infer", "x", "--name", " "], "argument --name: must be a name, not ' '"),
        (["steps", "x", "--format", "xml"], "argument --format: invalid choice: 'xml'"),
        *(
            (
                ["check", "x", "--spec", "s", "--max-luck-rate", bad],
                f"argument --max-luck-rate: must be a share {SHARE}",
            )
            for bad in ("5", "-0.1", "nan", "many")
        ),
        *(
            (["exec", "--spec", "s", "--runs", bad], "argument --runs: must be a whole number from 1 on, not")
            for bad in ("0", "-1", "1.5", "x", "²")
        ),
        *(
            ([*words, bad], f"argument {words[-1]}: must be a number of seconds above 0, such as 2.5, not '{bad}'")
            for words in (
                ["health", "--timeout"],
                ["exec", "--spec", "s", "--wait"],
                ["exec", "--spec", "s", "--settle"],
            )
            for bad in ("0", "-1", "inf", "nan", "1e10", "x")
        ),
        *(
            (["health", "--endpoint", bad], f"--endpoint {bad}: must be host:port, or http:// or https:// with it")
            for bad in (
                "::::",
                "127.0.0.1:99999",
                "127.0.0.1:x",
                "127.0.0.1:0",
                "file:///etc",
                ":8321",
                "http://",
                "[::1",
            )
        ),
    ],
)
def test_bad_usage_is_one_line(run: Run, words: list[str], message: str) -> None:
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert err.startswith(f"luckrate-otel: {message}")
    assert err.count("\n") == 1


# ---- files -------------------------------------------------------------------------------------


def test_spans_without_an_agent_are_one_line(run: Run, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.json" for name in "abcd"]
    for path in paths:
        path.write_text(
            request(tool(2, "x")).replace("gen_ai", "other").replace("execute_tool", "work"), encoding="utf-8"
        )
    status, out, err = run("steps", *paths)
    assert (status, out, err.count("\n")) == (2, "", 1)
    named = f"{paths[0]}, {paths[1]}, {paths[2]} and 1 more"
    assert err.startswith(
        f"luckrate-otel: {named}: no agent run found: 4 spans and 0 log records, none of an agent's run;"
    )


def test_steps_as_text(run: Run, traces: Path) -> None:
    status, out, err = run("steps", traces)
    assert (status, err) == (0, "")
    assert out == (
        "shop  0af7651916cd43dd8448eb211c80319c:0000000000000001  [genai]\n"
        "  0  lookup_order  ok  996 ms  (order_id='88213') → s3cret\n"
        "  1  issue_refund  ok  994 ms  (order_id='88213') → s3cret\n"
    )


def test_steps_as_json_are_one_run_a_line(run: Run, traces: Path) -> None:
    status, out, _ = run("steps", traces, "--format", "json")
    (line,) = out.splitlines()
    steps = json.loads(line)["steps"]
    assert status == 0
    assert [list(step) for step in steps] == [
        ["tool", "args", "ok", "result", "error", "t", "duration", "agent", "span"],
        ["tool", "args", "ok", "result", "error", "t", "duration", "agent", "span"],
    ]
    assert [step["tool"] for step in steps] == ["lookup_order", "issue_refund"]


def test_check_fails_the_gate_on_a_hard_violation(run: Run, traces: Path, spec: Path) -> None:
    status, out, err = run("check", traces, "--spec", spec)
    assert (status, err) == (1, "")
    assert "✗ hard step 1: forbidden[0]: " in out
    assert "Luck Rate 100 %: 1 lucky of 1 green" in out
    assert out.endswith("Gate failed\n  hard: 1 violation in 1 of 1 run (forbidden 1)\n")
    assert "s3cret" not in out


def test_check_passes_the_gate(run: Run, traces: Path, spec: Path) -> None:
    spec.write_text("forbidden: [other]", encoding="utf-8")
    status, out, _ = run("check", traces, "--spec", spec)
    assert status == 0
    assert out.endswith("Gate passed\n")


@pytest.mark.parametrize("show", [False, True])
def test_check_as_json(run: Run, traces: Path, spec: Path, show: bool) -> None:
    words = ["--show-values"] if show else []
    status, out, _ = run("check", traces, "--spec", spec, "--format", "json", *words)
    report = json.loads(out)
    assert status == 1
    assert list(report) == ["runs", "luck_rate", "gate"]
    assert list(report["runs"][0]) == [
        *("run_id", "trace_ids", "conversation_id", "adapters", "agent", "task_input", "final_output"),
        *("close_reason", "coverage", "steps", "spec", "spec_version", "case", "output", "output_source", "path"),
        *("verdict", "reason", "violations", "not_evaluated", "vacuous"),
    ]
    assert list(report["runs"][0]["violations"][0]) == [
        *("rule", "clause", "severity", "message", "step", "tool", "argument", "sources", "evidence", "span"),
        "fingerprint",
    ]
    assert list(report["luck_rate"]) == [
        *("rate", "lucky", "green", "unverified", "upper", "interval", "runs", "unknown", "not_graded"),
    ]
    assert report["gate"] == {"failed": True, "reasons": ["hard: 1 violation in 1 of 1 run (forbidden 1)"]}
    step = report["runs"][0]["steps"][0]
    assert (step["args"], step["result"]) == (({"order_id": "88213"}, "s3cret") if show else (None, None))
    assert ("s3cret" in out) is show


def test_bad_lines_are_told_and_counted_and_the_rest_is_used(run: Run, traces: Path) -> None:
    traces.write_text(traces.read_text(encoding="utf-8") + '{"resourceSpans": [\n', encoding="utf-8")
    status, out, err = run("steps", traces)
    assert status == 0
    assert "issue_refund" in out
    assert err.splitlines()[0].startswith(f"luckrate-otel: {traces}:2: ")
    assert err.splitlines()[1] == "luckrate-otel: 1 unusable part left out, the rest is used"


@pytest.mark.parametrize(
    ("content", "cause"),
    [("", "the file is empty"), ("{", ""), (request(), "no agent run found"), ("hello", "")],
)
def test_unusable_input_is_one_line(run: Run, tmp_path: Path, content: str, cause: str) -> None:
    file = tmp_path / "x"
    file.write_text(content, encoding="utf-8")
    status, out, err = run("steps", file)
    assert (status, out) == (2, "")
    assert err.startswith((f"luckrate-otel: {file}: ", f"luckrate-otel: {file}:1: "))
    assert cause in err
    assert err.count("\n") == 1


def test_a_missing_file_is_one_line(run: Run, tmp_path: Path, spec: Path) -> None:
    assert run("steps", tmp_path / "none") == (
        2,
        "",
        f"luckrate-otel: {tmp_path}/none: cannot be read: no such file or directory\n",
    )
    status, _, err = run("check", tmp_path / "none", "--spec", tmp_path / "s.yaml")
    assert (status, err) == (2, f"luckrate-otel: {tmp_path}/s.yaml: cannot be read: no such file or directory\n")


def test_no_runs_fail_the_gate_unless_allowed(run: Run, tmp_path: Path, spec: Path) -> None:
    file = tmp_path / "empty.jsonl"
    file.write_text(request(), encoding="utf-8")
    assert run("check", file, "--spec", spec)[0] == 2
    status, out, _ = run("check", file, "--spec", spec, "--allow-empty")
    assert status == 0
    assert out.startswith("Luck Rate —")


# ---- specs and configuration -------------------------------------------------------------------


def test_spec_check(run: Run, spec: Path, tmp_path: Path) -> None:
    status, out, _ = run("spec", "check", spec)
    assert status == 0
    assert out.startswith(f"{spec}: refunds, version ")
    bad = tmp_path / "bad.yaml"
    bad.write_text("forbiden: []\n", encoding="utf-8")
    status, out, err = run("spec", "check", bad, spec)
    assert status == 2
    assert out.startswith(f"{spec}: refunds")
    assert err.startswith(f"luckrate-otel: {bad}: line 1: forbiden: unknown key")


def test_what_a_file_says_cannot_drive_the_terminal(run: Run, spec: Path) -> None:
    spec.write_text('name: "a\\n\\e[2Jb"\n', encoding="utf-8")
    assert run("spec", "check", spec)[1].startswith(f"{spec}: a\\n\\x1b[2Jb, version ")
    spec.write_text('"\\e[2Jforbidden": []\n', encoding="utf-8")
    assert run("spec", "check", spec)[2].startswith(f"luckrate-otel: {spec}: line 1: \\x1b[2Jforbidden: unknown key")
    assert run("steps", "\x1b[2J")[2] == "luckrate-otel: \\x1b[2J: cannot be read: no such file or directory\n"


HALF = "name: half\nuntrusted: [read]\n"
HALF_TOLD = "line 2: untrusted: the rule taint is off without privileged (tools that no such data may reach)\n"


@pytest.mark.parametrize(
    "words",
    [
        ["spec", "check"],
        ["check", "TRACES", "--spec"],
        ["spec", "test", "--good", "TRACES", "--spec"],
        ["exec", "--allow-empty", "--wait", "0.1", "--spec", "SPEC", "--", "true"],
        ["config", "check", "--spec"],
        ["serve", "--dry-run", "--spec"],
    ],
)
def test_what_a_spec_says_in_vain_is_warned_of(
    run: Run, traces: Path, spec: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if words[0] in ("config", "serve"):  # exec would wait for it
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    spec.write_text(HALF, encoding="utf-8")
    given = [{"TRACES": str(traces), "SPEC": str(spec)}.get(word, word) for word in words]
    status, _, err = run(*given, *([] if "exec" in words else [spec]))
    assert status == 0
    assert f"luckrate-otel: warning: {spec}: {HALF_TOLD}" in err


def test_config_check(run: Run, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "s3cret")
    config = tmp_path / "c.yaml"
    config.write_text(
        'destinations: {b: {endpoint: "http://far:1", headers: {k: "${env:KEY}"}}}\nspecs: [refunds.yaml]\n',
        encoding="utf-8",
    )
    status, out, err = run("config", "check", "--config", config)
    assert status == 0
    assert "destinations.b.headers.k: (secret)\n" in out
    assert f"spec refunds ({spec}), version " in out
    assert err.startswith("luckrate-otel: warning: destinations.b sends its headers over plaintext http://")
    assert run("serve", "--dry-run", "--config", config)[:2] == (0, out)


@pytest.mark.parametrize("words", [["config", "check"], ["serve"]])
def test_without_a_configuration_one_is_asked_for(run: Run, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    assert run(*words) == (
        2,
        "",
        (
            "luckrate-otel: configuration: destinations: at least one is required; give --config FILE that names one, "
            "or set OTEL_EXPORTER_OTLP_ENDPOINT\n"
        ),
    )


def test_config_problems_are_all_told(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text('destinations: {b: {endpoint: "http://a"}}\nmode: x\nclocks: {settel: 1}\n', encoding="utf-8")
    for words in (["config", "check"], ["serve"]):
        status, out, err = run(*words, "--config", config)
        assert (status, out) == (2, "")
        assert err == (
            f"luckrate-otel: {config}: line 2: mode: must be inline or tap (it is 'x')\n"
            f"luckrate-otel: {config}: line 3: clocks.settel: unknown key; did you mean 'settle'?\n"
        )


# ---- health ------------------------------------------------------------------------------------


class _Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/readyz":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"ok\n")
            return
        if self.path == "/binary/readyz":
            self.wfile.write(b"\x00\x00\x12\x04\nHTTP?\n")
            return
        self.send_response(404 if self.path == "/none/readyz" else 503)
        self.end_headers()
        self.wfile.write({"/why/readyz": b"taking up the journal\n", "/odd/readyz": b"\x1b[2J\n"}.get(self.path, b""))

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def ready() -> Iterator[str]:
    """Something that says it is ready, as host:port."""
    with HTTPServer(("127.0.0.1", 0), _Ready) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_health_of_a_ready_processor(run: Run, ready: str) -> None:
    assert run("health", "--endpoint", ready) == (0, "ok\n", "")
    assert run("health", "--endpoint", f"http://{ready}/") == (0, "ok\n", "")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("why", "taking up the journal"),
        ("odd", "Service Unavailable"),
        ("mute", "Service Unavailable"),
        ("none", "there is no such page; is this its admin.endpoint?"),
        ("binary", "what answers there does not speak HTTP; is this its admin.endpoint?"),
    ],
)
def test_health_says_why_not(run: Run, ready: str, path: str, reason: str) -> None:
    err = f"luckrate-otel: http://{ready}/{path}/readyz: not ready ({reason})\n"
    assert run("health", "--endpoint", f"http://{ready}/{path}") == (1, "", err)


def test_health_of_what_speaks_no_tls(run: Run, ready: str) -> None:
    status, out, err = run("health", "--endpoint", f"https://{ready}")
    told = rf"luckrate-otel: https://{ready}/readyz: not ready \(TLS failed: [a-z ]+; does it take http://\?\)\n"
    assert (status, out) == (1, "")
    assert re.fullmatch(told, err)


def test_health_where_nothing_listens(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
    status, out, err = run("health", "--endpoint", endpoint)
    assert (status, out) == (1, "")
    assert err == (
        f"luckrate-otel: http://{endpoint}/readyz: not ready (connection refused; nothing listens there: is it "
        "running, and is this its admin.endpoint?)\n"
    )


# ---- as a real process -------------------------------------------------------------------------


def test_the_command_itself(traces: Path, spec: Path) -> None:
    """Through a pipe there is no colour and no progress, and standard input is read for -."""
    done = subprocess.run(
        [sys.executable, "-m", "luckrate_otel", "check", "-", "--spec", str(spec)],
        input=traces.read_bytes(),
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    assert done.returncode == 1
    assert b"\x1b" not in done.stdout + done.stderr
    assert done.stdout.endswith(b"Gate failed\n  hard: 1 violation in 1 of 1 run (forbidden 1)\n")
    assert done.stderr == b""


def test_a_reader_that_stops_early_is_no_error(traces: Path) -> None:
    command = f"{sys.executable} -m luckrate_otel steps {traces} | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60, check=False)
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is Linux's")
@pytest.mark.parametrize("words", [["check"], ["check", "--format", "json"], ["steps"]])
def test_a_report_that_cannot_be_written_is_no_gate(words: list[str], traces: Path, spec: Path) -> None:
    command = [sys.executable, "-m", "luckrate_otel", *words, str(traces)]
    command += ["--spec", str(spec)] if words[0] == "check" else []
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    told = b"luckrate-otel: standard output cannot be written: no space left on device; its report is not whole\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_an_address_in_use_is_one_line(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        config.write_text(
            'destinations: {b: {endpoint: "http://127.0.0.1:9"}}\n'
            f"receivers: {{grpc: {{endpoint: none}}, http: {{endpoint: {place}}}}}\n"
            "admin: {endpoint: none}\nmetrics: {prometheus: none}\njournal: none\n",
            encoding="utf-8",
        )
        command = [sys.executable, "-m", "luckrate_otel", "serve", "--config", str(config)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"luckrate-otel: {config}: ")
    assert "address already in use" in done.stderr
    assert done.stderr.count("\n") == 1


def test_serve_warns_of_its_specs_before_anything_else(tmp_path: Path, spec: Path) -> None:
    """The port is taken only so that it ends by itself."""
    spec.write_text(HALF, encoding="utf-8")
    config = tmp_path / "c.yaml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        config.write_text(
            f"destinations: {{b: {{endpoint: 'http://127.0.0.1:9'}}}}\nspecs: [{spec.name}]\njournal: none\n"
            f"receivers: {{grpc: {{endpoint: none}}, http: {{endpoint: {place}}}}}\n"
            "admin: {endpoint: none}\nmetrics: {prometheus: none}\n",
            encoding="utf-8",
        )
        command = [sys.executable, "-m", "luckrate_otel", "serve", "--config", str(config)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    first, *_ = done.stderr.splitlines(keepends=True)
    assert first.partition(" ")[2] == f"WARNING {spec}: {HALF_TOLD}"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_terminal_of_another_encoding_gets_escapes(encoding: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(request(AGENT, tool(2, "größe_→")) + "\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "luckrate_otel", "steps", str(path), "--format", form],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    if form == "json":
        assert json.loads(done.stdout)["steps"][0]["tool"] == "größe_→"
