"""What stands below the options in each command's help: exit statuses and examples."""

from __future__ import annotations

PROGRAM = """\
examples:
  luckrate-otel demo
      see it work: captured agent traffic through the real processor
  luckrate-otel steps traces.jsonl
      what each agent run did, call by call
  luckrate-otel check traces.jsonl --spec refunds.yaml
      grade runs and set the exit status, for CI
  luckrate-otel exec --spec refunds.yaml --runs 5 -- python agent.py
      run an agent, grade what it did
  luckrate-otel serve --config luckrate.yaml
      the processor: receive OTLP, grade, annotate, forward
"""

CHECK = """\
exit status: 0 the gate passed, 1 it failed, 2 bad usage or nothing usable to grade.

examples:
  luckrate-otel check traces.jsonl --spec refunds.yaml
  luckrate-otel check spans.jsonl logs.jsonl --spec refunds.yaml --format json > report.json
  kubectl logs collector | luckrate-otel check - --spec refunds.yaml --max-luck-rate 0.05
"""

EXEC = """\
CMD's own output goes to stderr; the report is all there is on stdout. CMD needs no change: what it sends over OTLP,
gRPC or HTTP, comes here, and is passed on to where its environment pointed it, if anywhere.

exit status: 0 the gate passed, 1 it failed or CMD did, 2 bad usage or no agent run seen.

examples:
  luckrate-otel exec --spec refunds.yaml -- python agent.py
  luckrate-otel exec --spec refunds.yaml --runs 5 --format junit -- opentelemetry-instrument python agent.py
"""

COMPARE = """\
exit status: 0 nothing got worse, 1 something did (a case, or surely the Luck Rate), 2 no report.

examples:
  luckrate-otel check main.jsonl --spec refunds.yaml --format json > a.json
  luckrate-otel check branch.jsonl --spec refunds.yaml --format json > b.json
  luckrate-otel compare a.json b.json
"""

SERVE = """\
Without --config everything has its default, and spans go where OTEL_EXPORTER_OTLP_ENDPOINT says.

exit status: 0 stopped and nothing lost, 1 something was lost at the stop, 2 could not start.

examples:
  luckrate-otel serve --config luckrate.yaml
  OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:14318 luckrate-otel serve --spec refunds.yaml
"""

DEMO = """\
It needs no configuration, no key and no network, and ends by itself.
"""

STEPS = """\
Arguments and results are shown, and no spec is needed.

exit status: 0 runs were found, 2 bad usage or no run found.

examples:
  luckrate-otel steps traces.jsonl
  luckrate-otel steps traces.jsonl execution.json --format json
"""

SPEC_CHECK = """\
exit status: 0 all can be used, 2 one or more cannot.

example:
  luckrate-otel spec check refunds.yaml support.yaml
"""

SPEC_SCHEMA = """\
example:
  luckrate-otel spec schema > luckrate-spec.schema.json
"""

SPEC_INFER = """\
exit status: 0 a spec was printed, 2 bad usage or no run found.

example:
  luckrate-otel spec infer good.jsonl --name refunds > refunds.yaml
"""

SPEC_TEST = """\
exit status: 0 the good runs keep the spec, 1 one or more break it, 2 bad usage or no run found.

example:
  luckrate-otel spec test --spec refunds.yaml --good good.jsonl
"""

CONFIG_CHECK = """\
Nothing is started, and no address is tried. Warnings leave the exit status alone.

exit status: 0 it can be used, 2 it cannot.

example:
  luckrate-otel config check --config luckrate.yaml
"""

HEALTH = """\
It asks /readyz. --endpoint is what `admin.endpoint` is in the configuration.

exit status: 0 ready, 1 not ready or no answer, 2 bad usage.

examples:
  luckrate-otel health
  luckrate-otel health --endpoint 10.0.0.7:8321
"""
