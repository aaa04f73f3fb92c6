"""Bearer tokens on receivers."""

from __future__ import annotations

import hmac

from luckrate_otel.service.answers import Outcome, Refused


def authorise(header: str | bytes | None, token: str | None) -> None:
    """Pass if no token is asked for or the Authorization header carries it; else Refused(unauthenticated).

    Compared in constant time. The header's text never enters a message or log.
    """
    if token is None:
        return
    given = header.encode(errors="surrogateescape") if isinstance(header, str) else header or b""
    scheme, _, value = given.partition(b" ")
    if scheme.lower() != b"bearer" or not hmac.compare_digest(value.strip(), token.encode()):
        raise Refused(Outcome.UNAUTHENTICATED, "a valid bearer token is required")
