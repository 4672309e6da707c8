"""Files that were damaged: every command says so in one line, and never in a traceback.

COLDRUN_DAMAGES is how many damaged files the command line meets (2,000 by default); the loaders
meet four times as many. The table of what happened is printed, and written to COLDRUN_TABLE.
"""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coldrun.flows.prefect_server import StateFolder
from coldrun.tasks.config import load_config
from coldrun.tasks.freeze.lock import (
    EvaluationFiles,
    panel_from_bytes,
    read_frozen_panel,
    read_lock,
)
from coldrun.tasks.history.journal import read_journal
from coldrun.tasks.holdout.ledger import read_ledger
from coldrun.tasks.lib.errors import ColdrunError
from coldrun.tasks.product.point_use import built_digest, list_touched
from coldrun.tasks.run.capture import CaptureStore
from coldrun.tasks.run.execute import execute_shard
from coldrun.tasks.run.manifest import manifest_from_values
from coldrun.warehouse.damage import UnreadableFileWarning
from tests.damage import damage
from tests.evaluations import EvaluationLab
from tests.history.small import SmallHistory
from tests.holdouts import HOLDOUT, make_holdout_lab

NUMBER = int(os.environ.get("COLDRUN_DAMAGES", "2000"))
CODES = {0, 1, 2, 3, 4, 5, 6, 7}
SECONDS = 60
EVENT = "the release candidate is chosen"
KEY = base64.b64encode(bytes(range(32))).decode()

pytestmark = [pytest.mark.soak, pytest.mark.timeout(7200)]


def make_world(root: Path) -> None:
    """A history, an unfinished run, and an evaluation that is sealed and was opened."""
    small = SmallHistory(root)
    small.add("first", [1, 2])
    small.add("second", [1, 2, 3])
    small.freeze()
    small.conduct("backfill")
    toy = lab_of(root, "toy")
    toy.prepare(4)
    toy.run()
    started = toy.start()
    execute_shard(started.run, started.shards()[0])
    started.run.close()
    started.held.close()
    sealed = make_holdout_lab(root / "sealed", holdout=HOLDOUT)
    for words in (
        ["freeze", sealed.config],
        ["holdout", "open", sealed.config, "--reason", "r", "--event", EVENT],
    ):
        done = sealed.invoke(*words, env=environment(root))
        assert done.returncode in {0, 3, 4}, done.stderr
    state = StateFolder(root / "state")
    state.prepare()
    state.state.write_text(
        '{"pid": 1, "port": 4200, "created": 1.0, "prefect_version": "3", "auth": "a:b"}'
    )


def environment(root: Path) -> dict[str, str]:
    return {"COLDRUN_HOLDOUT_KEY": KEY, "XDG_CONFIG_HOME": str(root / "user")}


def lab_of(root: Path, name: str) -> EvaluationLab:
    lab = EvaluationLab(root)
    lab.config = root / name / f"{name}.toml"
    lab.config.parent.mkdir(exist_ok=True)
    return lab


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("world") / "world"
    make_world(root)
    shutil.copytree(root, root.with_name("whole"), symlinks=True)
    return root


def restore(world: Path) -> None:
    shutil.rmtree(world)
    shutil.copytree(world.with_name("whole"), world, symlinks=True)


def files_of(root: Path) -> dict[str, list[Path]]:
    """The files below a world that coldrun reads, by kind."""
    kinds: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        is_ours = parts[0] not in ("product", "locks", "control.txt")
        is_foreign = path.suffix in (".log", ".py") or {"checkout", "checkout.git", "garden"} & {
            *parts
        }
        if not is_ours or is_foreign or not path.is_file() or path.is_symlink():
            continue
        if parts[0] == "data" and parts[1] == "captures" and path.suffix == ".json":
            kind = f"captures: {path.stem.partition('-')[0] if len(path.stem) < 60 else 'answer'}"
        elif parts[0] in ("data", "scratch"):
            kind = f"{parts[0]}/{parts[1]}: {path.suffix}"
        else:
            kind = f"{parts[0]}: {path.name}"
        if path.stat().st_size or path.suffix not in (".lock", ".hold", ".use"):
            kinds[kind].append(path)
    return kinds


def commands_for(kind: str, root: Path) -> list[list[str]]:
    small, toy = root / "evaluation" / "small.toml", root / "toy" / "toy.toml"
    sealed = root / "sealed" / "evaluation" / "toy.toml"
    first, second, *_ = sorted(path.stem for path in (root / "data" / "runs").glob("2*.parquet"))
    reading = [
        *(["runs"], ["report", "last"], ["report", first], ["show", "last"], ["panels"]),
        *(["compare", first, second], ["trend", str(small)], ["doctor"]),
        ["why", "last", "t0000", "reader"],
        ["sql", "SELECT count(*) FROM scores"],
    ]
    asking = [
        ["run", str(toy), "--resume", "last"],
        ["run", str(toy), "--reuse"],
        ["run", str(small), "--commit", "HEAD"],
        ["backfill", str(small), "--commits", "HEAD~1..HEAD"],
    ]
    if kind.startswith(("sealed", "user")):
        words = ["holdout", "open", str(sealed), "--reason", "again", "--override"]
        return [
            ["holdout", "log", str(sealed)],
            ["freeze", str(sealed)],
            words,
            ["run", str(sealed)],
        ]
    if kind.startswith("state"):
        return [["server", "status"], ["doctor"], ["run", str(toy)]]
    if kind.startswith(("captures", "data")):
        return [*reading, *asking]
    return [*asking, ["freeze", str(toy)], ["freeze", str(small)], ["trend", str(small)]]


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    def hang(*_: object) -> None:
        raise TimeoutError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_commands_meet_damaged_files(world: Path) -> None:
    draw = random.Random(7)
    kinds = sorted(files_of(world))
    table: dict[str, Counter[str]] = defaultdict(Counter)
    wrong: list[str] = []
    for number in range(NUMBER):
        kind = kinds[number % len(kinds)]
        path = draw.choice(files_of(world)[kind])
        words = draw.choice(commands_for(kind, world))
        before = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(damage(before, draw))
        after = path.read_bytes()
        lab = EvaluationLab(world)
        try:
            with limited(SECONDS):
                done = lab.invoke(*words, env=environment(world))
            table[kind][str(done.returncode)] += 1
            if done.returncode not in CODES or "Traceback" in done.stderr:
                wrong.append(f"{kind}: {words}: {done.returncode}: {done.stderr[-300:]}")
        except BaseException as error:  # noqa: BLE001 - all but a clear error is wrong
            wrong.append(f"{kind}: {words}: {error!r:.300}")
        if wrong and (not table or wrong[-1].startswith(f"{kind}: {words}")):
            keep(world, number, path, after)
        restore(world)
    write_table("damaged files and commands", table, wrong)
    assert not wrong, "\n".join(wrong[:40])


def keep(world: Path, number: int, path: Path, data: bytes) -> None:
    place = world.with_name("wrong")
    place.mkdir(exist_ok=True)
    (place / f"{number}-{path.name}").write_bytes(data)


def write_table(title: str, table: dict[str, Counter[str]], wrong: list[str]) -> None:
    lines = [title, *(f"{kind:40} {dict(found)}" for kind, found in sorted(table.items()))]
    lines.append(f"wrong: {len(wrong)}")
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text)
    if name := os.environ.get("COLDRUN_TABLE"):
        with Path(name).open("a") as file:
            file.write(text)


def test_loaders_meet_damaged_files(world: Path) -> None:
    store = CaptureStore(next((world / "data" / "captures").glob("*/run.json")).parent)
    point = next((world / "scratch" / "points").glob("*/point.json"))
    sealed = EvaluationFiles(world / "sealed" / "evaluation" / "toy.toml")
    toy = EvaluationFiles(world / "toy" / "toy.toml")
    answer = next(path for path in store.folder.glob("*.json") if len(path.stem) == 64)
    state = StateFolder(world / "state")
    journal = next((world / "data" / "history").glob("*.json"))
    values = json.loads(journal.read_bytes())
    request = values["request"]
    journal.write_text(json.dumps({**values, "status": "running"}))
    loaders: list[tuple[Path, Callable[[], object]]] = [
        (store.folder / "run.json", lambda: manifest_from_values(store.read_manifest()[0])),
        (store.folder / "shards.json", store.read_shards),
        (next(store.folder.glob("leg-*.json")), store.read_legs),
        (next(store.folder.glob("session-*.json")), store.read_sessions),
        (answer, store.read_captures),
        (
            store.folder / "panel.jsonl",
            lambda: panel_from_bytes((store.folder / "panel.jsonl").read_bytes()),
        ),
        (toy.lock, lambda: read_lock(toy)),
        (toy.panel, lambda: read_frozen_panel(toy, load_config(toy.config))),
        (toy.config, lambda: load_config(toy.config)),
        (
            next(sealed.config.parent.glob("*.holdout.jsonl")),
            lambda: read_ledger(sealed, read_lock(sealed)),
        ),
        (sealed.lock, lambda: read_lock(sealed)),
        (journal, lambda: read_journal(journal, request)),
        (point, lambda: (list_touched(point.parent), built_digest(point.parent))),
        (state.state, state.read),
    ]
    draw = random.Random(8)
    table: dict[str, Counter[str]] = defaultdict(Counter)
    wrong: list[str] = []
    whole = {path: path.read_bytes() for path, _ in loaders}
    for number in range(4 * NUMBER):
        path, load = loaders[number % len(loaders)]
        data = damage(whole[path], draw)
        path.write_bytes(data)
        kind = path.name if len(path.name) < 30 else "answer"
        try:
            with limited(SECONDS):
                load()
            table[kind]["read"] += 1
        except (ColdrunError, UnreadableFileWarning):
            table[kind]["told"] += 1
        except BaseException as error:  # noqa: BLE001 - all but a clear error is wrong
            table[kind][type(error).__name__] += 1
            wrong.append(f"{kind}: {error!r:.200}: {data[:120]!r}")
        finally:
            path.write_bytes(whole[path])
    write_table("damaged files and loaders", table, wrong)
    assert not wrong, "\n".join(wrong[:60])
