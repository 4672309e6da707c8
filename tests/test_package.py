"""What an installation puts beside other packages: one import package."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.evaluations import COLDRUN, ROOT


def test_wheel_installs_one_import_package(tmp_path: Path) -> None:
    """The folders are below `coldrun` in the wheel, SQL views and templates included."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )

    (wheel,) = tmp_path.glob("*.whl")
    names = [Path(name) for name in zipfile.ZipFile(wheel).namelist()]
    assert {name.parts[0] for name in names if ".dist-info" not in name.parts[0]} == {"coldrun"}
    assert {name.parts[1] for name in names if len(name.parts) > 2} > {"cli", "flows", "tasks"}
    assert {
        Path("coldrun/warehouse/views/trend.sql"),
        Path("coldrun/cli/skeletons/arm_mcp.toml"),
    } < {*names}


def test_packages_of_the_same_names_as_the_folders_are_not_taken_for_them(tmp_path: Path) -> None:
    """Modules `cli`, `flows`, `tasks`, `warehouse` that come first on the path change nothing."""
    for name in ("cli", "flows", "tasks", "warehouse"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong module')\n")

    for arguments in (["--help"], ["runs"], ["server", "status"]):
        done = subprocess.run(
            [sys.executable, "-c", COLDRUN, *arguments],
            cwd=tmp_path,
            env=os.environ
            | {
                "PYTHONPATH": os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))),
                "COLDRUN_WAREHOUSE": str(tmp_path / "data"),
                "COLDRUN_SCRATCH": str(tmp_path / "scratch"),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
