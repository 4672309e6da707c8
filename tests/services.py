"""Small HTTP services as processes of their own, and how the tests reach them."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVICE = r"""
import http.server, json, os, re, socket, sys, time

requests = []
FILES = {"a = 1": "src/a.py", "b = 2": "src/b.py"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self.give(json.dumps(requests))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        data = json.loads(body)
        requests.append({"path": self.path, "headers": dict(self.headers), "body": data})
        query = data.get("query") or ""
        act = getattr(self, "on_" + query.split(" ")[0], None)
        if act is not None:
            act()
        else:
            self.give(json.dumps(answer(self, data)))

    def give(self, text, status=200, kind="application/json", **headers):
        data = text if isinstance(text, bytes) else text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def begin(self, *headers):
        self.send_response(200)
        for header in headers:
            self.send_header(*header)
        self.end_headers()
        self.close_connection = True

    def on_hang(self):
        time.sleep(60)

    def on_drip(self):
        self.begin(("Content-Length", "10000"))
        for _ in range(600):
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(0.1)

    def on_truncated(self):
        self.begin(("Content-Length", "1000"))
        self.wfile.write(b'{"results": [')

    def on_chunks(self):
        self.begin(("Transfer-Encoding", "chunked"))
        self.wfile.write(b'd\r\n{"results": [\r\n')

    def on_die(self):
        self.begin(("Content-Length", "1000"))
        self.wfile.write(b'{"results": [')
        self.wfile.flush()
        os._exit(5)

    def on_reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.connection.close()
        self.close_connection = True

    def on_endless(self):
        self.begin()
        self.wfile.write(b"src/a.py\nsrc/")

    def on_whole(self):
        self.begin()
        self.wfile.write(b'{"results": [{"file": "src/b.py"}]}')

    def on_html(self):
        self.give("<html>Welcome to the gateway</html>", kind="text/html")

    def on_half(self):
        self.give('{"results": [{"file": "src/a.py"}')

    def on_lines(self):
        self.give("1. src/b.py\n2. src/a.py\n", kind="text/plain")

    def on_binary(self):
        self.give(b"\xff\xfe{}")

    def on_nothing(self):
        self.give("", status=204)

    def on_silent(self):
        self.give("")

    def on_none(self):
        self.give('{"results": []}')

    def on_unready(self):
        self.give('{"results": [], "message": "index not ready"}')

    def on_limited(self):
        self.give('{"error": "slow down"}', status=429, Retry_After="1")

    def on_broken(self):
        self.give("stack trace of " + self.headers.get("Authorization", "nobody"), status=500)

    def on_moved(self):
        self.give("", status=302, Location="/elsewhere?token=s3cret")

    def on_flood(self):
        self.give("x" * 3_000_000)

    def on_echo(self):
        self.give(json.dumps({"results": [], "note": dict(self.headers)}))

    def on_busy(self):
        first = sum(item["body"].get("query") == "busy" for item in requests) == 1
        if first:
            self.on_limited()
        else:
            self.give('{"results": [{"file": "src/a.py"}]}')


def answer(handler, data):
    found = [{"file": name} for text, name in FILES.items() if re.search(data["query"], text)]
    return {"results": found[: data.get("k", 5)], "via": handler.path}


def main():
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
"""
"""A search service that finds two files, and misbehaves when the first word of a query says so."""


@dataclass(frozen=True, slots=True)
class Service:
    """A running service."""

    process: subprocess.Popen[str]
    url: str

    def requests(self) -> list[dict[str, Any]]:
        """What it was asked so far."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url) as response:
            found: list[dict[str, Any]] = json.load(response)
            return found


@contextmanager
def run_service(
    folder: Path, text: str = SERVICE, *, name: str = "service.py"
) -> Iterator[Service]:
    """Start a service that prints its port first; it is killed in the end."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield Service(process, f"http://127.0.0.1:{int(process.stdout.readline())}")
        finally:
            process.kill()
