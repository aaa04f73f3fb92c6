"""Bearer tokens on receivers and the admin page."""

from __future__ import annotations

import hmac
import logging
import time
from pathlib import Path

from luckrate_otel.service.receive.answers import Outcome, Refused

_log = logging.getLogger(__name__)

# How often a token's file is looked at, in seconds: soon enough for a rotation, next to nothing for a request.
LOOK_EVERY = 1.0


class TokenFile:
    """The first line of a file, read again when the file changes.

    A file that is gone or empty leaves the last token in use and says so once: a rotation may be half done.
    Raises OSError if it cannot be read at first, ValueError if there is no token in it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = self._look()
        self._token = self._read()
        self._unusable: tuple[int, int] | None = None
        self._looked = time.monotonic()

    def reveal(self) -> str:
        if time.monotonic() - self._looked >= LOOK_EVERY:
            self._looked = time.monotonic()
            self._renew()
        return self._token

    def _renew(self) -> None:
        stamp = (0, 0)  # of a file that is gone
        try:
            stamp = self._look()
            if stamp not in (self._stamp, self._unusable):
                self._token, self._stamp, self._unusable = self._read(), stamp, None
                _log.info("token file %s read again", self._path)
        except (OSError, ValueError) as error:
            if stamp != self._unusable:
                _log.warning("token file %s is unusable, keeping the old token: %s", self._path, type(error).__name__)
            self._unusable = stamp

    def _look(self) -> tuple[int, int]:
        stat = self._path.stat()
        return stat.st_mtime_ns, stat.st_ino

    def _read(self) -> str:
        try:
            token = self._path.read_text(encoding="utf-8").partition("\n")[0].strip()
        except UnicodeDecodeError:
            raise ValueError(f"{self._path} holds no token: it is not UTF-8 text") from None
        if not token:
            raise ValueError(f"{self._path} holds no token")
        return token


Token = str | TokenFile | None


def authorise(header: str | bytes | None, token: Token) -> None:
    """Pass if no token is asked for or the Authorization header carries it; else Refused(unauthenticated).

    Compared in constant time. The header's text never enters a message or log.
    """
    if token is None:
        return
    expected = token if isinstance(token, str) else token.reveal()
    given = header.encode(errors="surrogateescape") if isinstance(header, str) else header or b""
    scheme, _, value = given.partition(b" ")
    if scheme.lower() != b"bearer" or not hmac.compare_digest(value.strip(), expected.encode()):
        raise Refused(Outcome.UNAUTHENTICATED, "a valid bearer token is required")
