"""The mining stage."""

from __future__ import annotations

from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from coldrun.tasks.mine.mined_file import mine_to_file


# The file is the cache, named by base, head, settings and code: Prefect's own results carry no
# checksum.
@task(name="mine", cache_policy=NO_CACHE, persist_result=False)
def mine_stage(evaluation: str, scratch: str) -> str:
    """Turn history into tasks and counted drops; gives the file that holds them."""
    return str(mine_to_file(Path(evaluation), Path(scratch)))
