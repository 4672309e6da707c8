"""The program that a Prefect server runs in, started by its path and never imported.

It listens on a socket that it was given, so that no port can be lost between choosing and using
it, and it watches a pipe whose other end only coldrun holds: when coldrun is gone, however it
went, the pipe ends, and so does this process. The watch begins before the slow imports do.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import select
import shutil
import socket
import sqlite3
import threading
from pathlib import Path


def main() -> None:
    """Serve until told to stop, or until the parent is gone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen-fd", type=int, required=True)
    parser.add_argument("--home", type=Path, required=True, help="the folder of the database")
    parser.add_argument("--parent", type=int, help="end with this process, and remove home")
    parser.add_argument("--guard-fd", type=int, help="a pipe that the parent holds")
    parser.add_argument("--template", type=Path, help="leave a copy of the new database here")
    arguments = parser.parse_args()
    if arguments.parent is not None:
        threading.Thread(
            target=_vanish_with_parent,
            args=(arguments.parent, arguments.guard_fd, arguments.home),
            daemon=True,
        ).start()
    _serve(socket.socket(fileno=arguments.listen_fd), arguments.home, arguments.template)


def _vanish_with_parent(parent: int, guard_fd: int, home: Path) -> None:
    """Wait for the parent's end, then take the folder and this process away.

    The pipe ends at once with the parent, unless a forked child of the parent's holds it too: so
    the parent is looked at as well. Nothing is shut down in order: nobody is left who could read
    the database.
    """
    while os.getppid() == parent and not select.select([guard_fd], [], [], 1.0)[0]:
        pass
    shutil.rmtree(home, ignore_errors=True)
    os._exit(0)


def _serve(listener: socket.socket, home: Path, template: Path | None) -> None:
    # a tenth of the start is the collector walking over modules that stay anyway
    gc.disable()
    import uvicorn
    from prefect.server.api.server import create_app

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            gc.enable()
            gc.freeze()
            if self.started and template is not None:
                _copy_database(home / "prefect.db", template)

    config = uvicorn.Config(create_app(), log_level="warning", lifespan="on", access_log=False)
    Server(config).run(sockets=[listener])


def _copy_database(database: Path, template: Path) -> None:
    """Keep the migrated, still empty database: it saves later servers the migrations."""
    partial = template.with_name(f"{template.name}.{os.getpid()}")
    # only speed is lost when this fails, for example on a full disk
    with contextlib.suppress(OSError, sqlite3.Error):
        with contextlib.closing(sqlite3.connect(database)) as connection:
            connection.execute("VACUUM INTO ?", (str(partial),))
        partial.replace(template)


if __name__ == "__main__":
    main()
