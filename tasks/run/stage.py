"""The stages of a run. Arguments and results are plain, so that a stage runs in any process."""

from __future__ import annotations

from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from coldrun.tasks.lib.served import served
from coldrun.tasks.run.live_run import ask_shard, land_by_id, plan_run
from coldrun.tasks.run.prepare import check_out, fetch_product, load_served


@task(name="fetch", retries=2, retry_delay_seconds=[5, 30], cache_policy=NO_CACHE)
def fetch_stage(evaluation: str) -> None:
    """Fetch a product that is named by URL: the only stage that touches a network."""
    fetch_product(served().path_of(evaluation), served().scratch)


@task(name="check out", cache_policy=NO_CACHE, persist_result=False)
def check_out_stage(evaluation: str, commit: str | None) -> dict[str, Any] | None:
    """Check out and set up the product; gives the point."""
    return check_out(load_served(evaluation), commit)


@task(name="plan", cache_policy=NO_CACHE, persist_result=False)
def plan_stage(evaluation: str, point: dict[str, Any] | None, request: dict[str, Any]) -> str:
    """Start the run, or take up a dead one; gives its id."""
    return plan_run(load_served(evaluation), point, request, served().warehouse)


# never cached: an answer that Prefect replayed would be a stale one that nobody sees
@task(name="ask", cache_policy=NO_CACHE)
def ask_stage(run_id: str, number: int) -> int:
    """Ask one shard's questions; gives the number of answers."""
    return ask_shard(served().warehouse, run_id, number, served().scratch)


@task(name="land", cache_policy=NO_CACHE, persist_result=False)
def land_stage(run_id: str) -> str:
    """End the sessions and land the answers; gives `finished` or `interrupted`."""
    return land_by_id(served().warehouse, run_id, served().scratch)
