"""Several panels side by side, each with what it was used for."""

from __future__ import annotations

import json
import re
from pathlib import Path

from click.testing import CliRunner

from coldrun.cli.stored import panels as command
from tests.evaluations import CONFIG, EvaluationLab

USES = """\
used_for = [
  { use = "verification", since = 2026-05-01 },
  { use = "development", since = 2026-01-15, note = "tuned k1" },
]
"""


def test_panels_prints_scores_beside_what_each_panel_was_used_for(tmp_path: Path) -> None:
    """By date, and a panel that declares nothing says so; a withheld score stays withheld."""
    EvaluationLab(tmp_path, name="plain").prepare().run()
    used = EvaluationLab(tmp_path, name="used")
    used.write(CONFIG.replace('answer = "set"\n', f'answer = "set"\n{USES}'))
    used.write_arm("def answer(query):\n    return {'items': []}\n")
    used.write_tasks(10)
    used.freeze()
    used.run()
    used.run()
    arguments = ["--warehouse", str(used.warehouse)]
    text = CliRunner().invoke(command, arguments).output
    assert "used for: not declared" in text
    expected = "used for: development since 2026-01-15 (tuned k1); verification since 2026-05-01"
    assert expected in text
    nulls = "exact: empty 0.000, everything 0.000, constant 0.083, random "
    assert re.search(rf"{nulls}[\d.]+, reader 1.000$", text, re.MULTILINE)
    assert "reader withheld" in text
    values = json.loads(CliRunner().invoke(command, [*arguments, "--json", "-"]).stdout)
    assert [(panel["name"], panel["runs"]) for panel in values["panels"]] == [
        ("used", 2),
        ("plain", 1),
    ]


def test_panels_of_an_empty_warehouse_says_what_to_do(tmp_path: Path) -> None:
    """Nothing measured yet is no error."""
    done = CliRunner().invoke(command, ["--warehouse", str(tmp_path)])
    assert done.exit_code == 0
    assert "coldrun try ." in done.output
