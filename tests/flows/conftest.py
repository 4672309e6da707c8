"""A real Prefect server for the tests of flows, started once and through coldrun's own code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coldrun.flows.prefect_server import Server, require_server, use_server

_OF_THE_USER = ("PREFECT_API_URL", "PREFECT_API_KEY", "PREFECT_API_AUTH_STRING", "PREFECT_PROFILE")


@pytest.fixture(scope="session")
def used_server(prefect_server: dict[str, str]) -> Iterator[Server]:
    """The server that every flow in the session runs on; the environment is the user's again at
    the end."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _OF_THE_USER:
            patch.delenv(name, raising=False)
        for name, value in prefect_server.items():
            patch.setenv(name, value)
        with use_server(require_server(lambda _: None), verbose=False) as server:
            yield server


@pytest.fixture(autouse=True)
def _settings_of_the_session(request: pytest.FixtureRequest) -> None:
    """Let Prefect read the environment again: a test before may have used another server."""
    if "used_server" in request.fixturenames:
        request.getfixturevalue("used_server")
        from prefect.context import refresh_global_settings_context

        refresh_global_settings_context()


@pytest.fixture
def no_given_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server that the user, or the session, named in the environment."""
    for name in _OF_THE_USER:
        monkeypatch.delenv(name, raising=False)
