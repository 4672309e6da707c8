"""Running the set-up of a product: its own process group, a small environment, its output kept."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coldrun.tasks.config import ProductConfig
from coldrun.tasks.lib.canonical import canonical_json
from coldrun.tasks.lib.concealment import conceal_file
from coldrun.tasks.lib.errors import ConfigError, PointError
from coldrun.tasks.lib.machine.child_process import describe_exit, kill_group, start_process
from coldrun.tasks.lib.machine.files import digest_path, session_search_path
from coldrun.tasks.lib.machine.sandbox import Mount, is_in_system, wrap_command

USER_FOLDERS = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
"""What a set-up without the sandbox sees of the user's."""

MANAGER_VARIABLES = re.compile(
    r"(PIP|UV|NPM_CONFIG|npm_config|YARN|CARGO|GO|SSL|CURL|REQUESTS|NODE_EXTRA|GIT_SSL)_\w+"
    r"|\w+_(?:proxy|PROXY)"
)
"""The settings of package managers that a set-up in the sandbox is given: registries, proxies,
certificates."""

MANAGER_FILES = (
    *(".config/pip", ".pip", ".config/uv", ".npmrc", ".yarnrc", ".cargo/config.toml"),
    *(".local/share/uv/python", ".rustup", ".nvm", ".volta", ".local/share/mise", ".asdf"),
)
"""Their files below the user's home, and the toolchains that they start."""

SYSTEM_FILES = ("/usr/local", "/opt", "/etc/pip.conf", "/etc/uv", "/etc/npmrc", "/etc/gitconfig")
CACHES = {
    "XDG_CACHE_HOME": "",
    "UV_CACHE_DIR": "uv",
    "PIP_CACHE_DIR": "pip",
    "npm_config_cache": "npm",
    "CARGO_HOME": "cargo",
    "GOPATH": "go",
}
"""Variables that lead package managers to a cache of coldrun's own, which set-ups share."""

OUTPUT_TAIL_BYTES = 2000


def set_up(
    product: ProductConfig,
    checkout: Path,
    log: Path,
    commit: str,
    *,
    is_sandboxed: bool = False,
    hidden: Sequence[str] = (),
) -> None:
    """Run the set-up of a product in its checkout, if it has one.

    In the sandbox it has the network, the toolchains on the PATH and the settings of package
    managers; it writes into the checkout and into caches of coldrun's own, and does not see the
    files of the checkout that are `hidden`.

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
    given = product.setup_env if is_sandboxed else (*USER_FOLDERS, *product.setup_env)
    if is_sandboxed:
        environment |= {k: v for k, v in os.environ.items() if MANAGER_VARIABLES.fullmatch(k)}
    environment |= {name: os.environ[name] for name in given if name in os.environ}
    log.touch()
    if "/" not in product.setup[0] and not shutil.which(product.setup[0], path=environment["PATH"]):
        failure: str | None = "it cannot be started: it is not on the PATH"
    elif not is_sandboxed:
        failure = _run(product, product.setup, checkout, log, environment)
    else:
        with tempfile.TemporaryDirectory(dir=checkout.parent, prefix="home-") as home:
            empty = Path(home) / "empty"
            empty.touch()
            mounts = [Mount(path=str(checkout / name), source=str(empty)) for name in hidden]
            mounts.append(Mount(path=str(checkout), kind="write"))
            caches = checkout.parent.parent.parent / "caches"
            argv = _in_sandbox(product.setup, checkout, environment, caches, Path(home), mounts)
            failure = _run(product, argv, checkout, log, environment)
    conceal_file(log)
    if failure is not None:
        raise PointError(
            f"the set-up `{' '.join(product.setup)}` of {product.repo} at {commit} failed: "
            f"{failure}; its output ({log}) ends:\n{tail_of(log)}"
        )


def install_in_sandbox(
    commands: Sequence[Sequence[str]], mounts: Sequence[Mount], *, scratch: Path, log: Path
) -> str | None:
    """Run the commands of a package manager as set-ups run; says how one failed, or None."""
    environment = {"PATH": session_search_path(), "LANG": "C.UTF-8", "UV_LINK_MODE": "copy"}
    environment |= {k: v for k, v in os.environ.items() if MANAGER_VARIABLES.fullmatch(k)}
    with tempfile.TemporaryDirectory(dir=log.parent, prefix="home-") as home:
        for number, command in enumerate(commands):
            own = Path(home) / str(number)
            own.mkdir()
            argv = _in_sandbox(command, Path("/"), environment, scratch / "caches", own, mounts)
            part = own / "log"
            failure = _run(ProductConfig(repo="."), argv, own, part, environment)
            with log.open("ab") as whole:
                whole.write(part.read_bytes())
            if failure is not None:
                return f"`{' '.join(command)}` failed: {failure}"
    return None


def _in_sandbox(
    command: Sequence[str],
    cwd: Path,
    environment: dict[str, str],
    caches: Path,
    own: Path,
    extra: Sequence[Mount],
) -> list[str]:
    """The command line of a set-up in the sandbox; completes its environment."""
    user = Path.home()
    read = [*SYSTEM_FILES, *(str(user / name) for name in MANAGER_FILES)]
    for entry in environment["PATH"].split(os.pathsep):
        folder = Path(entry)
        top = folder.parent if folder.name in ("bin", "shims") else folder
        read.append(str(folder if user.is_relative_to(top) or top == user / ".local" else top))
    for name, value in environment.items():
        if MANAGER_VARIABLES.fullmatch(name) and name not in CACHES:
            read += [word.removeprefix("file://") for word in value.split()]
    mounts = [
        Mount(path=os.path.normpath(name))
        for name in read
        if name.startswith("/") and _is_apart(Path(name), user) and Path(name).exists()
    ]
    home = own / "home"
    home.mkdir()
    for name, cache in CACHES.items():
        environment[name] = str(caches / cache)
        (caches / cache).mkdir(parents=True, exist_ok=True)
    environment["HOME"] = environment["TMPDIR"] = str(home)
    for name in (".config/pip", ".config/uv", ".npmrc"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).symlink_to(user / name)
    if (user / ".rustup").exists():
        environment.setdefault("RUSTUP_HOME", str(user / ".rustup"))
    pythons = user / ".local/share/uv/python"
    environment.setdefault(
        "UV_PYTHON_INSTALL_DIR", str(pythons if pythons.exists() else caches / "uv-python")
    )
    mounts += [Mount(path=str(path), kind="write") for path in (home, caches)]
    return wrap_command(command, [*mounts, *extra], cwd=cwd, has_network=True)


def _is_apart(path: Path, user: Path) -> bool:
    """Whether showing a path shows neither all of the user's home nor the whole system."""
    return not is_in_system(str(path)) and not user.is_relative_to(path) and path != Path("/")


def _run(
    product: ProductConfig,
    argv: Sequence[str],
    checkout: Path,
    log: Path,
    environment: Mapping[str, str],
) -> str | None:
    """Run the set-up in its own process group; says how it failed, or None."""
    with log.open("wb") as output:
        try:
            process = start_process(
                argv,
                cwd=checkout,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
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


def tail_of(log: Path) -> str:
    """The end of what a set-up printed."""
    text = log.read_bytes()[-OUTPUT_TAIL_BYTES:].decode("utf-8", "replace").strip()
    return text or "(nothing)"


def digest_setup(product: ProductConfig, *, config_dir: Path, is_sandboxed: bool = False) -> str:
    """SHA-256 over all that decides a set-up besides the product's own files.

    That is its command line, the values of `setup_env`, and the content of the files beside the
    configuration that `setup_files` names.
    """
    values: dict[str, Any] = {
        "setup": list(product.setup),
        "setup_env": {name: os.environ.get(name) for name in product.setup_env},
        "setup_files": {name: _digest_declared(config_dir / name) for name in product.setup_files},
    }
    if is_sandboxed:
        values["sandbox"] = "bubblewrap"
    return hashlib.sha256(canonical_json(values)).hexdigest()


def _digest_declared(path: Path) -> str:
    if not path.exists():
        raise ConfigError(
            f"[product] setup_files: there is nothing at {path}; it names files, relative to the "
            "configuration's folder, that decide the set-up"
        )
    return digest_path(path)
