"""What the configuration names outside itself: token files, certificates, addresses. What fails is told by its key."""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from luckrate_otel.config import Address, Auth, ClientTls, Config, ServerTls
from luckrate_otel.errors import ConfigError, Problem
from luckrate_otel.service import build
from luckrate_otel.service.journal.unusable import no_folder
from luckrate_otel.service.receive.auth import Token
from luckrate_otel.service.tls import Tls, client_context, server_context


@contextmanager
def listening(key: str, address: Address) -> Iterator[None]:
    """Within it one address is bound. Raises ConfigError, with the key and what to do, if that fails."""
    try:
        yield
    except OSError as error:
        cause = _cause(error)
        advice = "name an address that this machine has, and a port that this user may take"
        if "in use" in cause:
            advice = "stop what listens there, or name another port"
        raise ConfigError([Problem(key, f"cannot listen on {address}: {cause}; {advice}")]) from error


def token(key: str, auth: Auth) -> Token:
    """The bearer token of a listener, None if it asks for none. Raises ConfigError."""
    with _reading(f"{key}.auth.bearer_file"):
        return build.token(auth)


def server_tls(key: str, tls: ServerTls) -> Tls | None:
    """The TLS files of a listener, tried; None without TLS. Raises ConfigError."""
    found = build.server_tls(tls)
    if found is not None:
        with _reading(f"{key}.tls"):
            found.read()  # its errors name the file, those of ssl do not
            server_context(found)
    return found


def client_tls(key: str, tls: ClientTls) -> Tls | None:
    """The same for a destination."""
    found = build.client_tls(tls)
    if found is not None:
        with _reading(f"{key}.tls"):
            found.read()
            client_context(found)
    return found


def find_unusable(config: Config) -> tuple[list[Problem], list[Problem]]:
    """Token and TLS files that cannot be used, and those that are not there; a journal below a file. No folder is made:
    the configuration may be checked elsewhere."""
    receivers, admin = config.receivers, config.admin
    listeners = [
        ("receivers.grpc", receivers.grpc.endpoint, receivers.grpc.auth, receivers.grpc.tls),
        ("receivers.http", receivers.http.endpoint, receivers.http.auth, receivers.http.tls),
        ("admin", admin.endpoint, admin.auth, admin.tls),
    ]
    attempts: list[Callable[[], object]] = []
    for key, address, auth, tls in listeners:
        if address is not None:
            attempts += [partial(token, key, auth), partial(server_tls, key, tls)]
    attempts += [partial(client_tls, f"destinations.{name}", each.tls) for name, each in config.destinations.items()]
    unusable: list[Problem] = []
    missing: list[Problem] = []
    for attempt in attempts:
        try:
            attempt()
        except ConfigError as error:
            (missing if isinstance(error.__cause__, FileNotFoundError) else unusable).extend(error.problems)
    if config.journal is not None and config.journal.path is not None and (told := no_folder(config.journal.path)):
        unusable.append(Problem("journal.path", told))
    return unusable, missing


@contextmanager
def _reading(key: str) -> Iterator[None]:
    try:
        yield
    except ssl.SSLError as error:
        reason = error.reason.replace("_", " ").lower() if error.reason else "not PEM"  # KEY_VALUES_MISMATCH
        message = f"{reason}; give PEM files, and the key that belongs to the certificate"
        raise ConfigError([Problem(key, message)]) from error
    except OSError as error:
        file = f"{error.filename} cannot be read: " if error.filename else ""
        raise ConfigError([Problem(key, f"{file}{_cause(error)}")]) from error


def _cause(error: OSError) -> str:
    """The system's words alone; libraries put what they were doing around them."""
    number = error.errno
    if number is None and str(error).startswith("could not bind on any address"):  # asyncio's, from Python 3.13 on
        number = errno.EADDRNOTAVAIL
    if number is not None and number > 0:
        return os.strerror(number).lower()
    return error.strerror or str(error)
