"""Starts a server in the sandbox, and leads a socket in a mounted folder to the port it listens on.

It is run as text by an interpreter that has the standard library alone.

Arguments: the socket's path, the port, and the server's command line.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path


def pump(source: socket.socket, target: socket.socket) -> None:
    """Copy all that comes, and its end."""
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        target.close()


def main() -> None:
    """Relay until the server ends; its exit code is this program's."""
    place, port, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    server = subprocess.Popen(command)
    threading.Thread(target=lambda: os._exit(server.wait() % 256), daemon=True).start()
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            time.sleep(0.02)
    os.chdir(Path(place).parent)
    name = Path(place).name
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name + ".new")
    listener.listen(64)
    Path(name + ".new").rename(name)
    while True:
        outside, _ = listener.accept()
        try:
            inside = socket.create_connection(("127.0.0.1", port), 10)
        except OSError:
            outside.close()
            continue
        for pair in ((outside, inside), (inside, outside)):
            threading.Thread(target=pump, args=pair, daemon=True).start()


if __name__ == "__main__":
    main()
