"""`coldrun import FORMAT SOURCE…`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coldrun.cli.options import Outputs, report_options

if TYPE_CHECKING:
    from coldrun.tasks.mine.importers import Imported

FORMATS = ("swe-bench", "loc-bench", "trec", "beir", "inspect")
CONFIG = """\
# Imported from {format}: {tasks} tasks. Freeze it, then add [[arm]] tables of your own.
[panel]
kind = "jsonl"
file = {file}
{repo}
[measure]
primary = "hit@5"
also = ["hit@1", "mrr@10"]
"""


@click.command(
    "import",
    epilog="""\b
Examples:
  coldrun import swe-bench test.parquet --output panels/     one panel a repository
  coldrun import trec topics.txt qrels.txt --output panels/
  coldrun import beir datasets/scifact --output panels/
  coldrun import inspect logs/run.eval --output panels/
""",
)
@click.argument("format_", metavar="FORMAT", type=click.Choice(FORMATS))
@click.argument(
    "sources", metavar="SOURCE…", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--output",
    "folder",
    metavar="FOLDER",
    required=True,
    type=click.Path(path_type=Path),
    help="Where tasks and configurations are written; what is there is never overwritten.",
)
@report_options
def command(format_: str, sources: tuple[Path, ...], folder: Path, outputs: Outputs) -> None:
    """Make panels of a published benchmark: swe-bench, loc-bench, trec, beir or inspect.

    Writes NAME.jsonl and NAME.toml, for SWE-bench and Loc-Bench one pair a repository, which is
    cloned when it is frozen and searched at each task's base commit.
    """
    from coldrun.tasks.lib.errors import UsageError
    from coldrun.tasks.lib.plain_text import counted
    from coldrun.tasks.report.document import Line

    found = _read(format_, sources)
    files = {
        name: folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '__', name) or sources[0].stem}.toml"
        for name in sorted(found.panels)
    }
    if len(set(files.values())) < len(files):
        raise UsageError("two repositories would share a file; import them from two sources")
    for path in [each for file in files.values() for each in (file, file.with_suffix(".jsonl"))]:
        if path.exists():
            raise UsageError(f"{path} is there already; nothing was written, name another --output")
    for name, path in files.items():
        _write(path, found.panels[name], format_, name)
    drops = ", ".join(f"{n} {reason.replace('_', ' ')}" for reason, n in found.drops.items())
    tasks = sum(map(len, found.panels.values()))
    left = f"{found.drops.total()} dropped{f' ({drops})' if drops else ''}"
    made = f"{counted(tasks, 'task')} in {counted(len(files), 'panel')}"
    lines = [
        f"{counted(found.samples, 'sample')} − {left} = {made}",
        *(f"{len(found.panels[name]):5d}  {path}" for name, path in files.items()),
        *found.notes,
    ]
    if files:
        lines.append(f"next: coldrun freeze {next(iter(files.values()))}")
    outputs.show(
        [Line(text, is_whole=True) for text in lines],
        {
            "schema": 1,
            "samples": found.samples,
            "drops": dict(found.drops),
            "panels": {str(path): len(found.panels[name]) for name, path in files.items()},
            "notes": found.notes,
        },
    )


def _write(path: Path, tasks: list[dict[str, Any]], format_: str, repository: str) -> None:
    from coldrun.tasks.lib.machine.files import write_together

    file = path.with_suffix(".jsonl")
    address = json.dumps(f"https://github.com/{repository}")
    repo = f"repo = {address}\n" if repository else ""
    text = CONFIG.format(format=format_, tasks=len(tasks), file=json.dumps(file.name), repo=repo)
    data = "".join(json.dumps(task, ensure_ascii=False) + "\n" for task in tasks)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_together({file: data.encode("utf-8", "backslashreplace"), path: text.encode()})


def _read(format_: str, sources: tuple[Path, ...]) -> Imported:
    from coldrun.tasks.lib.errors import UsageError
    from coldrun.tasks.mine import importers
    from coldrun.tasks.mine.lines import read_input

    def text(path: Path) -> str:
        return read_input(path).decode("utf-8", "replace")

    if format_ in ("swe-bench", "loc-bench"):
        return importers.import_patches(row for path in sources for row in _rows(path))
    if format_ == "inspect":
        return importers.import_samples(each for path in sources for each in _samples(path))
    if format_ == "beir":
        folder = sources[0]
        rows = _rows(folder / "queries.jsonl")
        topics = importers.read_queries(rows)
        chosen = sources[1:] or (folder / "qrels" / "test.tsv",)
        judgements = (each for path in chosen for each in importers.read_judgements(text(path)))
        return importers.import_judgements(topics, judgements)
    if len(sources) != 2:
        raise UsageError("trec needs two files: coldrun import trec TOPICS QRELS --output FOLDER")
    topics = importers.read_topics(text(sources[0]))
    return importers.import_judgements(topics, importers.read_judgements(text(sources[1])))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet, JSON or JSON Lines file."""
    from coldrun.tasks.lib.errors import PanelError
    from coldrun.tasks.lib.safe_json import BadJsonError, load_json
    from coldrun.tasks.mine.lines import read_input

    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            yield from pq.read_table(path).to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise PanelError(f"cannot read {path}: {error}") from None
        return
    data = read_input(path)
    parts = [data] if data.lstrip()[:1] == b"[" else data.splitlines()
    for number, part in enumerate(parts, start=1):
        try:
            value = load_json(part, is_lenient=True) if part.strip() else []
        except BadJsonError as error:
            raise PanelError(f"{path}:{number}: {error}") from None
        yield from value if isinstance(value, list) else [value]


def _samples(path: Path) -> Iterator[dict[str, Any]]:
    """The samples of an inspect log: a zip of JSON files, or one JSON file."""
    import zipfile

    from coldrun.tasks.lib.errors import PanelError
    from coldrun.tasks.lib.safe_json import BadJsonError, load_json, load_object
    from coldrun.tasks.mine.lines import read_input

    try:
        if path.suffix != ".eval":
            yield from load_object(read_input(path)).get("samples") or ()
            return
        with zipfile.ZipFile(path) as log:
            for name in sorted(log.namelist()):
                if name.startswith("samples/"):
                    yield load_json(log.read(name), is_lenient=True)
    except (OSError, NotImplementedError, zipfile.BadZipFile, BadJsonError) as error:
        raise PanelError(f"cannot read {path} as an inspect log: {error}") from None
