"""A mined panel as a file in the scratch folder, handed from one stage to the next."""

from __future__ import annotations

import secrets
from pathlib import Path

from pydantic import TypeAdapter

from coldrun.tasks.config import PanelConfig, load_config
from coldrun.tasks.lib.canonical import digest_json
from coldrun.tasks.lib.machine.atomic_write import write_whole
from coldrun.tasks.lib.own_code import own_code
from coldrun.tasks.lib.records import MinedPanel
from coldrun.tasks.lib.watch import current_watch
from coldrun.tasks.mine.mine_panel import mine_panel, open_corpus

_MINED = TypeAdapter(MinedPanel)


def mine_to_file(config_path: Path, scratch: Path) -> Path:
    """Mine the panel of a configuration, unless the same was mined before.

    The file's name is the digest of all that mining reads: the panel's settings, the commits that
    base and head name, and coldrun's own code.

    Raises:
        RepositoryError, PanelError: The repository cannot be read, or holds no tasks.
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
