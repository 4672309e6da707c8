"""Earlier messages that vote for their files, against a slow count of the same."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable

import pytest

from coldrun.tasks.arms.base import Corpus, CorpusTree
from coldrun.tasks.arms.builtin import history
from coldrun.tasks.arms.builtin.documents import CorpusReader
from coldrun.tasks.arms.builtin.history import HistoryStore
from coldrun.tasks.lib.tokens import tokenize
from tests.arms.builtin.conftest import GitRepo, sets_at

MakeRepo = Callable[..., GitRepo]
WORDS = ("alpha", "beta", "gamma_delta", "EpsilonZeta", "eta2", "theta", "iota", "kappa")
BODY = "".join(f"line {at}\n" for at in range(30))


def search(
    store: HistoryStore, repo: GitRepo, revision: str, query: str
) -> list[tuple[str, float]]:
    sets = sets_at(repo, revision)
    tree = store.open_tree(sets, k1=1.5, b=0.75)
    sets[0].objects.close()
    return [(hit.path, hit.score) for hit in tree.search(query)]


def names(store: HistoryStore, repo: GitRepo, revision: str, query: str) -> list[str]:
    return [path for path, _ in search(store, repo, revision, query)]


def write_history(repo: GitRepo, commits: int, seed: int) -> list[str]:
    """Commits with random messages, some on side branches that are merged."""
    source = random.Random(seed)
    made = [repo.commit({f"f{n}.py": BODY + str(n) for n in range(6)}, "start").commit]
    for number in range(commits):
        if number % 5 == 4:
            repo.git("checkout", "--quiet", "-b", f"side{number}", "HEAD~2")
        files = {f"f{n}.py": f"{BODY}{n}{number}" for n in source.sample(range(6), 2)}
        message = " ".join(source.choices(WORDS, k=source.randrange(1, 9)))
        made.append(repo.commit(files, message).commit)
        if number % 5 == 4:
            repo.git("checkout", "--quiet", "main")
            repo.git("merge", "--quiet", "--no-ff", "-X", "theirs", "-m", "join", f"side{number}")
            made.append(repo.head.commit)
    return made


def search_slowly(repo: GitRepo, revision: str, query: str) -> dict[str, float]:
    """BM25 over the messages of all ancestors, from git's own words."""
    lines = repo.git("log", "--no-merges", "--format=%x00%ct %H %s%x01", "--name-only", revision)
    commits = []
    for text in lines.split("\0")[1:]:
        head, files = text.split("\1")
        seconds, name, message = head.split(" ", 2)
        commits.append((int(seconds), name, Counter(tokenize(message)), files.split()))
    mean = sum(sum(words.values()) for _, _, words, _ in commits) / len(commits)
    scored = []
    for seconds, name, words, files in commits:
        norm = 1.5 * (0.25 + 0.75 * sum(words.values()) / mean)
        score = 0.0
        for token in tokenize(query):
            holders = sum(token in other for _, _, other, _ in commits)
            idf = math.log(1 + (len(commits) - holders + 0.5) / (holders + 0.5))
            score += idf * words[token] / (norm + words[token])
        scored.append((score, seconds, name, files))
    votes: dict[str, float] = defaultdict(float)
    for score, _, _, files in sorted(scored, reverse=True)[: history.VOTERS]:
        for path in files if score > 0 else ():
            votes[path] += score**2 / math.sqrt(len(files))
    return dict(votes)


@pytest.mark.parametrize("voters", [3, 50])
def test_search_of_a_branching_history_is_the_slow_count(
    make_repo: MakeRepo, monkeypatch: pytest.MonkeyPatch, voters: int
) -> None:
    """At every base, in any order, from one growing store: ancestors vote and no others."""
    monkeypatch.setattr(history, "VOTERS", voters)
    repo = make_repo()
    made = write_history(repo, 20, seed=3)
    random.Random(5).shuffle(made)
    store = HistoryStore()
    for commit in made:
        for query in ("alpha beta", "gamma_delta iota iota kappa", "absent"):
            assert dict(search(store, repo, commit, query)) == pytest.approx(
                search_slowly(repo, commit, query)
            )


def test_search_of_a_long_history_reads_the_newest_alone(
    make_repo: MakeRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which bases were opened before decides nothing, also where the log is cut."""
    monkeypatch.setattr(history, "MOST_COMMITS", 7)
    repo = make_repo()
    made = write_history(repo, 12, seed=4)
    alone = [search(HistoryStore(), repo, commit, "alpha theta") for commit in made]
    store = HistoryStore()
    assert [search(store, repo, commit, "alpha theta") for commit in made] == alone
    store = HistoryStore()
    assert [search(store, repo, commit, "alpha theta") for commit in made[::-1]] == alone[::-1]


def test_search_names_files_as_base_does(make_repo: MakeRepo) -> None:
    """A renamed file has the votes of its earlier names, one that is gone has none."""
    repo = make_repo()
    repo.commit({"old.py": BODY, "gone.py": "1"}, "Parse the header")
    repo.commit({"old.py": None, "middle.py": BODY}, "Move it")
    repo.commit({"middle.py": None, "new.py": BODY, "gone.py": None}, "Move it again")
    repo.commit({"old.py": "another"}, "Write another file")
    store = HistoryStore()
    assert names(store, repo, "HEAD", "header parse") == ["new.py"]
    assert names(store, repo, "HEAD~3", "header parse") == ["gone.py", "old.py"]
    assert names(store, repo, "HEAD", "another") == ["old.py"]


def test_search_knows_nothing_of_what_came_after_base(make_repo: MakeRepo) -> None:
    """Neither later messages nor later renames, whatever the store has read."""
    repo = make_repo()
    repo.commit({"a.py": BODY}, "Parse the header")
    repo.commit({"b.py": "1"}, "Parse the header, too")
    repo.commit({"a.py": None, "c.py": BODY}, "Parse the header in another place")
    store = HistoryStore()
    before = names(HistoryStore(), repo, "HEAD~2", "header")
    assert names(store, repo, "HEAD", "header") == ["c.py", "b.py"]
    assert names(store, repo, "HEAD~2", "header") == before == ["a.py"]


def test_search_history_without_words_or_past_finds_nothing(make_repo: MakeRepo) -> None:
    """Messages of nothing but common words, trailers that name people, an empty first commit."""
    repo = make_repo()
    repo.commit({}, "empty")
    repo.commit({"a.py": "1"}, "the\n\nChange-Id: parser")
    store = HistoryStore()
    assert names(store, repo, "HEAD", "parser the") == []
    assert names(store, repo, "HEAD~1", "empty") == []


def test_search_several_trees_rank_their_commits_together(make_repo: MakeRepo) -> None:
    """The words of all repositories count as one collection."""
    trees = {}
    for name, message in (("one", "Parse the header"), ("two", "Close the pager")):
        repo = make_repo(name)
        found = repo.commit({"a.py": "1"}, message)
        repo.commit({"b.py": "1"}, "Something else entirely")
        git_dir = repo.open().git_dir
        trees[name] = CorpusTree(git_dir=git_dir, commit=repo.head.commit, tree=found.tree)
    sets = CorpusReader(Corpus(trees=trees)).list_trees()
    tree = HistoryStore().open_tree(sets, k1=1.5, b=0.75)
    hits = [(hit.tree, hit.path) for hit in tree.search("pager of the header header")]
    assert hits == [("one", "a.py"), ("two", "a.py")]
