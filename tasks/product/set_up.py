"""Running the set-up of a product: its own process group, a small environment, its output kept."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from coldrun.tasks.config import ProductConfig
from coldrun.tasks.lib.canonical import canonical_json
from coldrun.tasks.lib.errors import ConfigError, PointError
from coldrun.tasks.lib.machine.child_process import describe_exit, kill_group
from coldrun.tasks.lib.machine.file_digest import digest_path
from coldrun.tasks.lib.machine.search_path import session_search_path

USER_FOLDERS = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
"""What a set-up, unlike a session, sees of the user's: package caches, toolchains, credentials."""

OUTPUT_TAIL_BYTES = 2000


def set_up(product: ProductConfig, checkout: Path, log: Path, commit: str) -> None:
    """Run the set-up of a product in its checkout, if it has one.

    Raises:
        PointError: It failed or took too long; the message has the end of its output.
    """
    if not product.setup:
        return
    environment = {
        "PATH": session_search_path(),
        "LANG": "C.UTF-8",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CEILING_DIRECTORIES": str(checkout.parent),
    }
    for name in (*USER_FOLDERS, *product.setup_env):
        if name in os.environ:
            environment[name] = os.environ[name]
    failure = _run(product, checkout, log, environment)
    if failure is not None:
        raise PointError(
            f"the set-up `{' '.join(product.setup)}` of {product.repo} at {commit} failed: "
            f"{failure}; its output ({log}) ends:\n{_tail(log)}"
        )


def _run(
    product: ProductConfig, checkout: Path, log: Path, environment: Mapping[str, str]
) -> str | None:
    """Run the set-up in its own process group; says how it failed, or None."""
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                list(product.setup),
                cwd=checkout,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return f"it cannot be started: {error.strerror or error}"
        try:
            code = process.wait(timeout=product.setup_timeout_seconds)
        except subprocess.TimeoutExpired:
            return f"not finished after {product.setup_timeout_seconds:g} s"
        finally:
            kill_group(process.pid)
            process.wait()
    return describe_exit(code) if code else None


def _tail(log: Path) -> str:
    text = log.read_bytes()[-OUTPUT_TAIL_BYTES:].decode("utf-8", "replace").strip()
    return text or "(nothing)"


def digest_setup(product: ProductConfig, *, config_dir: Path) -> str:
    """SHA-256 over all that decides a set-up besides the product's own files.

    That is its command line, the values of `setup_env`, and the content of the files beside the
    configuration that `setup_files` names.
    """
    values = {
        "setup": list(product.setup),
        "setup_env": {name: os.environ.get(name) for name in product.setup_env},
        "setup_files": {name: _digest_declared(config_dir / name) for name in product.setup_files},
    }
    return hashlib.sha256(canonical_json(values)).hexdigest()


def _digest_declared(path: Path) -> str:
    if not path.exists():
        raise ConfigError(
            f"[product] setup_files: there is nothing at {path}; it names files, relative to the "
            "configuration's folder, that decide the set-up; files of the product go into setup_key"
        )
    return digest_path(path)
