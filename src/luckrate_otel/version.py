"""The version of this program, which its package's metadata has."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

PACKAGE: Final = "luckrate-otel"

# Of a source tree that is not installed. Valid as PEP 440 and as semantic version, which SARIF asks for.
UNKNOWN: Final = "0.0.0+unknown"


def own_version() -> str:
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return UNKNOWN
