"""The mining stage."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from coldrun.tasks.lib.served import served
from coldrun.tasks.mine.mine_panel import mine_to_file


# The file is the cache, named by base, head, settings and code: Prefect's own results carry no
# checksum.
@task(name="mine", cache_policy=NO_CACHE, persist_result=False)
def mine_stage(evaluation: str) -> str:
    """Turn history into tasks and counted drops; gives the name of the file that holds them."""
    return mine_to_file(served().path_of(evaluation), served().scratch).name
