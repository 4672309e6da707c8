"""What coldrun itself is: a digest of its source and of the packages it runs with."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path

from coldrun.tasks.lib.canonical import digest_json

SOURCE_FOLDERS = ("cli", "flows", "tasks", "warehouse")
SOURCE_SUFFIXES = (".py", ".sql", ".html", ".j2")
NO_SOURCE = ("__pycache__", "data")
"""Folders without source: bytecode, and the warehouse's data, which every run adds to."""


def source_root() -> Path:
    """The folder that holds coldrun's packages."""
    return Path(__file__).resolve().parents[2]


def digest_source(root: Path) -> str:
    """One digest over every source file of coldrun, by relative name and bytes."""
    digest = hashlib.sha256()
    for folder in SOURCE_FOLDERS:
        for path in sorted(_source_files(root / folder)):
            data = path.read_bytes()
            name = path.relative_to(root).as_posix()
            digest.update(f"{name}\0{len(data)}\0".encode())
            digest.update(data)
    return "sha256:" + digest.hexdigest()


def _source_files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in NO_SOURCE]
        yield from (Path(place, name) for name in names if Path(name).suffix in SOURCE_SUFFIXES)


def installed_packages() -> dict[str, str]:
    """The versions of all installed packages by normalised name, coldrun's own left out.

    Reads the first lines of each package's metadata: parsing all of them as e-mail, as
    `importlib.metadata` does for every single field, takes ten times as long.
    """
    found = {}
    for package in distributions():
        text = package.read_text("METADATA") or package.read_text("PKG-INFO") or ""
        header = re.split(r"\r?\n\r?\n", text, maxsplit=1)[0]
        fields = dict(re.findall(r"^(Name|Version): *(.*?)\s*$", header, re.MULTILINE))
        if "Name" in fields:
            name = re.sub(r"[-_.]+", "-", fields["Name"]).lower()
            found[name] = fields.get("Version", "")
    found.pop("coldrun", None)
    return found


@functools.cache
def own_code() -> Mapping[str, str]:
    """The `code` component of every capture key: coldrun's source and its resolved packages.

    Read once: what a process executes is what it was started from, whatever happens on disk
    meanwhile, and a history of many points is measured by one code.
    """
    return {"source": digest_source(source_root()), "packages": digest_json(installed_packages())}


def interpreter() -> str:
    """Implementation, version and build of the running interpreter."""
    return f"{platform.python_implementation()} {sys.version}"
