"""Decides who may connect to a campaign's processes. Who connects can run code in them: Dask unpickles functions."""

import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from distributed import Security

from ..core.errors import UsageError
from ..core.files import MOST_TEXT, content_of


@dataclass(frozen=True)
class Certificates:
    """PEM files for TLS, by which both sides authenticate; None: the file in Dask's configuration.

    Args:
        ca: the certificate of the authority that signed the certificates of all clients, workers and schedulers.
        cert: the certificate of this process.
        key: its private key; not needed if the file of ``cert`` holds it.
    """

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None


def temporary() -> Security:
    """Returns a new certificate for one cluster on this machine; its key stays in the memory of the cluster."""
    security: Security = Security.temporary()
    return security


def security_for(address: str, files: Certificates) -> Security:
    """Returns the security settings for a client or a worker of the scheduler at ``address``.

    Raises:
        UsageError: for a malformed address, or files that are missing, unreadable or not certificates.
    """
    options = [name for name, path in vars(files).items() if path is not None]
    if _scheme(address) == "tcp":
        if options:
            raise UsageError(f"--tls-{options[0]} has no effect at {address}, which is not encrypted; use tls://")
        return Security(require_encryption=False)
    configured: Any = Security(require_encryption=True)
    ca = _path("ca", files.ca, configured.tls_ca_file)
    roles: dict[str, str | None] = {}
    for role in ("client", "worker"):
        cert = _path("cert", files.cert, getattr(configured, f"tls_{role}_cert"))
        # A key in the configuration belongs to the certificate in the configuration.
        key = files.key if files.cert or files.key else getattr(configured, f"tls_{role}_key")
        _check(ca, cert, None if key is None else str(key))
        roles |= {f"tls_{role}_cert": cert, f"tls_{role}_key": None if key is None else str(key)}
    return Security(require_encryption=True, tls_ca_file=ca, **roles)


def warning(address: str) -> str:
    """Returns a warning for a scheduler that does not ask for a certificate, else ""."""
    if _scheme(address) == "tls" or _is_loopback(host_of(address)):
        return ""
    return (
        f"warning: {address} is not encrypted and does not ask for a certificate: whoever reaches its port, or a port "
        "of its workers, can run code there as you. Use tls:// (docs/campaigns.md)"
    )


def host_of(address: str) -> str:
    """Returns the host that an address names."""
    return urlsplit(address).hostname or ""


def _scheme(address: str) -> str:
    """Returns "tls" or "tcp".

    Raises:
        UsageError: for an address without one of these schemes, a host and a port.
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:  # the port is not a number, or a bracket is missing
        parts, port = urlsplit(""), None
    if parts.scheme not in ("tls", "tcp") or not parts.hostname or port is None or parts.path or parts.query:
        raise UsageError(f"{address!r} is not a scheduler's address; write tls://host:8786, or tcp://host:8786")
    return parts.scheme


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:  # it is a host name, not an address
        return host == "localhost"


def _path(what: str, option: Path | None, configured: str | None) -> str:
    if option is not None:
        return str(option)
    if configured is None:
        key = "ca-file" if what == "ca" else "{client,worker}.cert"
        raise UsageError(f"tls:// needs --tls-{what} FILE, or distributed.comm.tls.{key} in Dask's configuration")
    return configured


def _check(ca: str, cert: str, key: str | None) -> None:
    for path in filter(None, (ca, cert, key)):
        try:
            content_of(Path(path), MOST_TEXT)
        except OSError as error:
            raise UsageError(f"cannot read the certificate or key {path}: {error.strerror}") from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cafile=ca)
    except ssl.SSLError as error:
        raise UsageError(f"{ca} is not a certificate in PEM ({error.reason or error}); --tls-ca takes one") from error
    try:
        # OpenSSL would ask for the password of a key on a terminal, which a worker process does not have.
        context.load_cert_chain(cert, key, password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        files = cert if key is None else f"{cert} with {key}"
        raise UsageError(f"{files} is not a certificate with its private key, both in PEM ({reason})") from error


def _no_password() -> str:
    raise ValueError("the key has a password; give one without")
