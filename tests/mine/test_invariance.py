"""Mining depends on the history alone: not on the clone, the machine or its user."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coldrun.tasks.config import PanelConfig
from coldrun.tasks.lib.errors import PanelError
from coldrun.tasks.mine.ticket_repos import mine_ticket_repos
from tests.conftest import EXAMPLES

HOSTILE_CONFIG = """
[diff]
    renames = copies
    noprefix = true
    algorithm = histogram
    ignoreSubmodules = all
    renameLimit = 1
[log]
    showSignature = true
    date = relative
    showRoot = false
    mailmap = true
    diffMerges = combined
[core]
    autocrlf = true
    quotePath = true
    abbrev = 4
[i18n]
    logOutputEncoding = latin1
[color]
    ui = always
[format]
    pretty = oneline
"""

PATHS = ["a.py", "b.py", "src/c.py", "é.txt", "CHANGES"]
MESSAGES = ["Fix it", "Fix ä\n\nFixes: #1", "", "Merge branch 'main' into x", "Say more"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["edit", "move", "remove", "merge", "nothing"]),
        st.sampled_from(PATHS),
        st.sampled_from(MESSAGES),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)
SLOW = settings(
    max_examples=6 * EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def write_history(made, steps):
    """A history from random steps on two branches; returns the first commit."""
    base = made.commit("start", {path: f"{path}\n" * 30 for path in PATHS})
    made.branch("side", base)
    files = {branch: {path: f"{path}\n" * 30 for path in PATHS} for branch in ("main", "side")}
    for number, (kind, path, message, is_side) in enumerate(steps):
        branch = "side" if is_side else "main"
        mine = files[branch]
        changes = {}
        if kind == "merge":
            other = "main" if is_side else "side"
            tip = made.git("rev-parse", other)
            changes = dict.fromkeys(mine, None) | files[other]
            made.merge(message, tip, branch=branch, files=changes)
            files[branch] = dict(files[other])
            continue
        if path in mine and kind == "move":
            changes = {path: None, f"moved{number}.py": mine.pop(path)}
            mine[f"moved{number}.py"] = changes[f"moved{number}.py"]
        elif path in mine and kind == "remove":
            changes = {path: None}
            del mine[path]
        elif kind != "nothing":
            mine[path] = changes[path] = mine.get(path, f"{path}\n" * 30) + f"{number}\n"
        made.commit(message, changes, branch=branch)
    made.merge("Merge branch 'side'", made.git("rev-parse", "side"))
    return base


@SLOW
@given(steps=STEPS, unit=st.sampled_from(["commit", "merge"]), parent=st.booleans())
def test_mine_any_history_is_the_same_everywhere(build_repository, mine, steps, unit, parent):
    """Clone order, packing, kind of clone, locale, time zone and configuration change nothing."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        made = build_repository(root / "made")
        base = write_history(made, steps)
        panel = {"base": "parent" if parent else base, "head": "main", "unit": unit}
        expected = mine(made, **panel)
        assert expected.candidates == len(expected.tasks) + sum(expected.drops.values())
        made.git("clone", "-q", "--bare", ".", str(root / "bare"))
        other = build_repository(root / "other", bare=True)
        for branch in ("side", "main"):
            other.git("fetch", "-q", str(made.path), f"{branch}:{branch}")
        other.git("repack", "-q", "-a", "-d")
        made.git("checkout", "-q", "-f", "main")
        config = root / "config"
        config.write_text(HOSTILE_CONFIG)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GIT_CONFIG_GLOBAL", str(config))
            patch.setenv("TZ", "Pacific/Chatham")
            patch.setenv("LC_ALL", "tr_TR.UTF-8")
            patch.setenv("GIT_DIFF_OPTS", "-u0")
            patch.setenv("GIT_DIR", str(root / "nowhere"))
            for place in (made.path, root / "bare", root / "other"):
                assert mine(place, **panel) == expected
        for line in HOSTILE_CONFIG.strip().splitlines():
            if line.startswith("["):
                section = line.strip("[]")
            else:
                key, _, value = line.strip().partition(" = ")
                other.git("config", f"{section}.{key}", value)
        assert mine(root / "other", **panel) == expected


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
@pytest.mark.parametrize("is_linked", [False, True])
def test_mine_attributes_of_the_clone_decide_nothing(
    build_repository, mine, tmp_path, object_format, is_linked
):
    """`info/attributes` is nobody else's: what it calls binary is still compared as text."""
    made = build_repository(tmp_path / "made", object_format=object_format)
    lines = [f"line {number} of a file with line ends of its own" for number in range(40)]
    base = made.commit("start", {"dos.txt": "\r\n".join(lines)})
    made.commit("Write it as Unix does", {"dos.txt": None, "unix.txt": "\n".join(lines)})
    made.commit("Write less", {"unix.txt": lines[0]})
    expected = mine(made, base=base, head="main")
    assert [task.gold[0].item for task in expected.tasks] == ["dos.txt", "dos.txt"]

    place = made.path
    if is_linked:
        place = tmp_path / "linked"
        made.git("worktree", "add", "-q", "--detach", str(place), "main")
    attributes = made.path / ".git" / "info" / "attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_text("* binary\n")

    assert mine(place, base=base, head="main") == expected


@SLOW
@given(steps=STEPS, max_gold=st.sampled_from([1, None]), follow=st.booleans())
def test_mine_any_history_adds_up(build_repository, mine, steps, max_gold, follow):
    """Drops and tasks are all candidates; gold exists, is sorted, and no question comes twice."""
    with tempfile.TemporaryDirectory() as folder:
        made = build_repository(Path(folder) / "made")
        base = write_history(made, steps)
        panel = mine(
            made,
            base=base,
            head="main",
            max_gold=max_gold,
            exclude_gold=("CHANGES",),
            renames="follow" if follow else "ignore",
        )
        commits = int(made.git("rev-list", "--count", f"{base}..main"))
        assert panel.candidates == commits == len(panel.tasks) + sum(panel.drops.values())
        for task in panel.tasks:
            items = [gold.item for gold in task.gold]
            assert items == sorted(set(items))
            assert set(items) <= set(panel.items) - {"CHANGES"}
        assert len({task.query for task in panel.tasks}) == len(panel.tasks)
        assert os.environ.get("GIT_DIR") is None


NAMINGS = st.lists(
    st.tuples(
        st.sampled_from(["api", "web", "shop"]),
        st.sampled_from(["main", "side"]),
        st.sampled_from(["AB-1", "AB-2 and AB-3", "AB-4", "no ticket"]),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=12,
)


@SLOW
@given(namings=NAMINGS, has_base=st.booleans())
def test_mine_tickets_of_any_organisation_is_the_same_everywhere(
    build_repository, namings, has_base
):
    """Order of repositories, kind of clone, locale, time zone and configuration change nothing."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        made = {name: build_repository(root / name) for name in ("api", "web", "shop")}
        first = 1_600_000_000
        for repository in made.values():
            start = repository.commit("start, see AB-0", {"a": "0"}, date=first)
            repository.branch("side", start)
        for name, branch, text, hours in namings:  # Several commits have one moment.
            moment = first + 86_400 + 3_600 * hours
            made[name].commit(f"{text}: part of {name}", {"a": text}, branch=branch, date=moment)
        base = {"base": "2020-09-13T20:00:00"} if has_base else {}

        def mine_all(places):
            pattern = r"[A-Z]+-\d+"
            spec = PanelConfig(
                kind="ticket-repos", repos=places, ticket_pattern=pattern, max_gold=3, **base
            )
            try:
                return mine_ticket_repos(spec, config_dir=root, scratch=root / "scratch")
            except PanelError as error:
                return str(error)

        expected = mine_all(tuple(made))
        if not isinstance(expected, str):
            assert expected.candidates == len(expected.tasks) + sum(expected.drops.values())
        for name, repository in made.items():
            repository.git("clone", "-q", "--bare", ".", str(root / f"bare/{name}.git"))
            repository.git("clone", "-q", ".", str(root / f"work/{name}"))
        config = root / "config"
        config.write_text(HOSTILE_CONFIG)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GIT_CONFIG_GLOBAL", str(config))
            patch.setenv("TZ", "Pacific/Chatham")
            patch.setenv("LC_ALL", "tr_TR.UTF-8")
            for places in (tuple(made)[::-1], ("bare/*",), ("work/*",)):
                assert mine_all(places) == expected
