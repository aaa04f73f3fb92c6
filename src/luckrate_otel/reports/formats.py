"""The one table of report formats: what `check --format` and `exec --format` offer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

from luckrate_otel.reports.graded import Report
from luckrate_otel.reports.junit import junit
from luckrate_otel.reports.markdown import markdown
from luckrate_otel.reports.sarif import sarif
from luckrate_otel.reports.text import Style, report_text
from luckrate_otel.reports.verdicts import report_json
from luckrate_otel.surrogates import mend
from luckrate_otel.version import own_version

Format = Callable[[Report, Style], str]


def _json(report: Report, style: Style) -> str:
    return json.dumps(report_json(report.runs, report.luck, report.gate, values=style.values), ensure_ascii=False)


def _encodable(form: Format) -> Format:
    """Steps that a program made may hold halves of surrogate pairs, which what we read is mended of already."""
    return lambda report, style: mend(form(report, style))


_FORMS: Mapping[str, Format] = MappingProxyType(
    {
        "text": report_text,
        "json": _json,
        "junit": lambda report, _: junit(report),
        "sarif": lambda report, _: sarif(report, own_version()),
        "markdown": lambda report, _: markdown(report),
    }
)
FORMATS: Mapping[str, Format] = MappingProxyType({name: _encodable(form) for name, form in _FORMS.items()})
