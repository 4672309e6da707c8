"""Opening the sealed part of a real panel: what comes back, what stays behind, what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coldrun.tasks.freeze.lock import lock_to_bytes, read_lock
from coldrun.tasks.holdout.ledger import adopt_openings, hold_ledger, read_ledger
from coldrun.tasks.holdout.opening import (
    Evaluate,
    OpenedPart,
    OpeningRequest,
    open_sealed,
    prepare_opening,
)
from coldrun.tasks.holdout.private import SessionWatch
from coldrun.tasks.holdout.sealed_file import key_folder
from coldrun.tasks.judge.build_report import BuiltReport
from coldrun.tasks.judge.land_judgement import finish_run
from coldrun.tasks.judge.panel_list import list_panels
from coldrun.tasks.lib.errors import ColdrunError, LedgerError, LockError, UsageError
from coldrun.tasks.report.markdown import to_markdown
from coldrun.tasks.report.warehouse_document import panels_document
from coldrun.tasks.run.prepare import Evaluation
from coldrun.tasks.run.run_lifecycle import RunRequest, StartedRun, execute_locally, start_run
from tests.conftest import RepositoryBuilder
from tests.evaluations import CONFIG, ROOT, EvaluationLab
from tests.holdouts import HOLDOUT, WORDS, grow_garden, make_holdout_lab

SEALED = WORDS[12:24]

NOISY_ARM = """\
[[arm]]
name = "noisy"
kind = "command"
argv = ["{python}", "{adapter}"]
adapter = "arm.py"
"""


ODD_SERVER = """
import json, sys

def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        about = {"name": "odd", "version": "1"}
        say(id=message["id"], result={"protocolVersion": version, "capabilities": {"tools": {}},
                                      "serverInfo": about})
    elif message["method"] == "tools/list":
        say(id=message["id"], result={"tools": [{"name": "find", "inputSchema": {}}]})
    elif message["method"] == "tools/call":
        say(method="notifications/unknown", params={"asked": message["params"]["arguments"]})
        say(id=message["id"], result={"content": [{"type": "text", "text": "no results"}]})
"""
"""A server whose every answer comes with a notification that the SDK cannot read."""


def evaluate_after(begin: Callable[[StartedRun], object]) -> Evaluate:
    """The ordinary chain without an orchestrator; `begin` is called before anything is asked."""

    def evaluate(
        evaluation: Evaluation, request: RunRequest, guard: Callable[[StartedRun], None]
    ) -> BuiltReport:
        started = start_run(evaluation, request, point=None)
        guard(started)
        try:
            begin(started)
            execute_locally(started, concurrency=2)
        except BaseException:
            started.abandon()
            raise
        return finish_run(started)

    return evaluate


EVALUATE = evaluate_after(lambda _: None)


def open_part(lab: EvaluationLab, by: Evaluate = EVALUATE, **values: Any) -> OpenedPart:
    request = OpeningRequest(**{"reason": "release", "warehouse": lab.warehouse, **values})
    prepared = prepare_opening(lab.config, request, scratch=lab.scratch)
    return open_sealed(prepared, by)


def sealed_files(*roots: Path) -> list[Path]:
    """The files in which a sealed question stands."""
    questions = [f"Water the {word}".encode() for word in SEALED]
    files = [path for root in roots for path in root.rglob("*") if path.is_file()]
    return [path for path in files if any(question in path.read_bytes() for question in questions)]


def edit(lab: EvaluationLab, old: str, new: str) -> None:
    """Change the configuration."""
    lab.write(lab.config.read_text().replace(old, new))


def test_open_sealed_returns_aggregates_and_leaves_a_ledger_line(lab: EvaluationLab) -> None:
    """The declared measure per arm and null, the gate, and who asked why, after how many tries."""
    lab.run()
    opened = open_part(lab)
    result = opened.opening.result
    assert result is not None
    assert result["measures"] == ["hit@1"]
    arms = {arm["name"]: arm["measures"]["hit@1"]["count"] for arm in result["arms"]}
    assert arms["bm25"] == 12
    assert "constant" in arms
    assert (opened.exit_code, result["verdict"]) == (0, "measured")
    gaps = {gap["arm"]: (gap["dev"], gap["difference"]) for gap in result["gaps"]}
    assert gaps["bm25"] == gaps["grep"] == ([12, 12], 0.0)
    assert read_ledger(lab.files, read_lock(lab.files)) == (opened.opening,)
    assert opened.opening.configurations_tried == 1
    assert opened.opening.who
    assert read_lock(lab.files)["holdout"]["count"] == 1
    # no sealed question is left in the warehouse, in scratch, or beside the configuration
    assert sealed_files(lab.warehouse, lab.scratch, lab.config.parent) == []
    assert not any(word in lab.files.ledger.read_text() for word in SEALED)
    assert lab.load().frozen.tasks
    assert not list((lab.scratch / "holdout").glob("opening-*"))


def test_sealed_tasks_count_as_opened_under_another_name(lab: EvaluationLab) -> None:
    """A copy of the configuration, and another fraction, share tasks that were read."""
    open_part(lab)
    text = lab.config.read_text()
    for name, changed in (
        ("copy", text),
        ("fraction", text.replace("sealed_fraction = 0.5", "sealed_fraction = 0.45")),
    ):
        other = EvaluationLab(lab.root, name=name)
        other.write(changed)
        other.freeze()
        with pytest.raises(UsageError, match=r"it was opened once \(1 elsewhere, by task\)"):
            open_part(other)
    assert not any(word in (key_folder() / "opened.jsonl").read_text() for word in SEALED)


def test_library_that_logs_a_sealed_query_reaches_no_terminal(
    lab: EvaluationLab, capfd: pytest.CaptureFixture[str]
) -> None:
    """The SDK logs messages that it cannot read, with all that is in them."""
    lab.write(
        lab.config.read_text()
        + """
[[arm]]
name = "odd"
role = "control"
kind = "mcp"
argv = ["{python}", "{adapter}"]
adapter = "odd.py"
tool = "find"
arguments = { query = "{query}" }
"""
    )
    (lab.config.parent / "odd.py").write_text(ODD_SERVER)
    lab.freeze(force=True)
    open_part(lab)
    said = capfd.readouterr()
    assert not any(word in said.out + said.err for word in SEALED)


def test_open_sealed_twice_needs_an_override_that_is_recorded(lab: EvaluationLab) -> None:
    """The default is one opening, whatever is frozen over the same history; a second one is
    possible, and says so for ever."""
    open_part(lab)
    with pytest.raises(UsageError, match=r"opened once.*--override"):
        open_part(lab)
    edit(lab, "[measure]", "[sample]\nsize=9\n[measure]")
    assert lab.freeze(force=True) == "replaced"
    with pytest.raises(UsageError, match="opened once"):
        open_part(lab)
    opened = open_part(lab, is_override=True, reason="curious")
    assert opened.opening.is_override
    assert [found.number for found in opened.openings] == [1, 2]


def test_open_sealed_that_gave_nothing_back_is_no_opening_of_the_panel(tmp_path: Path) -> None:
    """`panels` counts as `holdout log` does; a lock that knows only lines says no more."""
    lab = make_holdout_lab(tmp_path, rest=NOISY_ARM)
    lab.write_arm("def answer(query):\n    raise SystemExit(1)\n")
    lab.freeze()
    assert open_part(lab).opening.status == "withheld"
    lab.write_arm()
    lab.run()
    assert "opened 0 times before that run; interrupted or failed once" in panel_text(lab)
    open_part(lab)
    lab.run()
    assert "opened once before that run; interrupted or failed once" in panel_text(lab)
    lock = read_lock(lab.files)
    del lock["holdout"]["opened"]
    lab.files.lock.write_bytes(lock_to_bytes(lock))
    lab.run()
    assert "asked 2 times before that run, whether or not" in panel_text(lab)


def panel_text(lab: EvaluationLab) -> str:
    return to_markdown(panels_document(list_panels(lab.warehouse), lab.warehouse))


def test_open_sealed_with_declared_event_needs_the_event(tmp_path: Path) -> None:
    """`when` is a condition, not a comment."""
    lab = make_holdout_lab(tmp_path, holdout=HOLDOUT)
    lab.freeze()
    with pytest.raises(UsageError, match="--event"):
        open_part(lab)
    opened = open_part(lab, event="the release candidate is chosen")
    assert not opened.opening.is_override


def test_open_sealed_tampered_ledger_line_is_noticed(lab: EvaluationLab) -> None:
    """An edited reason, and a cut tail, stop every later opening with exit code 5."""
    open_part(lab)
    whole = lab.files.ledger.read_bytes()
    lab.files.ledger.write_bytes(whole.replace(b"release", b"routine"))
    with pytest.raises(LedgerError, match="was edited") as caught:
        open_part(lab, is_override=True)
    assert caught.value.exit_code == 5
    lab.files.ledger.unlink()
    with pytest.raises(LedgerError, match="tail was cut off"):
        open_part(lab, is_override=True)


def test_open_sealed_crash_between_ledger_and_lock_is_explained_and_adopted(
    lab: EvaluationLab,
) -> None:
    """The opening counts although the lock never heard of it."""
    before = lab.files.lock.read_bytes()
    open_part(lab)
    lab.files.lock.write_bytes(before)
    with pytest.raises(LedgerError, match="--adopt"):
        open_part(lab)
    assert len(adopt_openings(lab.files)) == 1
    with pytest.raises(UsageError, match="opened once"):
        open_part(lab)


def test_open_sealed_declared_aggregates_alone_come_back(tmp_path: Path) -> None:
    """Without the primary measure there is no gate, no verdict and no figure at it."""
    holdout = '[holdout]\naggregates = ["hit@5"]\narms = ["bm25"]\n'
    arms = '[[arm]]\nname="bm25"\nkind="bm25"\n[[arm]]\nname="grep"\nkind="grep"\nrole="floor"\n'
    lab = make_holdout_lab(tmp_path, holdout=holdout, rest=arms)
    lab.freeze()
    result = open_part(lab).opening.result
    assert result is not None
    assert result["verdict"] is None
    assert result["gates"] == []
    assert {name for arm in result["arms"] for name in arm["measures"]} == {"hit@5"}
    assert "grep" not in {arm["name"] for arm in result["arms"]}


def test_open_sealed_task_level_returns_rows_and_demotes_for_good(lab: EvaluationLab) -> None:
    """Rows come back once; after that there is no sealed part any more, override or not."""
    opened = open_part(lab, is_task_level=True)
    assert {row["query"] for row in opened.rows} == {f"Water the {w} twice a day" for w in SEALED}
    demoted = read_lock(lab.files)["holdout"]["demoted"]
    assert len(demoted["tasks"]) == 12
    with pytest.raises(UsageError, match="dev for good"):
        open_part(lab, is_override=True)
    assert lab.freeze() == "unchanged"
    edit(lab, "sealed_fraction = 0.5", "sealed_fraction = 0.25")
    with pytest.raises(LockError, match=r"were read task by task .* dev for good"):
        lab.freeze(force=True)
    edit(lab, "[split]\nsealed_fraction = 0.25\n", "")
    assert lab.freeze(force=True) == "replaced"
    assert read_lock(lab.files)["panel"]["tasks"] == 24
    assert read_lock(lab.files)["holdout"]["demoted"] == demoted


@pytest.mark.parametrize(
    "change",
    [
        ("sealed_fraction = 0.5", "sealed_fraction = 0.25"),
        ('head = "main"', 'head = "main"\nquery = "subject"'),
        ('head = "main"', 'head = "main"\nunit = "merge"\nquery = "subject"'),
    ],
)
def test_open_sealed_task_level_no_setting_seals_the_same_commits_again(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    """Ids hash the query, so another query makes new ids of commits that were read."""
    lab = make_holdout_lab(tmp_path, body="\n\nIn the evening too.")
    lab.freeze()
    open_part(lab, is_task_level=True)
    edit(lab, *change)
    with pytest.raises(LockError, match=r"sealed_after = 2020-10-07"):
        lab.freeze(force=True)
    grow_garden(lab.root / "garden", 24, 36)
    lab.write(re.sub(r"sealed_fraction = \S+", "sealed_after = 2020-10-07", lab.config.read_text()))
    assert lab.freeze(force=True) == "replaced"


def test_open_sealed_task_level_of_an_older_lock_goes_by_the_ids(lab: EvaluationLab) -> None:
    """What an earlier version wrote is enough to refuse the same tasks."""
    open_part(lab, is_task_level=True)
    lock = read_lock(lab.files)
    del lock["holdout"]["demoted"]["until"]
    lab.files.lock.write_bytes(lock_to_bytes(lock))
    edit(lab, "sealed_fraction = 0.5", "sealed_fraction = 0.25")
    with pytest.raises(LockError, match="dev for good"):
        lab.freeze(force=True)


@pytest.mark.parametrize("kept", ["query", "date"])
def test_open_sealed_task_level_of_a_file_refuses_renamed_tasks(tmp_path: Path, kept: str) -> None:
    """New ids, and new words or new dates, do not make a line of a file unread."""
    lab = EvaluationLab(tmp_path)
    lab.write(CONFIG + "[split]\nsealed_fraction = 0.5\n")
    lab.write_arm()
    rows = [
        {"id": f"t{n}", "query": f"item-{n}?", "gold": [f"item-{n}"], "date": f"2026-01-{n + 1:02}"}
        for n in range(16)
    ]
    lab.write_rows(rows)
    lab.freeze()
    open_part(lab, is_task_level=True)
    for number, row in enumerate(rows):
        row["id"] = f"new{number}"
        if kept == "query":
            row["date"] = f"2026-02-{number + 1:02}"
        else:
            row["query"] = f"where is item-{number}?"
    lab.write_rows(rows)
    with pytest.raises(LockError, match="8 of the tasks to be sealed were read"):
        lab.freeze(force=True)


def test_open_sealed_task_level_of_tickets_refuses_them_with_other_dates(tmp_path: Path) -> None:
    """Without the file, a ticket counts from the commit that names it, later than it was made."""
    lab = EvaluationLab(tmp_path)
    rows = ["id,title,created"]
    for name in ("hall", "shed"):
        builder = RepositoryBuilder(tmp_path / name)
        builder.commit("start", {"a.py": "0"}, date=1_600_000_000)
        for n in range(1, 9):  # one commit before the base, then one a day
            files, date = {"a.py": f"{n}"}, 1_600_000_000 + 86_400 * n
            builder.commit(f"{name.upper()}-{n} mend part {n}", files, date=date)
            rows.append(f"{name.upper()}-{n},Mend the {name} {n},2020-09-{n + 1:02}")
    (tmp_path / "evaluation" / "tickets.csv").write_text("\n".join(rows) + "\n")
    lab.write(TICKETS)
    lab.write_arm("def answer(query):\n    return {'items': ['hall']}\n")
    lab.freeze()
    open_part(lab, is_task_level=True)
    edit(lab, 'tickets = "tickets.csv"\n', "")
    with pytest.raises(LockError, match=r"were read .* sealed_after = 2026-08-01"):
        lab.freeze(force=True)


TICKETS = """\
[panel]
kind = "ticket-repos"
repos = ["../hall", "../shed"]
ticket_pattern = '[A-Z]+-\\d+'
base = "2020-09-14"
tickets = "tickets.csv"

[sample]
rule = "all"

[split]
sealed_fraction = 0.25

[[arm]]
name = "reader"
kind = "command"
argv = ["{python}", "{adapter}"]
adapter = "arm.py"
"""


def test_open_sealed_task_level_twice_remembers_what_was_read_first(lab: EvaluationLab) -> None:
    """Later tasks may be sealed and read too; the first ones are dev all the same."""
    edit(lab, "[measure]", "[holdout]\nopenings = 2\n\n[measure]")
    lab.freeze(force=True)
    open_part(lab, is_task_level=True)
    first = read_lock(lab.files)["holdout"]["demoted"]["tasks"]
    grow_garden(lab.root / "garden", 24, 30)
    edit(lab, "sealed_fraction = 0.5", "sealed_after = 2020-10-07")
    lab.freeze(force=True)
    open_part(lab, is_task_level=True)
    both = read_lock(lab.files)["holdout"]["demoted"]["tasks"]
    assert set(first) < set(both)
    assert len(both) == 12 + 6


def test_open_sealed_tool_that_quotes_questions_is_kept_quiet(tmp_path: Path) -> None:
    """A tool that fails and says the query is no way out for it."""
    lab = make_holdout_lab(tmp_path, rest=NOISY_ARM)
    lab.write_arm(
        "def answer(query):\n"
        "    print(query, file=sys.stderr, flush=True)\n"
        "    open('notes.txt', 'w').write(query)\n"
        "    raise SystemExit(query)\n"
    )
    lab.freeze()
    opened = open_part(lab)
    assert opened.opening.status == "withheld"
    assert opened.opening.result is None
    assert opened.exit_code == 5
    told = json.dumps(opened.opening.to_values())
    assert not any(word in told for word in SEALED)
    assert sealed_files(lab.root) == []


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (ColdrunError, "failed", "failed after 1 questions"),
        (KeyboardInterrupt, "interrupted", None),
    ],
)
def test_open_sealed_that_ends_half_way_is_written_down_without_what_was_said(
    lab: EvaluationLab, error: type[BaseException], status: str, message: str | None
) -> None:
    """Questions were asked, so the attempt is in the ledger; it uses no opening up."""

    def fail(started: StartedRun) -> None:
        question = started.run.arms[0].asks[0].question
        session = started.run.arms[0].open_session(0)
        session.ask(question)
        session.close()
        raise error(*([f"the tool said: {question.query}"] if message else []))

    with pytest.raises(error, match=message) as caught:
        open_part(lab, by=evaluate_after(fail))
    assert "Water" not in str(caught.value)
    ledger = read_ledger(lab.files, read_lock(lab.files))
    assert [found.status for found in ledger] == [status]
    assert open_part(lab).opening.number == 2


def test_open_sealed_that_lost_a_race_tells_nothing(lab: EvaluationLab) -> None:
    """Of two openings at once the chain keeps one, and the other is told to repeat."""
    request = OpeningRequest(reason="release", warehouse=lab.warehouse)
    late = prepare_opening(lab.config, request, scratch=lab.scratch)
    open_part(lab)
    with pytest.raises(LedgerError, match="got another line while this opening ran"):
        open_sealed(late, EVALUATE)
    assert len(read_ledger(lab.files, read_lock(lab.files))) == 1


def test_prepare_opening_without_split_says_how_to_seal(tmp_path: Path) -> None:
    """Nothing is sealed unless it is asked for."""
    lab = make_holdout_lab(tmp_path)
    edit(lab, "[split]\nsealed_fraction = 0.5\n", "")
    lab.freeze()
    with pytest.raises(UsageError, match=r"add \[split\]"):
        open_part(lab)


def test_prepare_opening_with_another_hash_in_the_lock_runs_nothing(lab: EvaluationLab) -> None:
    """The hash is checked before any arm is asked."""
    lock = read_lock(lab.files)
    lock["sealed"]["digest"] = "sha256:" + "0" * 64
    lab.files.lock.write_bytes(lock_to_bytes(lock))
    with pytest.raises(LockError, match="another one: the lock says sha256:0000"):
        open_part(lab)
    assert not lab.files.ledger.exists()


def test_prepare_opening_with_a_reason_that_is_no_text_is_refused(lab: EvaluationLab) -> None:
    """Before anything is asked: it could not be written down afterwards."""
    with pytest.raises(UsageError, match="no text that can be written down"):
        open_part(lab, reason="\udcff")
    with pytest.raises(UsageError, match="says something"):
        open_part(lab, reason="  ")


def test_open_sealed_that_is_stopped_is_written_down_and_uses_nothing_up(
    lab: EvaluationLab,
) -> None:
    """Ctrl-C lands what finished in the private warehouse, and then nothing is told of it."""

    def stop_early(started: StartedRun) -> None:
        started.run.on_progress = lambda _: started.run.stop()

    opened = open_part(lab, by=evaluate_after(stop_early))
    assert (opened.exit_code, opened.opening.status) == (130, "interrupted")
    assert opened.opening.result is None
    assert open_part(lab).opening.status == "opened"


KILLED = """\
import sys
from pathlib import Path
from tests.evaluations import EvaluationLab
from tests.holdout.test_opening import open_part

open_part(EvaluationLab(Path(sys.argv[1])))
"""


def test_open_sealed_after_kill_9_leaves_nothing_once_opened_again(tmp_path: Path) -> None:
    """The killed program's captures and session folders hold questions; the next opening ends it.

    It also writes the killed one down, since the questions could be read until then.
    """
    lab = make_holdout_lab(tmp_path, rest=NOISY_ARM)
    slow = (
        "    Path('seen.txt').write_text(query)\n"
        "    if not os.path.exists(os.environ['MARK']):\n"
        "        time.sleep(60)\n"
    )
    lab.write_arm(f"from pathlib import Path\ndef answer(query):\n{slow}    return {{'items': []}}")
    mark = tmp_path / "mark"
    lab.write(f'{lab.config.read_text()}set_env = {{ MARK = "{mark}" }}\nsandbox = false\n')
    lab.freeze()
    program = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        env=lab.environment() | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 60
        while not list(lab.scratch.rglob("seen.txt")) and time.monotonic() < deadline:
            assert program.poll() is None, program.stderr and program.stderr.read()
            time.sleep(0.05)
    finally:
        program.kill()
        program.communicate()
    assert list((lab.scratch / "holdout").glob("opening-*/"))
    assert not lab.files.ledger.exists()
    mark.touch()
    with hold_ledger(lab.files, lab.scratch) as killed:
        assert killed is not None
        opened = open_part(lab)
    assert [(line.number, line.status) for line in opened.openings] == [
        (1, "interrupted"),
        (2, "opened"),
    ]
    with hold_ledger(lab.files, lab.scratch) as killed:
        assert killed is None
    assert not list(lab.scratch.rglob("seen.txt"))
    assert not list((lab.scratch / "holdout").glob("opening-*/"))
    assert sealed_files(lab.scratch) == []


def test_guarded_run_asks_through_watched_sessions_alone(lab: EvaluationLab) -> None:
    """What was planned before the guard came is asked through it all the same."""
    started = start_run(lab.load(), RunRequest(warehouse=lab.warehouse), point=None)
    watch = SessionWatch()
    watch.guard(started)
    execute_locally(started, concurrency=1)
    finish_run(started)
    assert watch.asked == sum(len(arm.asks) for arm in started.run.arms) > 0
