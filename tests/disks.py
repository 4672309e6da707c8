"""Small and read-only disks for one process: mounts that nobody else sees."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import pytest

UNSHARE = ("unshare", *(() if os.geteuid() == 0 else ("-r",)), "-m", "sh", "-c")


def small_disk(folder: Path, *, kilobytes: int) -> list[str]:
    """The words before a command that has only so much room in `folder` (its files are copied)."""
    mount = f"mount -t tmpfs -o size={kilobytes}k tmpfs"
    return _before(f'cp -a "$1" "$2" && {mount} "$1" && cp -a "$2/." "$1"', folder)


def read_only_disk(folder: Path) -> list[str]:
    """The words before a command that cannot write in `folder`."""
    return _before('mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"', folder)


def _before(script: str, folder: Path) -> list[str]:
    if not _can_mount():
        pytest.skip("this machine allows no mounts of one's own")
    spare = folder.with_name(f"{folder.name}.spare")
    keep = 'cp -a "$1/." "$2" 2>/dev/null; exit $code'
    whole = f'{script} || exit 77; f=$1; s=$2; shift 2; "$@"; code=$?; set -- "$f" "$s"; {keep}'
    return [*UNSHARE, whole, "sh", str(folder), str(spare)]


@functools.cache
def _can_mount() -> bool:
    try:
        done = subprocess.run(
            [*UNSHARE, "mount -t tmpfs tmpfs /mnt"], capture_output=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0
