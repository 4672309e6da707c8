"""A real Prefect server for the tests of flows, started once and through coldrun's own code."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from coldrun.flows.prefect_server import ServerHandle, use_server
from coldrun.flows.server_state import state_folder

_OF_THE_USER = ("PREFECT_API_URL", "PREFECT_API_KEY", "PREFECT_API_AUTH_STRING", "PREFECT_PROFILE")


@pytest.fixture(scope="session")
def server_scratch(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Path]:
    """The scratch folder of the session's server, which leaves a migrated database for later ones.

    The migrations take longer than all else, so pytest's cache keeps their outcome.
    """
    scratch = tmp_path_factory.mktemp("server-scratch")
    template = state_folder().template
    kept = Path(pytestconfig.cache.mkdir("prefect")) / template.name if pytestconfig.cache else None
    if kept and kept.exists():
        shutil.copyfile(kept, template)
    yield scratch
    if kept and template.exists() and not kept.exists():
        partial = kept.with_suffix(f".{os.getpid()}")
        shutil.copyfile(template, partial)
        partial.replace(kept)


@pytest.fixture(scope="session")
def prefect_server(
    prefect_server: dict[str, str],  # the one that all tests share
    server_scratch: Path,
) -> Iterator[ServerHandle]:
    """The server that every flow in the session runs on; the environment is the user's again at
    the end."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _OF_THE_USER:
            patch.delenv(name, raising=False)
        for name, value in prefect_server.items():
            patch.setenv(name, value)
        with use_server(server_scratch, verbose=False, announce=lambda _: None) as server:
            yield server


@pytest.fixture(autouse=True)
def _settings_of_the_session(request: pytest.FixtureRequest) -> None:
    """Let Prefect read the environment again: a test before may have used another server."""
    if "prefect_server" in request.fixturenames:
        request.getfixturevalue("prefect_server")
        from prefect.context import refresh_global_settings_context

        refresh_global_settings_context()


@pytest.fixture
def no_given_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server that the user, or the session, named in the environment."""
    for name in _OF_THE_USER:
        monkeypatch.delenv(name, raising=False)
