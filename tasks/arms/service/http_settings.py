"""How an arm's endpoint is asked: headers, proxy and certificates, all from declared variables.

Undeclared variables of the user's (a proxy, a certificate file) and a `.netrc` change nothing: an
answer that came another way would look the same.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from coldrun.tasks.config import ServerArm
from coldrun.tasks.config.arm_config import HEADER_VARIABLE
from coldrun.tasks.lib.concealment import SHORTEST, keep_secret
from coldrun.tasks.lib.errors import ConfigError

USER_AGENT = "coldrun"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """What requests to an endpoint are made with; `relay` is the socket through which a server in
    the sandbox is reached."""

    headers: httpx.Headers
    proxy: str | None
    certificates: ssl.SSLContext
    relay: str | None = None

    def transport(self) -> httpx.AsyncHTTPTransport:
        """A transport that keeps no connection for the next question: the endpoint may close an
        idle one, and the next answer would pay for it."""
        return httpx.AsyncHTTPTransport(
            verify=self.certificates,
            trust_env=False,
            proxy=self.proxy,
            uds=self.relay,
            limits=httpx.Limits(max_keepalive_connections=0),
        )


def require_variables(arm: ServerArm) -> None:
    """Refuse an arm whose headers cannot be filled.

    Raises:
        ConfigError: A variable that a header needs is not set.
    """
    missing = [name for name in arm.header_variables if not os.environ.get(name)]
    if missing:
        raise ConfigError(
            f"arm {arm.name!r}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not "
            f"set, and the requests need it; `export {missing[0]}=…` and try again"
        )


def read_settings(arm: ServerArm) -> HttpSettings:
    """Fill the arm's headers, and choose proxy and certificates from what it declares.

    Raises:
        ConfigError: A variable is missing or cannot be sent, or a certificate file cannot be read.
    """
    require_variables(arm)
    headers = httpx.Headers({"User-Agent": USER_AGENT, "Accept-Encoding": "identity"})
    for name, text in arm.sent_headers.items():
        headers[name] = HEADER_VARIABLE.sub(lambda match: os.environ[match[1]], text)
    for name, value in headers.items():
        if not value.isascii() or not value.isprintable():
            raise ConfigError(
                f"arm {arm.name!r}: the header {name} has a line break or a letter that no header "
                "can hold; look at the variable that it is filled from"
            )
    values = (os.environ[name] for name in arm.header_variables)
    keep_secret(value for value in values if len(value) >= SHORTEST)
    certificates = _read_certificates(arm)
    return HttpSettings(headers=headers, proxy=_choose_proxy(arm), certificates=certificates)


def _declared(arm: ServerArm, name: str) -> str | None:
    """A declared variable's value, in whichever case it is written."""
    for form in (name.lower(), name):
        if form in arm.env and os.environ.get(form):
            return os.environ[form]
    return None


def _choose_proxy(arm: ServerArm) -> str | None:
    parts = urlsplit(arm.url or "")
    proxy = _declared(arm, f"{parts.scheme.upper()}_PROXY") or _declared(arm, "ALL_PROXY")
    outside = _declared(arm, "NO_PROXY")
    if proxy is None or _is_outside(parts.hostname or "", outside or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_outside(host: str, hosts: str) -> bool:
    """Whether `NO_PROXY` names a host: itself, a domain above it, or all with a star."""
    entries = [entry.strip().lstrip(".").lower() for entry in hosts.split(",")]
    return any(entry in ("*", host) or host.endswith(f".{entry}") for entry in entries if entry)


def _read_certificates(arm: ServerArm) -> ssl.SSLContext:
    file, folder = _declared(arm, "SSL_CERT_FILE"), _declared(arm, "SSL_CERT_DIR")
    if file is None and folder is None:
        return httpx.create_ssl_context(trust_env=False)
    try:
        return ssl.create_default_context(cafile=file, capath=folder)
    except OSError as error:
        raise ConfigError(
            f"arm {arm.name!r}: the certificates of SSL_CERT_FILE={file} or "
            f"SSL_CERT_DIR={folder} cannot be read: {error}"
        ) from None
