"""TLS material from files: for the two servers (read again when the files change) and for the exporters."""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tls:
    """Paths of PEM files.

    cert, key: our own certificate chain and its key (a server needs them; a client has them for mTLS).
    ca: who the other side must be signed by. On a server it turns mTLS on; on a client None means the system's roots.
    """

    cert: str | None = None
    key: str | None = None
    ca: str | None = None

    def read(self) -> tuple[bytes | None, bytes | None, bytes | None]:
        """Contents of cert, key and ca. OSError if one cannot be read."""
        cert, key, ca = (Path(path).read_bytes() if path else None for path in (self.cert, self.key, self.ca))
        return cert, key, ca

    def stamp(self) -> tuple[tuple[int, int], ...]:
        """Changes when a file is replaced or written; () while one is missing."""
        try:
            stats = [Path(path).stat() for path in (self.cert, self.key, self.ca) if path]
        except OSError:
            return ()
        return tuple((stat.st_mtime_ns, stat.st_ino) for stat in stats)


def client_context(tls: Tls | None) -> ssl.SSLContext:
    """For an HTTP exporter: always verifies the server."""
    context = ssl.create_default_context(cafile=tls.ca if tls else None)
    if tls and tls.cert:
        context.load_cert_chain(tls.cert, tls.key)
    return context


def channel_credentials(tls: Tls | None) -> grpc.ChannelCredentials:
    """For a gRPC exporter: always verifies the server."""
    cert, key, ca = tls.read() if tls else (None, None, None)
    return grpc.ssl_channel_credentials(root_certificates=ca, private_key=key, certificate_chain=cert)


def server_context(tls: Tls, name: str = "the HTTP receiver") -> ssl.SSLContext:
    """For a listener over HTTP. New connections use the files as they are then; broken new files leave the old in use.

    name: of the listener, for the log.
    """
    current = _Current(tls, name)
    context = current.context

    def renew(connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = current.renewed()

    context.sni_callback = renew  # called in every handshake, with None if the client names no server
    return context


class _Current:
    def __init__(self, tls: Tls, name: str) -> None:
        self._tls = tls
        self._name = name
        self._stamp = tls.stamp()
        self.context = _fresh_context(tls)

    def renewed(self) -> ssl.SSLContext:
        stamp = self._tls.stamp()
        if stamp != self._stamp:
            self._stamp = stamp  # before reading, so that broken files are reported once and not per connection
            try:
                self.context = _fresh_context(self._tls)
                _log.info("TLS certificate of %s read again", self._name)
            except OSError as error:  # ssl.SSLError is one
                _log.warning("TLS files of %s are unusable, keeping the old: %s", self._name, type(error).__name__)
        return self.context


def _fresh_context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    assert tls.cert is not None
    context.load_cert_chain(tls.cert, tls.key)
    if tls.ca:
        context.load_verify_locations(tls.ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def server_credentials(tls: Tls) -> grpc.ServerCredentials:
    """For the gRPC receiver, with the same renewal."""
    stamps = [tls.stamp()]

    def certificates() -> grpc.ServerCertificateConfiguration:
        cert, key, ca = tls.read()
        assert key is not None
        assert cert is not None
        return grpc.ssl_server_certificate_configuration([(key, cert)], root_certificates=ca)

    def renewed() -> grpc.ServerCertificateConfiguration:
        stamp = tls.stamp()
        if stamp != stamps[0]:
            stamps[0] = stamp
            try:
                _fresh_context(tls)  # gRPC keeps the old for files that are broken, too, and tells nobody
                latest[0] = certificates()
                _log.info("TLS certificate of the gRPC receiver read again")
            except OSError as error:
                _log.warning("TLS files of the gRPC receiver are unusable, keeping the old: %s", type(error).__name__)
        return latest[0]

    latest = [certificates()]
    return grpc.dynamic_ssl_server_credentials(latest[0], renewed, require_client_authentication=tls.ca is not None)
