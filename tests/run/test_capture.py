"""Capture files: written whole, never changed, read back as they were."""

from __future__ import annotations

import resource
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldrun.tasks.lib.errors import StorageError, UsageError
from coldrun.tasks.lib.records import Attempt, ComponentEvent, Reply, SessionRecord, SessionStart
from coldrun.tasks.lib.table_record import to_row
from coldrun.tasks.run.capture import (
    Capture,
    CaptureStore,
    capture_from_json,
    capture_from_row,
    capture_to_json,
    hold_run,
    open_store,
)
from coldrun.tasks.run.landed_rows import land_answers, read_landed

CAPTURE = Capture(
    key="a" * 64,
    key_parts={"question": "{}", "arm": "{}"},
    run_id="20260801-000000-00000000",
    task_id="t1",
    arm="tool",
    role="candidate",
    trial=0,
    seed=7,
    captured_at="2026-08-01T00:00:00.000001+00:00",
    reply=Reply(status="answered", raw='{"items": []}', seconds=0.25),
    session_id="tool-0-1",
    corpus_dir="/scratch/corpus",
)
INFRA = replace(CAPTURE, reply=Reply(status="infra", reason="timed out after 60 s", stderr="…"))

# what JSON and Arrow can hold: lone surrogates cannot be UTF-8, and arms' output is decoded before
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
counts = st.none() | st.integers(0, 2**62)
attempts = st.builds(
    Attempt,
    number=st.integers(1, 9),
    status=st.sampled_from(["ok", "infra"]),
    reason=st.none() | texts,
    seconds=st.floats(0, 1e6),
    model=st.none() | texts,
    input_tokens=counts,
    output_tokens=counts,
    cache_read_tokens=counts,
    cache_write_tokens=counts,
    was_replaced=st.booleans(),
)
events = st.builds(
    ComponentEvent,
    name=texts,
    position=st.integers(0, 9),
    arguments_digest=st.none() | texts,
    returned_bytes=counts,
    returned_tokens=counts,
)
replies = st.builds(
    Reply,
    status=st.sampled_from(["answered", "abstained", "infra"]),
    raw=st.none() | texts,
    reason=st.none() | texts,
    stderr=st.none() | texts,
    seconds=st.floats(0, 1e6),
    stop_reason=st.none() | texts,
    degraded=st.lists(texts, max_size=2).map(tuple),
    trajectory=st.none() | texts,
    attempts=st.lists(attempts, max_size=2, unique_by=lambda a: a.number).map(
        lambda found: tuple(sorted(found, key=lambda attempt: attempt.number))
    ),
    events=st.lists(events, max_size=2, unique_by=lambda e: e.position).map(
        lambda found: tuple(sorted(found, key=lambda event: event.position))
    ),
)
captures = st.builds(
    replace,
    st.just(CAPTURE),
    reply=replies,
    key_parts=st.dictionaries(texts, texts, max_size=3),
    trial=st.integers(0, 9),
    seed=st.integers(0, 2**31),
    session_id=st.none() | texts,
    corpus_dir=st.none() | texts,
    is_dirty=st.booleans(),
    is_identified=st.booleans(),
    is_resumed=st.booleans(),
    evidence=st.sampled_from(["executed", "replayed"]),
    source_run_id=st.none() | texts,
)


@pytest.fixture
def store(tmp_path: Path) -> CaptureStore:
    return open_store(tmp_path, CAPTURE.run_id)


@given(captures)
def test_capture_comes_back_from_its_file_as_it_was(capture: Capture) -> None:
    """Nothing of a record is lost in the capture file."""
    assert capture_from_json(capture_to_json(capture)) == capture


@given(captures)
def test_capture_comes_back_from_its_row_as_it_was(capture: Capture) -> None:
    """The row and its attempts and events hold all of the record."""
    row = to_row(capture)

    assert capture_from_row(row, capture.attempt_rows(), capture.event_rows()) == capture


@settings(deadline=None, max_examples=20)
@given(captures)
def test_capture_comes_back_from_the_warehouse_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, capture: Capture
) -> None:
    """The same through Parquet and DuckDB."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    land_answers(warehouse, capture.run_id, tasks=(), captures=[capture], sessions=())

    assert read_landed(warehouse, capture.run_id) == [capture]


def test_read_captures_prefers_an_answer_to_failures_and_late_failures_to_early(
    store: CaptureStore,
) -> None:
    """A failure that was mended on --resume is history; without one the last failure counts."""
    for number in range(11):
        reply = replace(INFRA.reply, reason=f"failure {number + 1}")
        store.put(replace(INFRA, reply=reply))
    assert store.read_captures()[CAPTURE.key].reply.reason == "failure 11"

    store.put(CAPTURE)
    assert store.read_captures() == {CAPTURE.key: CAPTURE}
    assert len(list(store.folder.glob("*.infra-*.json"))) == 11


def test_read_captures_ignores_what_a_killed_program_left(store: CaptureStore) -> None:
    """A temporary file that was never renamed is nobody's answer."""
    store.put(CAPTURE)
    (store.folder / ".123-4.tmp").write_bytes(capture_to_json(CAPTURE)[:40])
    store.put_session(
        SessionRecord(run_id="r", session_id="tool-0-1", arm="tool", trial=0, start=SessionStart())
    )
    store.write_manifest({"schema": 1}, b"")

    assert list(store.read_captures()) == [CAPTURE.key]


def test_write_while_being_read_shows_whole_files_only(store: CaptureStore) -> None:
    """A reader beside a writer sees an old or a new file, never a part of one."""
    big = replace(CAPTURE, reply=replace(CAPTURE.reply, raw="x" * 300_000))
    sizes = {len(capture_to_json(capture)) for capture in (CAPTURE, big)}
    is_over = threading.Event()
    seen: set[int] = set()
    store.put(CAPTURE)

    def read() -> None:
        while not is_over.is_set():
            seen.add(len((store.folder / f"{CAPTURE.key}.json").read_bytes()))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(200):
        store.put(big if number % 2 else CAPTURE)
    is_over.set()
    reader.join()

    assert seen <= sizes
    assert list(store.folder.glob(".*.tmp")) == []


def test_put_on_a_full_disk_is_a_storage_error_that_leaves_nothing_half_written(
    tmp_path: Path,
) -> None:
    """A limit on file size stands in for a full disk; earlier answers stay readable."""
    store = open_store(tmp_path, CAPTURE.run_id)
    store.put(CAPTURE)
    big = replace(CAPTURE, key="b" * 64, reply=replace(CAPTURE.reply, raw="x" * 100_000))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(StorageError) as caught:
            store.put(big)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert "File too large; the answers finished so far are kept" in str(caught.value)
    assert f"continue with --resume {CAPTURE.run_id}" in str(caught.value)
    assert [path.name for path in store.folder.iterdir()] == [f"{CAPTURE.key}.json"]
    assert store.read_captures() == {CAPTURE.key: CAPTURE}


def test_read_manifest_of_a_folder_without_one_says_what_to_do(store: CaptureStore) -> None:
    """A run that died before it was written down is no run."""
    with pytest.raises(UsageError, match="no run 20260801-000000-00000000 to continue"):
        store.read_manifest()


def test_remove_takes_the_manifest_first(store: CaptureStore) -> None:
    """Killed while it tidies up, a landed run must not look as if answers were missing."""
    store.write_manifest({"schema": 1}, b"")
    names = [f"{number:064x}.json" for number in range(3000)]
    for name in names:
        (store.folder / name).touch()
    is_over = threading.Event()
    looks: list[tuple[int, bool]] = []

    def look() -> None:
        while not is_over.is_set():
            left = sum((store.folder / name).exists() for name in names[::100])
            looks.append((left, (store.folder / "run.json").exists()))

    watcher = threading.Thread(target=look)
    watcher.start()
    store.remove()
    is_over.set()
    watcher.join()

    assert not [left for left, has_manifest in looks if has_manifest and left < len(names[::100])]
    assert not store.folder.exists()


def test_hold_run_refuses_a_second_program(tmp_path: Path) -> None:
    """Two programs never write one run; once it is let go, the next may."""
    with hold_run(tmp_path, "run"):
        with (
            pytest.raises(UsageError, match="run run is being written by another program"),
            hold_run(tmp_path, "run"),
        ):
            pass
        with hold_run(tmp_path, "another"):
            pass
    with hold_run(tmp_path, "run"):
        pass
