"""Language models as arms: a real server that plays an OpenAI-compatible endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.arms.base import Session
from coldrun.tasks.arms.parse import parse_answer
from coldrun.tasks.arms.service.chat_driver import cut_listing
from coldrun.tasks.arms.service.chat_kind import ChatArm
from coldrun.tasks.arms.service.chat_protocol import read_completion_usage
from coldrun.tasks.lib.errors import ConfigError
from tests.services import SERVICE, Service, run_service
from tests.sessions import Lab, ask, items

MODEL = (
    SERVICE
    + r"""
LONG = "length"
SAYS = {
    "fenced": 'Sure:\n```json\n{"items": ["src/b.py", "src/a.py"]}\n```\n',
    "bare": "src/a.py\nsrc/b.py\n",
    "prose": "I would look into the file src/a.py first.",
    "empty": "",
    "unsure": "I do not know. Maybe src/a.py?",
    "nowhere": "No matching files were found.",
    "cut": '{"items": ["src/a.py"',
    "late": '{"items": ["src/a.py"]}',
    "parts": [{"type": "text", "text": '{"items": '}, {"type": "text", "text": '["src/b.py"]}'}],
    "unready": "index not ready",
}


class Model(Handler):
    def do_POST(self):
        data = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = data["messages"][0 if data["messages"][0]["role"] == "user" else 1]["content"]
        calls = [r for r in requests if r["body"]["messages"][-1]["content"] == said]
        requests.append({"path": self.path, "headers": dict(self.headers), "body": data})
        word = said.split()[-1]
        act = getattr(self, "on_" + word, None)
        if act is not None:
            return act()
        if word == "second" and not calls and len(data["messages"]) < 3:
            word = "empty"
        if word == "worse" and calls:
            return self.on_limited()
        self.complete("empty" if word == "worse" else word)

    def complete(self, word):
        content = SAYS.get(word, '{"items": ["src/a.py"]}')
        self.give(json.dumps({
            "id": "c1",
            "model": "drift-" + str(len(requests)) if word == "drift" else "tiny-2026-05-01",
            "choices": [{
                "message": {"role": "assistant", "content": content},
                "finish_reason": LONG if word in ("cut", "late") else "stop",
            }],
            "usage": {
                "prompt_tokens": 120,
                "completion_tokens": 11,
                "prompt_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 4},
            },
        }))

    def on_wrong(self):
        self.give(json.dumps({"error": {"message": "no such model"}}))

    def on_odd(self):
        self.give(json.dumps({"choices": [], "model": "tiny", "usage": {"prompt_tokens": 9}}))


Handler = Model
main()
"""
).replace('if __name__ == "__main__":\n    main()\n', "")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One endpoint for all tests."""
    with run_service(tmp_path_factory.mktemp("model"), MODEL) as found:
        yield found


def open_model(lab: Lab, url: str, **values: Any) -> Session:
    defaults: dict[str, Any] = {
        "name": "direct",
        "kind": "chat",
        "url": f"{url}/v1",
        "model": "tiny",
        "prompt": "Which files? {query}",
        "timeout_seconds": 20,
    }
    return open_session(lab.context(ChatArm(**{**defaults, **values})))


def test_direct_call_is_one_attempt_with_its_tokens(
    lab: Lab, model: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cached tokens are kinds of their own; the server's name of the model is the identity."""
    monkeypatch.setenv("TINY_KEY", "sk-12345678")
    session = open_model(
        lab,
        model.url,
        system="You rank at most {k} files.",
        api_key_env="TINY_KEY",
        parameters={"temperature": 0, "seed": "{seed}", "max_completion_tokens": 300},
    )
    reply = ask(session, "plain")
    assert items(session, reply) == ("src/a.py",)
    sent = model.requests()[-1]
    assert sent["path"] == "/v1/chat/completions"
    assert sent["headers"]["Authorization"] == "Bearer sk-12345678"
    assert sent["body"] == {
        "model": "tiny",
        "messages": [
            {"role": "system", "content": "You rank at most 5 files."},
            {"role": "user", "content": "Which files? plain"},
        ],
        "temperature": 0,
        "seed": 7,
        "max_completion_tokens": 300,
    }
    (attempt,) = reply.attempts
    assert (attempt.status, attempt.model) == ("ok", "tiny-2026-05-01")
    assert (attempt.input_tokens, attempt.output_tokens) == (16, 11)
    assert (attempt.cache_read_tokens, attempt.cache_write_tokens) == (100, 4)
    assert (reply.stop_reason, reply.degraded, reply.trajectory) == ("stop", (), None)
    assert session.start.name == "tiny-2026-05-01"
    assert "sk-12345678" not in repr(reply)
    assert session.close().warnings == ()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("fenced", ("src/b.py", "src/a.py")),
        ("bare", ("src/a.py", "src/b.py")),
        ("parts", ("src/b.py",)),
    ],
)
def test_items_are_read_from_what_models_write(
    lab: Lab, model: Service, query: str, found: tuple[str, ...]
) -> None:
    """JSON in a fenced block, one path a line, a message in parts."""
    session = open_model(lab, model.url)
    assert items(session, ask(session, query)) == found


def test_prose_is_a_failure_and_nothing_found_an_abstention(lab: Lab, model: Service) -> None:
    """One sentence with a path in it is not one path a line."""
    session = open_model(lab, model.url)
    reply = ask(session, "prose")
    parsed = parse_answer(reply.raw, session.context.arm, answer="ranking", corpus_dir=None)  # type: ignore[attr-defined]
    assert "prose, not one path a line" in str(parsed.problem)
    assert ask(session, "nowhere").status == "abstained"
    assert ask(session, "empty").status == "abstained"


def test_answer_that_was_cut_off_is_flagged(lab: Lab, model: Service) -> None:
    """Readable, it is degraded; unreadable, it is a failure."""
    session = open_model(lab, model.url)
    late = ask(session, "late")
    assert (late.status, late.stop_reason, late.degraded) == (
        "answered",
        "length",
        ("stopped: length",),
    )
    cut = ask(session, "cut")
    assert (cut.status, cut.attempts[0].output_tokens) == ("infra", 11)
    assert "cut off at the limit of tokens" in cut.reason


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("wrong", 'malformed output: the endpoint reports an error: \'{"message": "no such'),
        ("odd", "malformed output: expected `choices`"),
        ("html", "malformed output: expected a JSON object, found '<html>"),
        ("limited", "status 429 Too Many Requests, to be tried again after '1'"),
        ("truncated", "the answer broke off"),
        ("hang", "timed out after 0.7 s"),
        ("unready", "index not ready"),
    ],
)
def test_failure_of_the_endpoint_is_infra(
    lab: Lab, model: Service, query: str, reason: str
) -> None:
    """It is asked once, even where a failure signal would be followed up."""
    session = open_model(lab, model.url, retry="once", timeout_seconds=0.7)
    before = len(model.requests())
    reply = ask(session, query)
    assert reply.status == "infra"
    assert reason in reply.reason
    assert len(reply.attempts) == len(model.requests()) - before == 1
    if query == "odd":
        assert (reply.attempts[0].model, reply.attempts[0].input_tokens) == ("tiny", 9)


def test_empty_answer_is_asked_for_once_more(lab: Lab, model: Service) -> None:
    """Both calls are attempts that were paid for; another seed goes with the second."""
    session = open_model(lab, model.url, retry="once", parameters={"seed": "{seed}"})
    reply = ask(session, "second")
    assert items(session, reply) == ("src/a.py",)
    first, second = reply.attempts
    assert (first.number, first.status) == (1, "ok")
    assert first.reason == "failure signal: the answer is empty"
    assert (second.number, second.status, second.reason) == (2, "ok", None)
    assert first.input_tokens == second.input_tokens == 16
    assert reply.seconds == first.seconds + second.seconds
    assert [item["body"]["seed"] for item in model.requests()[-2:]] == [7, 8]
    (step,) = json.loads(reply.trajectory)
    assert json.loads(step["raw"])["choices"][0]["message"]["content"] == ""


def test_failure_signal_is_followed_up_once_with_the_declared_words(
    lab: Lab, model: Service
) -> None:
    """The model sees its first answer and the follow-up; a second signal is not acted on."""
    session = open_model(
        lab,
        model.url,
        retry="once",
        failure_signal="do not know",
        retry_prompt="Answer with paths only.",
        items_regex=r"src/\w+\.py",
    )
    reply = ask(session, "unsure")
    assert len(reply.attempts) == 2
    assert reply.attempts[0].reason == "failure signal: the answer says 'do not know'"
    assert (reply.status, items(session, reply)) == ("answered", ("src/a.py",))
    roles = [message["role"] for message in model.requests()[-1]["body"]["messages"]]
    assert roles == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("query", "retry", "statuses", "reason"),
    [
        # whoever deployed the model has to read the answer as well
        ("prose", "once", ["ok", "ok"], "failure signal: the output is prose"),
        # the direct call is not given a second chance
        ("second", "none", ["ok"], ""),
        # a refusal of the second call is no answer, and the first one is still paid for
        ("worse", "once", ["ok", "infra"], "failure signal: the answer is empty"),
    ],
)
def test_every_call_is_an_attempt_that_was_paid_for(
    lab: Lab, model: Service, query: str, retry: str, statuses: list[str], reason: str
) -> None:
    """There is a second one where the arm says so, and none after it."""
    reply = ask(open_model(lab, model.url, retry=retry), query)
    assert [attempt.status for attempt in reply.attempts] == statuses
    assert (reply.attempts[0].reason or "").startswith(reason)
    assert reply.attempts[0].input_tokens == 16
    assert (reply.status == "infra") is (statuses[-1] == "infra")


def test_corpus_listing_fills_the_prompt_up_to_its_limit(lab: Lab, model: Service) -> None:
    """The paths of the session's corpus, one a line."""
    session = open_model(lab, model.url, prompt="{corpus_listing}\n\n{query}")
    assert ask(session, "plain").status == "answered"
    (message,) = model.requests()[-1]["body"]["messages"]
    assert message["content"] == "src/a.py\nsrc/b.py\nx.md\n\nplain"
    assert session.close().warnings == ()


def test_listing_that_was_cut_is_a_warning(lab: Lab, model: Service) -> None:
    """A model cannot name what it was not shown, so the reader is told."""
    files: dict[str, str | None] = {f"long/{'x' * 40}{number}.py": "" for number in range(50)}
    lab.commit_files("corpus", {"a.py": "", **files})
    lab.git("corpus", "tag", "base")
    session = open_model(lab, model.url, prompt="{corpus_listing} {query}", listing_bytes=1000)
    ask(session, "plain")
    (warning,) = session.close().warnings
    assert warning.startswith("was shown ")
    assert "of the corpus's 51 paths; listing_bytes = 1000" in warning


def test_another_model_in_mid_session_is_a_warning(lab: Lab, model: Service) -> None:
    """An alias that moved while it was asked is two systems in one score."""
    session = open_model(lab, model.url)
    ask(session, "plain")
    ask(session, "drift")
    (warning,) = session.close().warnings
    assert warning.startswith("was answered by 2 models in one session: tiny-2026-05-01, drift-")


def test_missing_key_is_refused(lab: Lab, model: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is asked."""
    monkeypatch.delenv("TINY_KEY", raising=False)
    with pytest.raises(ConfigError, match="TINY_KEY is not set"):
        open_model(lab, model.url, api_key_env="TINY_KEY")


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2}, (10, 2, None, None)),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 4}, (6, None, 4, None)),
        (
            {"prompt_tokens": 10, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 9},
            (10, None, 50, 9),
        ),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 0}}, (10, None, 0, None)),
        ({"prompt_tokens": -1, "completion_tokens": "2"}, (None, None, None, None)),
        ("none", (None, None, None, None)),
    ],
)
def test_usage_is_read_by_kind(usage: Any, expected: tuple[int | None, ...]) -> None:
    """Servers name and count cached tokens in several ways; what is no count is not known."""
    found = read_completion_usage({"model": "m", "usage": usage})
    assert (
        found.input_tokens,
        found.output_tokens,
        found.cache_read_tokens,
        found.cache_write_tokens,
    ) == expected


@given(st.lists(st.text(alphabet="abcdé/", min_size=1)), st.integers(1, 60))
def test_listing_is_whole_lines_within_its_limit(paths: list[str], limit: int) -> None:
    """It is a beginning of the list; one more line would not have fitted."""
    text, left_out = cut_listing(paths, limit=limit)
    kept = paths[: len(paths) - left_out]
    assert text == "\n".join(kept)
    assert len(text.encode()) <= limit
    if left_out:
        assert len("\n".join(paths[: len(kept) + 1]).encode()) + 1 > limit
