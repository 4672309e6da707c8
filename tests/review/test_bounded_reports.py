"""What tools and queries say at length is counted and cut in reports; none fills a page."""

from __future__ import annotations

from pathlib import Path

from tests.evaluations import EvaluationLab

CHATTY = """
def answer(query):
    number = int(re.findall(r"item-(\\d+)", query)[0])
    if number % 3 == 0:
        raise ValueError(f"failed at {number} " + "z" * 50_000)
    return {"items": [{"path": f"item-{number}"}], "degraded": [f"note {number} " + "w" * 5_000]}
"""


def test_long_and_many_messages_are_counted_and_cut(tmp_path: Path) -> None:
    lab = EvaluationLab(tmp_path)
    lab.prepare(60, arm=CHATTY)
    lab.write_rows(
        [
            {
                "id": f"t{number}",
                "query": f"item-{number} " + "y" * (1_000_000 if number == 1 else 1),
                "gold": [f"item-{number}"],
            }
            for number in range(60)
        ]
    )
    lab.freeze(force=True)
    page, values = tmp_path / "r.md", tmp_path / "r.json"

    run = lab.invoke("run", lab.config, "--markdown", page, "--json", values)
    full = lab.invoke("report", "last", "--full")
    shown = lab.invoke("show", "last", "--task", "t1")

    assert run.stdout.count("degraded mode") <= 5
    assert "more like these" in full.stdout
    assert max(len(run.stdout), len(full.stdout), len(page.read_text())) < 30_000
    assert len(values.read_text()) < 60_000
    assert "(1,000,014 characters in all)" in shown.stdout
    assert len(shown.stdout) < 12_000
