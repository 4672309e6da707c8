"""What this process may run: evaluations by name, and where results and scratch files go.

Flows and stages name evaluations, commits and runs; no path comes from a parameter, which anybody
who reaches the Prefect server could choose. What a name means is in the environment of the process,
set by the command, by `nightly serve`, or in the deployment's stored definition.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from coldrun.tasks.lib.errors import UsageError
from coldrun.tasks.lib.machine.files import changed_environment

VARIABLE = "COLDRUN_SERVED"
RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}")


Whole = Annotated[Path, AfterValidator(lambda path: path.expanduser().resolve())]


class Served(BaseModel):
    """The evaluations by name, each with the path of its configuration, as the variable has them.

    `repos` stand in for the repositories of panels.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    evaluations: dict[str, Whole]
    warehouse: Whole
    scratch: Whole
    repos: dict[str, str] = {}

    def path_of(self, name: str) -> Path:
        """The configuration of an evaluation.

        Raises:
            UsageError: It is not served here.
        """
        found = self.evaluations.get(name)
        if found is None:
            known = ", ".join(sorted(self.evaluations))
            raise UsageError(f"{name!r} is not served here and was not run; served: {known}")
        return found

    def name_of(self, path: Path) -> str:
        """The name by which a configuration is served, else its stem."""
        found = (name for name, known in self.evaluations.items() if known == path.resolve())
        return next(found, path.stem)


def served() -> Served:
    """What this process serves.

    Raises:
        UsageError: Nothing, or the variable cannot be read.
    """
    text = os.environ.get(VARIABLE)
    if text is None:
        raise UsageError(
            f"{VARIABLE} is not set: nothing is served here; `coldrun nightly serve` sets it, "
            "prefect.yaml shows it"
        )
    try:
        return Served.model_validate_json(text)
    except ValidationError as error:
        what = str(error).partition("\n")[2].strip().replace("\n", " ")
        raise UsageError(f"{VARIABLE} cannot be read: {what[:300]}") from None


def serving(
    configs: Mapping[str, Path],
    *,
    warehouse: Path,
    scratch: Path,
    repos: Mapping[str, str | None] | None = None,
) -> AbstractContextManager[None]:
    """Serve evaluations by name in this process and those that it starts."""
    values: dict[str, Any] = {
        "evaluations": {name: str(path.resolve()) for name, path in configs.items()},
        "warehouse": str(warehouse),
        "scratch": str(scratch),
        "repos": {name: repo for name, repo in (repos or {}).items() if repo is not None},
    }
    return changed_environment({VARIABLE: json.dumps(values)})


def check_run_id(text: str) -> str:
    """A run id as it is, which becomes part of paths.

    Raises:
        UsageError: It is none.
    """
    if not RUN_ID.fullmatch(text):
        raise UsageError(f"{text!r} is not a run id")
    return text
