"""Which variables Prefect sees, in coldrun and in the servers that coldrun starts.

Prefect reads its settings while it is imported, so these are set before. A setting that is not
here keeps Prefect's default; the user's `~/.prefect` profile is never read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

# of Prefect's own profiles the one it falls back to; the file of the user's is not there to be read
_NO_PROFILE: Final = "ephemeral"

_OFFLINE: Final = {
    "DO_NOT_TRACK": "1",
    # with analytics on, a fresh database answers `database is locked` now and then
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
}

# Nobody can look at a server that ends with the run, so nothing is recorded for the eye. Events
# without a consumer are dropped: 256 task runs cost the server 0.8 s of CPU in place of 7.2 s.
_UNWATCHED: Final = {
    "PREFECT__SERVER_EPHEMERAL": "1",
    "PREFECT__SERVER_FINAL": "1",
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_EVENT_LOGGER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
}

# One transaction for many events in place of one for each: 256 task runs cost the server 2.4 s of
# CPU in place of 7.2 s, and the next flow no longer waits for the last one's events.
_WATCHED: Final = {
    "PREFECT_SERVER_UI_ENABLED": "true",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TRIGGERS_READ_BATCH_SIZE": "100",
}


def prefect_environment(scratch: Path, *, verbose: bool) -> dict[str, str]:
    """The variables that keep Prefect offline and quiet in coldrun's own process.

    `PREFECT_API_URL`, `PREFECT_API_KEY` and the other ways to reach a server of the user's are not
    among them, so they keep the values that the user gave. Prefect's lines are left out because
    every error that they would report is also raised, and reported once by the command.

    Args:
        scratch: The scratch folder; Prefect's home is `prefect/` in it.
        verbose: Show Prefect's log lines.

    Returns:
        Variable to value, to be set before `prefect` is imported.
    """
    home = scratch / "prefect"
    return {
        **_OFFLINE,
        "PREFECT_HOME": str(home),
        "PREFECT_PROFILES_PATH": str(home / "profiles.toml"),
        "PREFECT_PROFILE": _NO_PROFILE,
        "PREFECT_LOGGING_LEVEL": "INFO" if verbose else "CRITICAL",
        "PREFECT_LOGGING_INTERNAL_LEVEL": "WARNING" if verbose else "CRITICAL",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING" if verbose else "CRITICAL",
        # a second server behind our back would be neither quiet nor guarded
        "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
        "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
        "PREFECT_RESULTS_LOCAL_STORAGE_PATH": str(home / "storage"),
        # captures have their own store and their own keys
        "PREFECT_TASKS_DISABLE_CACHING": "true",
    }


def server_environment(
    inherited: dict[str, str],
    home: Path,
    *,
    port: int,
    is_watched: bool,
    is_migrated: bool,
) -> dict[str, str]:
    """The variables of a server process.

    Args:
        inherited: The environment of the process that starts it; what begins with `PREFECT` is
            dropped, so that a setting meant for another server cannot reach this one.
        home: The folder of its database and settings.
        port: The loopback port it listens on.
        is_watched: It has a user interface and records what is to be seen there.
        is_migrated: Its database is a copy of one that was migrated by this version of Prefect.

    Returns:
        The complete environment.
    """
    kept = {name: value for name, value in inherited.items() if not name.startswith("PREFECT")}
    ours = {
        **_OFFLINE,
        "PREFECT_HOME": str(home),
        "PREFECT_PROFILES_PATH": str(home / "profiles.toml"),
        "PREFECT_PROFILE": _NO_PROFILE,
        "PREFECT_LOGGING_LEVEL": "WARNING",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
        "PREFECT_LOGGING_COLORS": "false",
        "PREFECT_SERVER_DATABASE_TIMEOUT": "60",
        "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": "60",
        "PREFECT_SERVER_UI_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_UI_STATIC_DIRECTORY": str(home / "ui"),
    }
    if is_migrated:
        ours["PREFECT_SERVER_DATABASE_MIGRATE_ON_START"] = "false"
        ours["PREFECT_SERVER_REGISTER_BLOCKS_ON_START"] = "false"
    return {**kept, **ours, **(_WATCHED if is_watched else _UNWATCHED)}
