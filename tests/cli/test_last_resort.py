"""An error that nobody foresaw is one line with the path of a file, never a traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from coldrun.cli.main import main


@pytest.mark.parametrize("is_writable", [True, False])
def test_unexpected_error_is_one_line_and_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_writable: bool
) -> None:
    """The file goes to the user's state folder; where that cannot be written, elsewhere."""
    state = tmp_path / "state"
    if not is_writable:
        state.write_text("a file")
    monkeypatch.setenv("COLDRUN_STATE", str(state))

    def fail(*_: object, **__: object) -> None:
        raise LookupError("line one\nline two \ud83d")

    monkeypatch.setattr("duckdb.connect", fail)
    done = CliRunner().invoke(main, ["runs", "--warehouse", str(tmp_path / "w")])

    assert done.exit_code == 70
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "coldrun: unexpected error (LookupError: line one line two \\ud83d); the"
    )
    found = re.search(r"details are in (\S+)\. Please report", line)
    assert found is not None
    file = Path(found[1])
    assert file.is_relative_to(state) == is_writable
    assert file.stat().st_mode & 0o077 == 0
    assert "Traceback" in file.read_text()
