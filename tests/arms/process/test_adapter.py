"""The adapter that people copy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from coldrun.tasks.arms.arm_kind import open_session
from tests.sessions import Lab, ask

ADAPTER = Path(__file__).parents[3] / "configs" / "adapters" / "mytool.py"

PRODUCT = """
import pathlib

class Index:
    def __init__(self, corpus):
        self.corpus = pathlib.Path(corpus)

    def search(self, query, k):
        if query == "raise":
            raise RuntimeError("broken")
        files = (path for path in sorted(self.corpus.rglob("*")) if path.is_file())
        found = [(str(path), 1.0) for path in files if query in path.read_text()]
        return found[:k]

build_index = Index
"""


def test_adapter_to_copy_measures_a_product(lab: Lab) -> None:
    """The adapter greets, indexes, answers, reports failures and proves its identity."""
    commit = lab.commit_files("product", {"mytool.py": PRODUCT})
    lab.commit_files("product", {"mytool.py": "raise SystemExit('a later commit')"})
    lab.config_dir.mkdir()
    shutil.copy(ADAPTER, lab.config_dir / "adapter.py")
    point = lab.point(commit)
    session = open_session(lab.context(lab.arm(), point=point))
    assert session.start.commit == commit
    assert session.start.loaded_from == str(point.directory / "mytool.py")
    reply = ask(session, "b = 2")
    assert reply.status == "answered", reply.reason
    assert json.loads(reply.raw)["items"][0]["path"].endswith("/src/b.py")
    assert ask(session, "raise").reason == "RuntimeError('broken')"
    end = session.close()
    assert (end.invalid, end.warnings) == ((), ())
