"""A run leaves no secret behind: not in the warehouse, scratch, Prefect's database or a report."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conftest import RepositoryBuilder
from tests.evaluations import EvaluationLab

TOKEN, REGISTRY, PASSWORD = "s3same-open+token/42", "registry-t0ken=9", "pass-w0rd!7"
LEAKS = [TOKEN, REGISTRY, PASSWORD, base64.b64encode(f"Bearer {TOKEN}".encode()).decode()[9:-3]]

ARM = """
import os

secret = os.environ["TOOL_TOKEN"]
print("starting with", secret, file=sys.stderr)

def answer(query):
    print("asked with", secret, file=sys.stderr)
    number = int(query.split("item-")[1].split()[0])
    if number == 1:
        raise ValueError(f"refused {secret}")
    if number == 2:
        print("no JSON, but " + secret, flush=True)
    return {"items": [{"path": f"item-{number}"}], "degraded": ["without " + secret],
            "trajectory": base64.b64encode(b"Bearer " + secret.encode()).decode()}
"""

CONFIG = """\
[panel]
kind = "jsonl"
file = "tasks.jsonl"
answer = "set"
[sample]
rule = "all"
[run]
max_infra_share = 0.9
[product]
repo = "{url}"
commit = "main"
setup = ["sh", "-c", "echo $REGISTRY; echo $REGISTRY > installed.txt; cp installed.txt copy"]
setup_env = ["REGISTRY"]
[[arm]]
name = "reader"
kind = "command"
argv = ["{python}", "{{adapter}}"]
adapter = "arm.py"
product = false
env = ["TOOL_TOKEN"]
[[arm]]
name = "service"
kind = "http"
url = "{service}/ask"
body = {{ q = "{{query}}" }}
items = "$.items[*]"
headers = {{ Authorization = "Bearer ${{TOOL_TOKEN}}" }}
env = ["TOOL_TOKEN"]
"""


class Guarded(SimpleHTTPRequestHandler):
    """Git's dumb protocol for whoever knows the password, and an endpoint that tells all."""

    root = ""

    def do_GET(self) -> None:
        known = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {known}":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.end_headers()
            return
        self.directory = self.root
        super().do_GET()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        told = {"items": ["item-3"], "you": self.headers["Authorization"]}
        data = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[str]:
    product = RepositoryBuilder(tmp_path / "product")
    product.commit("first", {"a.txt": "a\n"})
    served = tmp_path / "served"
    bare = served / "product.git"
    subprocess.run(["git", "clone", "-q", "--bare", product.path, bare], check=True)
    subprocess.run(["git", "update-server-info"], cwd=bare, check=True)
    Guarded.root = str(served)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Guarded)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.soak
@pytest.mark.prefect
def test_nothing_that_a_run_leaves_holds_a_secret(tmp_path: Path, guarded: str) -> None:
    lab = EvaluationLab(tmp_path / "lab")
    url = f"http://me:{PASSWORD}@{guarded}/product.git"
    lab.write(CONFIG.format(url=url, service=f"http://{guarded}", python="{python}"))
    lab.write_arm("import base64\n" + ARM)
    lab.write_tasks(4)
    lab.freeze()
    config = lab.config.parent.rename(tmp_path / "configuration") / lab.config.name
    variables = {
        "TOOL_TOKEN": TOKEN,
        "REGISTRY": REGISTRY,
        "COLDRUN_STATE": str(lab.root / "state"),
    }
    variables["XDG_CONFIG_HOME"] = variables["XDG_CACHE_HOME"] = str(lab.root / "user")
    printed = ""

    def call(*words: str | Path) -> int:
        nonlocal printed
        done = lab.coldrun(*words, env=variables)
        printed += f"$ {words[0]}\n{done.stdout}{done.stderr}"
        return done.returncode

    try:
        assert call("server", "start") == 0, printed
        json_file, markdown = lab.root / "r.json", lab.root / "r.md"
        call("run", config, "--json", json_file, "--markdown", markdown)
        assert "without …" in json_file.read_text(), printed
        for words in (["report", "last", "--full"], ["show", "last"], ["doctor"], ["runs"]):
            assert call(*words) in (0, 1, 2, 3, 4, 5), printed
        call("show", "last", "--task", "t0001")
        broken = config.parent / "broken.toml"
        broken.write_text(config.read_text().replace("product.git", "missing.git"))
        broken.with_suffix(".lock").write_bytes(config.with_suffix(".lock").read_bytes())
        broken.with_name("broken.panel.jsonl").write_bytes(
            config.with_name("toy.panel.jsonl").read_bytes()
        )
        call("run", broken)
        call("try", f"http://me:{PASSWORD}@{guarded}/product.git")
        call("mine", f"http://me:{PASSWORD}@{guarded}/none.git")
    finally:
        call("server", "stop")
    sys.stdout.write(printed)
    assert "executed" in printed
    (lab.root / "printed.txt").write_text(printed)
    found = [
        f"{path.relative_to(lab.root)}: {leak}"
        for path in sorted(lab.root.rglob("*"))
        if path.is_file() and not path.is_symlink()
        for leak in LEAKS
        if leak.encode() in content(path) or json.dumps(leak)[1:-1].encode() in content(path)
    ]
    made_by_set_up = ("installed.txt", "copy")
    assert [line for line in found if not line.split(":")[0].endswith(made_by_set_up)] == []


def content(path: Path) -> bytes:
    if path.suffix == ".parquet":
        return json.dumps(pq.read_table(path).to_pylist(), default=str, ensure_ascii=False).encode()
    return path.read_bytes()
