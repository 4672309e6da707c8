"""A warehouse with a file that is no table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluations import EvaluationLab


@pytest.mark.parametrize("content", [b"", b"PAR1 not really", b"x" * 100])
def test_a_damaged_table_is_named_in_one_line(tmp_path: Path, content: bytes) -> None:
    lab = EvaluationLab(tmp_path).prepare()
    lab.run()
    (lab.warehouse / "captures" / "broken.parquet").write_bytes(content)

    for command in (("runs",), ("report", "last"), ("run", lab.config)):
        shown = lab.coldrun(*command)
        assert shown.returncode == 2
        assert "broken.parquet" in shown.stderr
        assert "Traceback" not in shown.stderr
