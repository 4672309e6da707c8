"""The built-in arms end to end: from a repository to an answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from coldrun.tasks.arms import arm_kind
from coldrun.tasks.arms.base import Corpus, CorpusTree, Session, SessionContext
from coldrun.tasks.arms.builtin.builtin_kinds import Bm25Arm, GrepArm
from coldrun.tasks.arms.builtin.builtin_session import (
    SharedStore,
    open_builtin_session,
    process_store,
)
from coldrun.tasks.arms.parse import parse_answer
from coldrun.tasks.config import ArmConfig
from coldrun.tasks.lib.errors import ConfigError, RepositoryError
from coldrun.tasks.lib.records import AnswerKind, Question, Revision
from tests.arms.builtin.conftest import GitRepo

MakeRepo = Callable[..., GitRepo]
Open = Callable[..., Session]
KINDS: tuple[ArmConfig, ...] = (
    Bm25Arm(name="bm25", role="control", kind="bm25"),
    GrepArm(name="grep", role="floor", kind="grep"),
)
FILES = {
    "src/click/core.py": "class Context:\n    def lookup_default(self): ...  # default map",
    "src/click/termui.py": "def prompt(text): return visible_input(text)",
    "docs/options.rst": "Options may have a default. Prompting asks for the text.",
    "README": "nothing to see",
}


@pytest.fixture(params=KINDS, ids=lambda arm: arm.name)
def arm(request: pytest.FixtureRequest) -> ArmConfig:
    chosen: ArmConfig = request.param
    return chosen


@pytest.fixture
def open_arm(tmp_path: Path) -> Open:
    """Opens a session over trees given by name as repository and revision."""

    def open_session(
        arm: ArmConfig,
        trees: dict[str, tuple[GitRepo, Revision]],
        store: SharedStore | None = None,
        answer: AnswerKind = "ranking",
    ) -> Session:
        context = SessionContext(
            arm=arm,
            corpus=Corpus(
                trees={
                    name: CorpusTree(
                        git_dir=repo.open().git_dir, commit=revision.commit, tree=revision.tree
                    )
                    for name, (repo, revision) in trees.items()
                }
            ),
            answer=answer,
            k=8,
            seed=0,
            trial=0,
            point=None,
            config_dir=tmp_path,
            scratch=tmp_path / "scratch",
            run_id="run",
        )
        if store is process_store():
            return arm_kind.open_session(context)
        return open_builtin_session(context, store or SharedStore())

    return open_session


def question(query: str, **changes: Any) -> Question:
    return Question(
        **{"id": "q", "answer": "ranking", "k": 8, "seed": 0, **changes, "query": query}
    )


def ask(session: Session, query: str, **changes: Any) -> list[str]:
    reply = session.ask(question(query, **changes))
    assert reply.status != "infra", reply.reason
    return [item["path"] for item in json.loads(reply.raw or "")["items"]]


def test_ask_ranking_puts_the_file_with_the_words_first(
    arm: ArmConfig, make_repo: MakeRepo, open_arm: Open
) -> None:
    """The file that holds most of the query leads; files that hold none of it are not listed."""
    repo = make_repo(files=FILES)
    session = open_arm(arm, {".": (repo, repo.head)})
    reply = session.ask(question("lookup_default ignores the default map of the Context"))
    items = json.loads(reply.raw or "")["items"]
    assert [item["path"] for item in items] == ["src/click/core.py", "docs/options.rst"]
    assert items[0]["score"] > items[1]["score"] > 0
    assert reply.status == "answered"
    assert reply.seconds > 0
    assert session.start.indexing_seconds > 0
    parsed = parse_answer(reply.raw or "", arm, answer="ranking", corpus_dir=None)
    assert parsed.items == ("src/click/core.py", "docs/options.rst")


def test_ask_more_files_than_k_gives_k_with_ties_by_path(
    arm: ArmConfig, make_repo: MakeRepo, open_arm: Open
) -> None:
    """Equal scores go by path, and the list ends at k."""
    repo = make_repo(files={f"{name}/same.py": "needle" for name in "dbca"})
    session = open_arm(arm, {".": (repo, repo.head)})
    assert ask(session, "needle", k=3) == ["a/same.py", "b/same.py", "c/same.py"]


@pytest.mark.parametrize("query", ["zzz qqq", "the of and", "", "\0\n{}[]", "🎉"])
def test_ask_query_without_a_hit_abstains(
    arm: ArmConfig, make_repo: MakeRepo, open_arm: Open, query: str
) -> None:
    """Nothing found is an abstention for a ranking and the empty set for a set."""
    repo = make_repo(files=FILES)
    session = open_arm(arm, {".": (repo, repo.head)})
    reply = session.ask(question(query))
    assert (reply.status, reply.raw) == ("abstained", '{"items": []}')
    assert session.ask(question(query, answer="set")).status == "answered"


def test_ask_strange_files_are_listed_and_never_break_it(
    arm: ArmConfig, make_repo: MakeRepo, open_arm: Open
) -> None:
    """Bytes of any kind in names and contents; links are not followed, submodules left out."""
    repo = make_repo(
        files={
            "needle.bin": b"\0needle",
            "latin.txt": "gr\xfc\xdfe needle".encode("latin-1"),
            'odd "name"\n.py': "needle",
            "empty": "",
            "huge.txt": "needle " * 200_000,
        }
    )
    (repo.path / "link").symlink_to("needle")
    name = b"n\xffme.py"
    (Path(str(repo.path)) / name.decode("utf-8", "surrogateescape")).write_text("needle")
    repo.git("add", "--all")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{repo.head.commit},needle-module")
    repo.git("commit", "-q", "-m", "more")
    session = open_arm(arm, {".": (repo, repo.head)})
    found = set(ask(session, "needle"))
    assert found >= {"latin.txt", 'odd "name"\n.py', "n%FFme.py"}
    assert ("needle.bin" in found) == (arm.kind == "bm25")  # by its path
    assert not found & {"link", "needle-module", "empty", "huge.txt"}
    assert session.close().log == "7 files; not read: 1 binary, 1 over 1024 KiB"


def test_ask_base_of_its_own_searches_that_tree(
    arm: ArmConfig, make_repo: MakeRepo, open_arm: Open
) -> None:
    """A task's base decides the corpus: what came later is not found, what went later is."""
    repo = make_repo()
    before = repo.commit({"old.py": "needle", "both.py": "needle thread"})
    after = repo.commit({"old.py": None, "new.py": "needle"})
    session = open_arm(arm, {".": (repo, before)})
    assert ask(session, "needle") == ask(session, "needle", base=before.commit)
    assert set(ask(session, "needle", base=before.commit)) == {"old.py", "both.py"}
    assert set(ask(session, "needle", base=after.commit)) == {"new.py", "both.py"}
    own = open_arm(arm, {".": (repo, after)})
    for query in ("needle", "thread needle needle"):
        replies = [own.ask(question(query, base=base)) for base in (None, after.commit)]
        assert replies[0].raw == replies[1].raw


def test_ask_several_trees_ranks_their_names(
    arm: ArmConfig, make_repo: MakeRepo, open_arm: Open
) -> None:
    """With several trees an item is a tree, which is as good as its best file."""
    files = {
        "web": {"cart.py": "checkout cart total", "x.py": "cart"},
        "api": {"cart.py": "cart"},
        "admin": {"users.py": "people"},
    }
    repos = {name: make_repo(name, files=content) for name, content in files.items()}
    trees = {name: (repo, repo.head) for name, repo in repos.items()}
    session = open_arm(arm, trees, answer="set")
    assert ask(session, "checkout total of the cart") == ["web", "api"]
    assert ask(session, "checkout total of the cart", answer="set") == ["web"]
    assert ask(session, "people", answer="set") == ["admin"]
    reply = session.ask(question("cart", base=repos["web"].head.commit))
    assert reply.status == "infra"
    assert "corpus of one tree" in (reply.reason or "")


def test_ask_set_holds_near_ties_only(arm: ArmConfig, make_repo: MakeRepo, open_arm: Open) -> None:
    """Trees that fit equally are all in the set; one that fits half as well is not."""
    files = {"web": "login page form", "api": "login page form", "log": "login of other things"}
    repos = {name: make_repo(name, files={"f.py": text}) for name, text in files.items()}
    session = open_arm(arm, {name: (repo, repo.head) for name, repo in repos.items()})
    assert ask(session, "login page form", answer="set") == ["api", "web"]


def test_ask_unknown_base_is_infra_and_the_session_goes_on(
    arm: ArmConfig, make_repo: MakeRepo, open_arm: Open
) -> None:
    """A base that the repository does not have is a failure with a reason, not a miss."""
    repo = make_repo(files=FILES)
    session = open_arm(arm, {".": (repo, repo.head)})
    reply = session.ask(question("default", base="0" * 40))
    assert reply.status == "infra"
    assert reply.raw is None
    assert reply.reason
    assert reply.attempts[0].status == "infra"
    assert ask(session, "default")


def test_open_empty_corpus_answers_with_nothing(arm: ArmConfig, open_arm: Open) -> None:
    """A panel without a corpus leaves a search nothing to find."""
    session = open_arm(arm, {})
    assert session.ask(question("default")).status == "abstained"


def test_open_unreadable_tree_is_an_error(
    arm: ArmConfig, make_repo: MakeRepo, open_arm: Open
) -> None:
    """A session over a tree that is not there cannot be opened."""
    repo = make_repo(files=FILES)
    with pytest.raises(RepositoryError):
        open_arm(arm, {".": (repo, Revision(commit="0" * 40, tree="1" * 40))})


def test_open_arm_with_settings_of_another_kind_is_refused(
    make_repo: MakeRepo, open_arm: Open
) -> None:
    """The opener of one kind does not take the settings of another."""
    repo = make_repo(files=FILES)
    other = KINDS[1].model_copy(update={"kind": "bm25"})
    with pytest.raises(ConfigError, match="not those of kind 'bm25'"):
        open_arm(other, {".": (repo, repo.head)}, process_store())


def test_store_many_threads_build_once_and_the_least_used_goes() -> None:
    """Who comes while a value is built waits for it; a failed build is tried again."""
    store, builds, gate = SharedStore(capacity=2), [], threading.Event()

    def build(key: str) -> str:
        builds.append(key)
        gate.wait(5)
        return key

    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(store.get, "a", lambda: build("a")) for _ in range(6)]
        gate.set()
        assert [future.result() for future in futures] == ["a"] * 6
    for key in ("b", "a", "c", "a", "b"):
        store.get(key, lambda key=key: build(key))
    assert builds == ["a", "b", "c", "b"]
    with pytest.raises(ZeroDivisionError):
        store.get("key", lambda: 1 // 0)
    assert store.get("key", lambda: 7) == 7
    assert process_store() is process_store()


def test_ask_from_many_threads_gives_the_same_answers(
    arm: ArmConfig, make_repo: MakeRepo, open_arm: Open
) -> None:
    """Sessions share what they read; threads that ask at once get what one thread gets."""
    repo, bases = make_repo(), []
    for number in range(12):
        bases.append(repo.commit({f"f{number}.py": f"needle thread{number} common"}).commit)
    store = SharedStore()
    trees = {".": (repo, repo.head)}
    asked = [question(f"needle thread{n % 5}", base=base) for n, base in enumerate(bases * 3)]
    alone = [open_arm(arm, trees).ask(each).raw for each in asked]
    start = threading.Barrier(4)

    def work(_: int) -> list[str | None]:
        start.wait(10)
        session = open_arm(arm, trees, store)
        return [session.ask(each).raw for each in asked]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [alone] * 4


def test_abort_ends_the_session(arm: ArmConfig, make_repo: MakeRepo, open_arm: Open) -> None:
    """After an abort nothing is answered, and closing twice is harmless."""
    repo = make_repo(files=FILES)
    session = open_arm(arm, {".": (repo, repo.head)})
    session.abort()
    reply = session.ask(question("default"))
    assert (reply.status, reply.reason) == ("infra", "the session was ended")
    assert session.close() == session.close()
