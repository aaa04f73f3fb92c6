"""The environment of the command: where its telemetry goes, and that it holds what grading needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from luckrate_otel.config import SIGNALS

_OTLP = "OTEL_EXPORTER_OTLP_"


@dataclass(frozen=True, slots=True)
class Capture:
    """A variable that turns content capture on. many: its value is a list, to which ours is added."""

    variable: str
    value: str
    frameworks: str
    many: bool = False


# As docs/adapters.md lists them. Only what makes an instrumentation say more; none of these switches one on.
CAPTURE = (
    Capture(
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
        "SPAN_ONLY",
        "OpenTelemetry GenAI instrumentations (LangGraph, OpenAI, OpenAI Agents SDK), Google ADK, Splunk",
    ),
    Capture(
        "OTEL_SEMCONV_STABILITY_OPT_IN",
        "gen_ai_latest_experimental",
        "the same, and Strands Agents: the form that carries arguments and results",
        many=True,
    ),
    Capture("ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS", "true", "Google ADK, legacy format"),
    Capture("TRACELOOP_TRACE_CONTENT", "true", "OpenLLMetry (LangGraph, CrewAI, MCP)"),
    Capture("OPENINFERENCE_HIDE_INPUTS", "false", "OpenInference"),
    Capture("OPENINFERENCE_HIDE_OUTPUTS", "false", "OpenInference"),
    Capture("N8N_AGENTS_TRACING_RECORD_INPUTS", "true", "n8n, Agents feature"),
    Capture("N8N_AGENTS_TRACING_RECORD_OUTPUTS", "true", "n8n, Agents feature"),
    Capture("ENABLE_SENSITIVE_DATA", "true", "Microsoft Agent Framework"),
    Capture("SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE", "true", "Semantic Kernel, AutoGen"),
)

# What would keep spans from being made or sent. Sampling is for volume; a graded run has to be seen whole.
_REQUIRED = {
    "OTEL_SDK_DISABLED": "false",
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_TRACES_SAMPLER": "always_on",
}

_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy")


def child_environment(
    environ: Mapping[str, str], endpoint: str, *, case: str | None = None, capture: bool = True
) -> dict[str, str]:
    """The environment for the command.

    endpoint: ours; it takes both protocols. case: which case its runs are of. capture: set the content-capture settings
    that the caller has not set.
    """
    # A variable of one signal would win over the general one. The rest (headers, timeouts, compression) does no harm.
    own = {f"{_OTLP}{signal.upper()}_ENDPOINT" for signal in SIGNALS}
    child = {name: value for name, value in environ.items() if name not in own}
    child[f"{_OTLP}ENDPOINT"] = endpoint
    child.setdefault(f"{_OTLP}PROTOCOL", "http/protobuf")  # the specification's default; some SDKs have another
    child[f"{_OTLP}INSECURE"] = "true"
    child.update(_REQUIRED)
    child.pop("OTEL_TRACES_SAMPLER_ARG", None)
    child.update(_around_proxies(environ))
    if capture:
        for setting in CAPTURE:
            _set(child, setting)
    if case is not None:
        given = child.get("OTEL_RESOURCE_ATTRIBUTES", "")
        child["OTEL_RESOURCE_ATTRIBUTES"] = f"{given}{',' if given else ''}luckrate.case={quote(case, safe='')}"
    return child


def _around_proxies(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Exporters heed proxy variables, and a proxy cannot reach this machine's loopback."""
    if not any(environ.get(name) for proxy in _PROXIES for name in (proxy, proxy.upper())):
        return {}
    spared = [entry for name in ("no_proxy", "NO_PROXY") for entry in environ.get(name, "").split(",") if entry]
    told = ",".join(dict.fromkeys([*spared, "127.0.0.1"]))
    return {"no_proxy": told, "NO_PROXY": told}


def _set(child: dict[str, str], setting: Capture) -> None:
    given = child.get(setting.variable, "")
    if not given:
        child[setting.variable] = setting.value
    elif setting.many and setting.value not in given.split(","):
        child[setting.variable] = f"{given},{setting.value}"
