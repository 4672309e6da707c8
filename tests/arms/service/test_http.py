"""HTTP services as arms: real servers in processes of their own, well-behaved and not."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from coldrun.tasks.arms.arm_kind import open_session
from coldrun.tasks.arms.base import Session
from coldrun.tasks.arms.service.http_kind import HttpArm
from coldrun.tasks.lib.errors import ConfigError
from tests.services import SERVICE, Service, run_service
from tests.sessions import Lab, ask, is_gone, items


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for the tests that leave it alive."""
    with run_service(tmp_path_factory.mktemp("service")) as found:
        yield found


def make_arm(url: str, **values: Any) -> HttpArm:
    defaults: dict[str, Any] = {
        "name": "service",
        "kind": "http",
        "url": url,
        "items": "$.results[*].file",
        "timeout_seconds": 20,
    }
    return HttpArm(**{**defaults, **values})


def open_service(lab: Lab, url: str, **values: Any) -> Session:
    return open_session(lab.context(make_arm(url, **values)))


def test_question_is_posted_and_items_are_read(lab: Lab, service: Service) -> None:
    """The body's template is filled, numbers stay numbers, and the raw answer is kept."""
    body = {"query": "{query}", "k": "{k}", "options": {"id": "{id}", "seed": "{seed}"}}
    session = open_service(lab, f"{service.url}/search", body=body)
    reply = ask(session, "= [12]")
    assert reply.status == "answered"
    assert items(session, reply) == ("src/a.py", "src/b.py")
    sent = service.requests()[-1]
    assert (sent["path"], sent["headers"]["Content-Type"]) == ("/search", "application/json")
    assert sent["body"] == {"query": "= [12]", "k": 5, "options": {"id": "q1", "seed": 7}}
    (attempt,) = reply.attempts
    assert (attempt.number, attempt.status) == (1, "ok")
    assert attempt.seconds == reply.seconds > 0
    assert reply.events[0].returned_bytes == len(reply.raw)
    assert session.close().invalid == ()


LINES = {"items": None, "items_regex": r"^\d+\. (.+)$"}


@pytest.mark.parametrize(
    ("query", "values", "status", "found"),
    [
        ("none", {}, "abstained", ()),  # told apart from a body that is empty
        ("lines", LINES, "answered", ("src/b.py", "src/a.py")),
        ("whole", {}, "answered", ("src/b.py",)),  # without a length: JSON tells its own end
    ],
)
def test_other_honest_answers_are_read(
    lab: Lab, service: Service, query: str, values: Any, status: str, found: tuple[str, ...]
) -> None:
    """An empty list, lines as of a program, and JSON whose connection closes after it."""
    session = open_service(lab, service.url, **values)
    reply = ask(session, query)
    assert (reply.status, items(session, reply)) == (status, found)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("truncated", "the answer broke off: peer closed connection"),
        ("chunks", "the answer broke off: peer closed connection"),
        ("reset", "the answer broke off"),
        ("html", "malformed output: expected JSON, found '<html>Welcome to the gateway</html>'"),
        ("half", "malformed output: expected JSON, found"),
        ("nothing", "malformed output: expected JSON, found ''"),
        ("silent", "malformed output: expected JSON, found ''"),
        ("binary", "malformed output: the answer is not text"),
        ("limited", "status 429 Too Many Requests, to be tried again after '1': "),
        ("broken", "status 500 Internal Server Error: 'stack trace of nobody'"),
        ("moved", "status 302 Found, to http://127.0.0.1:{port}/elsewhere; if that is"),
        ("flood", "sent more than 1000000 bytes for one answer"),
        ("drip", "timed out after 0.7 s"),
        ("hang", "timed out after 0.7 s"),
        ("unready", "index not ready"),
    ],
)
def test_failure_of_the_service_is_infra(
    lab: Lab, service: Service, query: str, reason: str
) -> None:
    """Whatever is no whole answer is the tool's failure, asked once, and the next one is fine."""
    session = open_service(lab, service.url, timeout_seconds=0.7, max_output_bytes=1_000_000)
    before = len(service.requests())
    began = time.monotonic()
    reply = ask(session, query)
    assert time.monotonic() - began < 5
    assert reply.status == "infra"
    assert reason.replace("{port}", service.url.rpartition(":")[2]) in reply.reason
    (attempt,) = reply.attempts
    assert (attempt.status, attempt.reason) == ("infra", reply.reason)
    assert len(service.requests()) == before + 1
    assert ask(session, "a = 1").status == "answered"


def test_text_without_a_length_may_be_cut_off(lab: Lab, service: Service) -> None:
    """Lines that end with the connection could be the first half of the answer."""
    session = open_service(lab, service.url, items=None, items_regex="(.+)")
    assert "may have been cut off" in ask(session, "endless").reason


def test_service_that_is_not_there_is_infra(lab: Lab) -> None:
    """The session opens all the same."""
    reply = ask(open_service(lab, "http://127.0.0.1:9/search"))
    assert reply.status == "infra"
    assert reply.reason.startswith("cannot connect: ")


def test_service_killed_in_mid_answer_is_infra(lab: Lab, tmp_path: Path) -> None:
    """What had come is no answer; afterwards nobody is there."""
    with run_service(tmp_path / "mortal") as mortal:
        session = open_service(lab, mortal.url)
        assert ask(session, "a = 1").status == "answered"
        assert ask(session, "die").reason.startswith("the answer broke off: ")
        mortal.process.wait(timeout=30)  # its port stays open until it has ended
        assert ask(session, "a = 1").reason.startswith("cannot connect: ")


def test_refusal_is_never_tried_again_unless_declared(lab: Lab, service: Service) -> None:
    """A 429 with Retry-After stays a failure; with `retries` every try is an attempt."""
    assert ask(open_service(lab, service.url), "limited").status == "infra"
    session = open_service(lab, service.url, retries=1)
    reply = ask(session, "busy")
    assert reply.status == "answered"
    assert [attempt.status for attempt in reply.attempts] == ["infra", "ok"]
    assert "status 429" in reply.attempts[0].reason


def test_headers_are_filled_and_their_secrets_never_come_back(
    lab: Lab, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that repeats what it was sent does not put a secret into a record."""
    monkeypatch.setenv("MYTOOL_TOKEN", "tok-12345678")
    session = open_service(
        lab,
        service.url,
        env=("MYTOOL_TOKEN",),
        headers={"Authorization": "Bearer ${MYTOOL_TOKEN}", "X-Index": "main"},
    )
    echoed = ask(session, "echo")
    sent = service.requests()[-1]["headers"]
    assert (sent["Authorization"], sent["X-Index"]) == ("Bearer tok-12345678", "main")
    assert "Bearer …" in echoed.raw
    failed = ask(session, "broken")
    assert "stack trace of Bearer …" in failed.reason
    for reply in (echoed, failed):
        assert "tok-12345678" not in repr(reply)
    monkeypatch.setenv("MYTOOL_TOKEN", "tok-" * 100)
    long = open_service(
        lab, service.url, env=("MYTOOL_TOKEN",), headers={"Authorization": "${MYTOOL_TOKEN}"}
    )
    assert "tok-" not in repr(ask(long, "broken"))


def test_missing_variable_is_refused(
    lab: Lab, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its key a service would refuse every question; that is no score."""
    monkeypatch.delenv("MYTOOL_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="MYTOOL_TOKEN is not set"):
        open_service(
            lab, service.url, env=("MYTOOL_TOKEN",), headers={"X-Token": "${MYTOOL_TOKEN}"}
        )
    assert not list((lab.scratch / "sessions").glob("*/*"))


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_proxy_counts_only_where_it_is_declared(
    lab: Lab, service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """A proxy in the environment would decide where the answers come from."""
    with run_service(tmp_path / "proxy") as proxy:
        monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("NO_PROXY", "example.org")
        direct = ask(open_service(lab, f"{service.url}/x"), "a = 1")
        assert json.loads(direct.raw)["via"] == "/x"
        declared = ask(open_service(lab, f"{service.url}/x", env=(name,)), "a = 1")
        assert json.loads(declared.raw)["via"] == f"{service.url}/x"
        monkeypatch.setenv("NO_PROXY", "localhost, 127.0.0.1")
        outside = ask(open_service(lab, f"{service.url}/x", env=(name, "NO_PROXY")), "a = 1")
        assert json.loads(outside.raw)["via"] == "/x"


def test_certificates_count_only_where_they_are_declared(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A certificate that the environment trusts is not trusted by an arm that does not say so."""
    certificate = write_certificate(tmp_path)
    wrapped = SERVICE.replace(
        "    print(server.server_port",
        "    import ssl\n"
        "    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n"
        f"    context.load_cert_chain({str(certificate)!r})\n"
        "    server.socket = context.wrap_socket(server.socket, server_side=True)\n"
        "    print(server.server_port",
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with run_service(tmp_path / "secure", wrapped) as secure:
        url = secure.url.replace("http://127.0.0.1", "https://localhost")
        reason = ask(open_service(lab, url), "a = 1").reason
        assert "CERTIFICATE_VERIFY_FAILED" in reason
        trusting = open_service(lab, url, env=("SSL_CERT_FILE",))
        assert items(trusting, ask(trusting, "a = 1")) == ("src/a.py",)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    with pytest.raises(ConfigError, match="cannot be read"):
        open_service(lab, url, env=("SSL_CERT_FILE",))


def write_certificate(folder: Path) -> Path:
    """A certificate for localhost that vouches for itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    path = folder / "localhost.pem"
    path.write_bytes(certificate.public_bytes(pem) + key.private_bytes(pem, pkcs8, plain))
    return path


LISTENING = {"argv": ("{python}", "service.py", "{port}"), "startup_timeout_seconds": 20}


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("die", "the process ended with exit code 5"),
        ("hang", "timed out after 1.5 s"),
    ],
)
def test_server_of_its_own_is_started_again_and_ended(lab: Lab, query: str, reason: str) -> None:
    """With `argv` the service runs in the session's folders, on a port that was free; one that is
    dead or stuck with a question does not answer the next."""
    lab.write("service.py", SERVICE)
    url = "http://127.0.0.1:{port}/search"
    session: Any = open_service(lab, url, timeout_seconds=1.5, **LISTENING)
    assert session.start.startup_seconds > 0
    assert items(session, ask(session, "a = 1")) == ("src/a.py",)
    first = session.driver._server.process.pid
    assert ask(session, query).reason == reason
    assert is_gone(first)
    assert items(session, ask(session, "a = 1")) == ("src/a.py",)
    second = session.driver._server.process.pid
    assert session.close().restarts == 1
    assert is_gone(second)


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (("{python}", "-c", "import sys; sys.exit(6)", "{port}"), "exit code 6"),
        (("no-such-server", "{port}"), "'no-such-server' cannot be started"),
        (("sleep", "60", "#{port}"), "exit code 1"),
        (("{python}", "-c", "import time; time.sleep(60)", "{port}"), "no process of it listens"),
    ],
)
def test_server_that_does_not_come_up_gives_infra(
    lab: Lab, argv: tuple[str, ...], reason: str
) -> None:
    """A server that cannot be used is a failure of its answers, with the reason."""
    session = open_service(lab, "http://127.0.0.1:{port}/", argv=argv, startup_timeout_seconds=0.8)
    reply = ask(session)
    assert reply.status == "infra"
    assert reason in reply.reason
    assert session.close().invalid == ()
