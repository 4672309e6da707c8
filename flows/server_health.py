"""Asking a Prefect server whether it is well. Prefect is not imported here."""

from __future__ import annotations

import os
import re
import ssl
import urllib.parse

_DECIDES_NETWORK = re.compile(r"(?i)(https?|all)_proxy|SSL_CERT_(FILE|DIR)")


def find_problem(api_url: str, *, timeout_seconds: float, auth: str | None = None) -> str | None:
    """What is wrong with a server, in a few words; None when it answers as Prefect does.

    Args:
        api_url: Its address, which ends in `/api`.
        timeout_seconds: How long an answer may take.
        auth: `name:password`; left out, the user's own server is told who asks, as Prefect does.
    """
    import httpx

    if not api_url.startswith(("http://", "https://")):
        return "its address does not begin with http:// or https://"
    is_local = urllib.parse.urlsplit(api_url).hostname in ("127.0.0.1", "localhost", "::1")
    headers = {}
    if auth is None and (key := os.environ.get("PREFECT_API_KEY")):
        headers["Authorization"] = f"Bearer {key}"
    name, _, password = (auth or os.environ.get("PREFECT_API_AUTH_STRING", "")).partition(":")
    try:
        with httpx.Client(
            verify=_verify() if api_url.startswith("https:") else False,
            trust_env=not is_local,
            auth=(name, password) if name and not headers else None,
            timeout=timeout_seconds,
        ) as client:
            answer = client.get(f"{api_url.rstrip('/')}/health", headers=headers)
            if answer.status_code == 200 and auth is not None:
                # /health needs no password, so another server on this port passes it too
                known = client.get(f"{api_url.rstrip('/')}/version", headers=headers)
                answer = known if known.status_code in (401, 403) else answer
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return str(error) or type(error).__name__
    if answer.status_code in (401, 403):
        return f"it refuses the credentials (HTTP {answer.status_code})"
    if answer.status_code != 200:
        return f"it answers HTTP {answer.status_code}"
    is_prefect = answer.content[:200].strip() == b"true"
    return None if is_prefect else "what answers there is not Prefect's API"


def find_network_problem() -> str | None:
    """What in the environment keeps any HTTP client from being made: proxies, certificates."""
    import httpx

    try:
        httpx.Client().close()
    except Exception as error:  # noqa: BLE001 - whatever a library says of a variable
        names = [name for name in os.environ if _DECIDES_NETWORK.fullmatch(name)]
        return f"{', '.join(sorted(names))} cannot be used: {error}"
    return None


def _verify() -> ssl.SSLContext | bool:
    if os.environ.get("PREFECT_API_TLS_INSECURE_SKIP_VERIFY", "").lower() in ("1", "true"):
        return False
    file = os.environ.get("PREFECT_API_SSL_CERT_FILE")
    return ssl.create_default_context(cafile=file) if file else True
