"""What was registered before the run, and what was changed once runs existed. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from coldrun.tasks.run.manifest import Manifest


def changes_after_the_fact(manifest: Manifest) -> list[str]:
    """What was changed after a run of the panel existed, one sentence each, with its date.

    The lock's history tells what freezing again changed. Guards that belong to running and not to
    the panel may differ from the lock without freezing again; then the run itself is the date.
    """
    return [*_refrozen(manifest), *_loosened(manifest)]


def _refrozen(manifest: Manifest) -> Iterator[str]:
    for entry in manifest.lock.get("history", []):
        if entry.get("had_runs"):
            what = ", ".join(entry.get("changed") or ["the tasks (history, miner or clone)"])
            yield f"{what} changed after a run existed, on {entry['replaced_at']}"


def _loosened(manifest: Manifest) -> Iterator[str]:
    now = {"max_infra_share": manifest.config.run.max_infra_share}
    for name, registered in (manifest.lock.get("guards") or {}).items():
        if name in now and now[name] != registered:
            yield (
                f"run.{name} is {now[name]:g} in this run of {manifest.started_at}; "
                f"{registered:g} was registered on {manifest.lock.get('frozen_at')}"
            )
