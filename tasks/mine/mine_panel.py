"""Mining by kind of panel: opens the repositories and hands over to the kind's own module."""

from __future__ import annotations

import datetime as dt
import secrets
from pathlib import Path

from pydantic import TypeAdapter

from coldrun.tasks.config import Config, PanelConfig, load_config
from coldrun.tasks.lib.canonical import digest_json
from coldrun.tasks.lib.errors import ConfigError
from coldrun.tasks.lib.git.clone import is_url, open_source
from coldrun.tasks.lib.git.repository import Repository
from coldrun.tasks.lib.machine.files import write_whole
from coldrun.tasks.lib.own_code import own_code
from coldrun.tasks.lib.records import MinedPanel
from coldrun.tasks.lib.watch import current_watch
from coldrun.tasks.mine.candidates import format_date
from coldrun.tasks.mine.lines import normalise_date


def mine_panel(panel: PanelConfig, *, config_dir: Path, scratch: Path) -> MinedPanel:
    """Mine the candidates of a panel."""
    match panel.kind:
        case "commit-files":
            from coldrun.tasks.mine.commit_files import mine_commit_files

            return mine_commit_files(
                open_corpus(panel, config_dir=config_dir, scratch=scratch, is_fresh=True), panel
            )
        case "ticket-repos":
            from coldrun.tasks.mine.ticket_repos import mine_ticket_repos

            return mine_ticket_repos(panel, config_dir=config_dir, scratch=scratch)
        case "jsonl":
            from coldrun.tasks.mine.jsonl import mine_jsonl

            repository = None
            if panel.repo is not None:
                repository = open_corpus(
                    panel, config_dir=config_dir, scratch=scratch, is_fresh=True
                )
            assert_file = panel.file or ""
            return mine_jsonl(config_dir / assert_file, panel, repository=repository)


def open_corpus(
    panel: PanelConfig, *, config_dir: Path, scratch: Path, is_fresh: bool = False
) -> Repository:
    """The repository that a one-repository panel searches.

    With `is_fresh`, names that move (HEAD, branches) mean what they mean now, not what an earlier
    clone remembers.
    """
    if panel.repo is None:
        raise ConfigError("`panel.repo` is missing; name the repository by path or URL")
    wanted = tuple(rev for rev in (panel.base, panel.head) if rev and rev != "parent")
    return open_source(
        panel.repo, relative_to=config_dir, scratch=scratch, wanted=wanted, is_fresh=is_fresh
    )


def find_range_end(
    panel: PanelConfig, *, head: str | None, frozen_at: str, config_dir: Path, scratch: Path
) -> dt.datetime | None:
    """When the range of a frozen panel ended, None for a file: no task of it is later."""
    if panel.kind == "jsonl":
        return None
    if panel.kind == "ticket-repos":
        moment = frozen_at if panel.head == "HEAD" else panel.head
        return dt.datetime.fromisoformat(normalise_date(moment))
    repository = open_corpus(panel, config_dir=config_dir, scratch=scratch)
    committed = repository.read_commits([repository.resolve(head or panel.head).commit])[
        0
    ].committed
    return dt.datetime.fromisoformat(format_date(committed))


def with_repo(config: Config, repo: str | None) -> Config:
    """The configuration with the panel's repository somewhere else."""
    if repo is None:
        return config
    place = repo if is_url(repo) else str(Path(repo).expanduser().resolve())
    return config.model_copy(update={"panel": config.panel.model_copy(update={"repo": place})})


_MINED = TypeAdapter(MinedPanel)


def mine_to_file(config_path: Path, scratch: Path) -> Path:
    """Mine the panel of a configuration, unless the same was mined before.

    The file's name is the digest of all that mining reads: the panel's settings, the commits that
    base and head name, and coldrun's own code.
    """
    current_watch().on_phase("mining")
    panel = load_config(config_path).panel
    file = scratch.resolve() / "mined" / f"{_key(panel, config_path.parent, scratch)}.json"
    if not file.exists():
        mined = mine_panel(panel, config_dir=config_path.parent, scratch=scratch)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, _MINED.dump_json(mined))
    return file


def find_mined(name: str, scratch: Path) -> Path:
    """The file of that name, as `mine_to_file` made it."""
    return scratch.resolve() / "mined" / Path(name).name


def read_mined(file: Path) -> MinedPanel:
    """The mined panel in a file."""
    return _MINED.validate_json(file.read_bytes())


def _key(panel: PanelConfig, config_dir: Path, scratch: Path) -> str:
    if panel.kind != "commit-files":
        return secrets.token_hex(32)  # files and several repositories decide it: mined each time
    repository = open_corpus(panel, config_dir=config_dir, scratch=scratch)
    names = [name for name in (panel.base, panel.head) if name and name != "parent"]
    ends = [repository.resolve(name).commit for name in names]
    return digest_json(
        [panel.model_dump(mode="json"), str(repository.git_dir), ends, dict(own_code())]
    ).removeprefix("sha256:")
