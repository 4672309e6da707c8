"""Running git so that only the repository and the arguments decide what it says.

GitPython's `Git` command object runs the processes and streams their output. The environment is
fixed: no configuration of the user's or the system's, no replace refs or grafts, no locale, no
fetching behind one's back. Only transfers over the network, and what asks for the user's own
settings, see the user's configuration, where credentials, proxies and rewritten addresses live.
"""

from __future__ import annotations

import getpass
import io
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self, cast

import psutil

from coldrun.tasks.lib.errors import RepositoryError

if TYPE_CHECKING:
    from git.cmd import Git

_EMPTY_TREES = (
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
)
"""The empty tree, which every repository has, by SHA-1 and by SHA-256."""

_FIXED_ENVIRONMENT = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LANGUAGE": "C",
    "LC_ALL": "C",
    "TZ": "UTC",
}

_USER_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "LANGUAGE": "C", "LC_ALL": "C"}

_USER_VARIABLES = (
    "GIT_ASKPASS",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_KEY_",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_VALUE_",
    "GIT_HTTP_",
    "GIT_PROXY_",
    "GIT_SSH",
    "GIT_SSL_",
)
"""What a transfer may know from the caller: how to reach and to authenticate, nothing else."""

_CHUNK_BYTES = 1 << 18
_STDERR_LINES = 20


def repository_options(git_dir: Path, object_format_hex_length: int = 40) -> tuple[str, ...]:
    """Options, before the subcommand, that fix which repository is read and how.

    `--bare` keeps git from looking at a work tree, whose attributes would otherwise decide which
    files rename detection takes for text.
    """
    settings = (
        f"core.attributesFile={os.devnull}",
        f"attr.tree={_EMPTY_TREES[0 if object_format_hex_length == 40 else 1]}",
        f"diff.orderFile={os.devnull}",
        "log.showSignature=false",
    )
    said = (word for setting in settings for word in ("-c", setting))
    return ("--no-pager", "--bare", f"--git-dir={git_dir}", *said)


class GitStream:
    """A running git process, read while it runs. Use it as a context manager.

    Leaving the block early ends the process; leaving it after the last byte checks that git
    succeeded.

    Raises:
        RepositoryError: git failed; the message carries what git said.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        directory: Path | None = None,
        stdin: Iterable[bytes] | None = None,
        as_user: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._arguments = tuple(arguments)
        variables = {
            **(_USER_ENVIRONMENT if as_user else _FIXED_ENVIRONMENT),
            **(environment or {}),
        }
        git = _git(directory)
        with _held_signals() as held:
            process = git.execute(
                [*_unset_prefix(variables, as_user=as_user), "git", *arguments],
                istream=None if stdin is None else subprocess.PIPE,
                as_process=True,
                env=variables,
            )
            # The wrapper ends the process when it is collected; the process itself is read.
            self._wrapper = process
            self._process = cast("subprocess.Popen[bytes]", process.proc)
            self._stderr: deque[bytes] = deque(maxlen=_STDERR_LINES)
            self._threads = [threading.Thread(target=self._drain_stderr, daemon=True)]
            if stdin is not None:
                feeder = threading.Thread(target=self._feed, args=(stdin,), daemon=True)
                self._threads.append(feeder)
            for thread in self._threads:
                thread.start()
        if held:
            self.close()
            signal.raise_signal(held[0])

    @property
    def stdout(self) -> io.BufferedReader:
        """The output, buffered."""
        return cast("io.BufferedReader", self._process.stdout)

    def chunks(self) -> Iterator[bytes]:
        """The output in pieces as they arrive."""
        read = self.stdout.read1
        while chunk := read(_CHUNK_BYTES):
            yield chunk

    def finish(self) -> int:
        """Wait for the end and return git's exit status."""
        status = self._process.wait()
        for thread in self._threads:
            thread.join()
        return status

    def kill(self) -> None:
        """End the process and its helpers at once, from any thread."""
        helpers: list[psutil.Process] = []
        with suppress(psutil.Error):
            helpers = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        for helper in helpers:
            with suppress(psutil.Error):
                helper.kill()

    def close(self) -> int:
        """End the process, if it still runs, and return its exit status."""
        if self._process.poll() is None:
            self.kill()
        status = self.finish()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        return status

    @property
    def complaint(self) -> str:
        """What git wrote to stderr, in one line, without its prefixes."""
        lines = [line.decode("utf-8", "replace").strip() for line in self._stderr]
        told = [line for line in lines if line and not line.startswith("hint:")]
        return "; ".join(line.removeprefix("fatal: ").removeprefix("error: ") for line in told)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        is_read_to_the_end = kind is None and not self.stdout.read1(1)
        if is_read_to_the_end:
            self.finish()
        status = self.close()
        if is_read_to_the_end and status != 0:
            raise RepositoryError(describe_failure(self._arguments, status, self.complaint))

    def _drain_stderr(self) -> None:
        self._stderr.extend(cast("IO[bytes]", self._process.stderr))

    def _feed(self, pieces: Iterable[bytes]) -> None:
        pipe = cast("IO[bytes]", self._process.stdin)
        try:
            with pipe:
                pipe.writelines(pieces)
        except BrokenPipeError:
            return  # The reader left early, or git failed and its status says so.


@contextmanager
def _held_signals() -> Iterator[list[signal.Signals]]:
    """Keep signals that would interrupt the main thread back, in a list, while a process starts:
    one that nothing knows yet would outlive the command."""
    held: list[signal.Signals] = []
    if threading.current_thread() is not threading.main_thread():
        yield held
        return
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.getsignal(number) for number in ends}
    ours = [number for number, handler in handlers.items() if callable(handler)]
    for number in ours:
        signal.signal(number, lambda number, _: held.append(signal.Signals(number)))
    try:
        yield held
    finally:
        for number in ours:
            signal.signal(number, handlers[number])


def run_git(
    arguments: Sequence[str],
    *,
    directory: Path | None = None,
    as_user: bool = False,
    environment: Mapping[str, str] | None = None,
    timeout_seconds: float | None = None,
    stdin: Iterable[bytes] | None = None,
) -> tuple[int, bytes, str]:
    """Run git to its end; gives the status, the output, and what it wrote to stderr in one line."""
    stream = GitStream(
        arguments, directory=directory, as_user=as_user, environment=environment, stdin=stdin
    )
    timer = None if timeout_seconds is None else threading.Timer(timeout_seconds, stream.kill)
    try:
        if timer is not None:
            timer.start()
        output = stream.stdout.read()
        stream.finish()
    finally:
        if timer is not None:
            timer.cancel()
        status = stream.close()
    if timer is not None and status == -signal.SIGKILL:
        return status, output, f"it was ended after {timeout_seconds:g} s"
    return status, output, stream.complaint


def read_git(arguments: Sequence[str], **options: Any) -> bytes:
    """The output of a git command, with the options of `run_git`."""
    status, output, complaint = run_git(arguments, **options)
    if status != 0:
        raise RepositoryError(describe_failure(arguments, status, complaint))
    return output


def find_user(folder: Path) -> str:
    """Who is at work: name and address as git has them in `folder`, else the user's account."""
    found = []
    for key in ("user.name", "user.email"):
        with suppress(RepositoryError, OSError):
            _, output, _ = run_git(["config", "--get", key], directory=folder, as_user=True)
            found.append(output.decode("utf-8", "replace").strip())
    name, address = found if len(found) == 2 else ("", "")
    if name:
        return f"{name} <{address}>" if address else name
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return address or "unknown"


def describe_failure(arguments: Sequence[str], status: int, complaint: str) -> str:
    """One line for a git command that failed."""
    commands = [word for word in arguments if not word.startswith("-") and "=" not in word]
    name = commands[0] if commands else "command"
    return f"git {name} failed with status {status}: {complaint or 'git gave no reason'}"


def _git(directory: Path | None) -> Git:
    try:
        from git.cmd import Git
    except ImportError as error:  # GitPython looks for the program while it is imported.
        raise RepositoryError(f"git cannot be run; install git 2.32 or newer ({error})") from None
    return Git(directory)


def _unset_prefix(kept: Iterable[str], *, as_user: bool) -> list[str]:
    """A prefix that hides the caller's GIT_ variables: empty ones would not be the same."""
    passed = tuple(kept) + (_USER_VARIABLES if as_user else ())
    hidden = [
        name
        for name in sorted(os.environ)
        if name.startswith("GIT_") and not name.startswith(passed)
    ]
    return ["env", *(word for name in hidden for word in ("-u", name))] if hidden else []
