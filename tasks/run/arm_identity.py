"""What an arm brings to the keys of its captures: everything of its own that decides an answer."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coldrun.tasks.arms.artifacts import (
    View,
    absolute_files,
    declared_files,
    describe_interpreter,
    describe_program,
    describe_view,
    find_programs,
    view_arm,
)
from coldrun.tasks.config import DESCRIPTIVE_KEYS, ArmConfig, ProcessArm, ProductConfig
from coldrun.tasks.lib.canonical import canonical_json
from coldrun.tasks.lib.machine.files import digest_path
from coldrun.tasks.lib.own_code import interpreter, own_code
from coldrun.tasks.lib.records import Point
from coldrun.tasks.product.point_use import built_digest
from coldrun.tasks.product.set_up import digest_setup


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmIdentity:
    """What one arm brings to the keys of all its captures.

    `arm` is the configuration in full; `artifacts` maps the declared files, and "setup", to
    digests; `product` has the point's commit and tree, and a digest of the files that its set-up
    made, None for built-in arms; `code` identifies coldrun itself; `binaries` maps programs to
    their place and digest; `environment` is one digest over the values of the declared variables
    and of PATH, so that no secret is stored; `session` is what the sandbox shows, by content, None
    without it. `unsealed` says why captures may resume their own run only: the arm answers from
    somewhere, or with something, that coldrun cannot see.
    """

    arm: Mapping[str, Any]
    code: Mapping[str, str]
    interpreter: str
    artifacts: Mapping[str, str] = field(default_factory=dict)
    product: Mapping[str, str] | None = None
    binaries: Mapping[str, str] = field(default_factory=dict)
    environment: str = ""
    session: Mapping[str, Any] | None = None
    unsealed: str | None = None

    @property
    def is_identified(self) -> bool:
        """Whether another run may reuse the answers."""
        return self.unsealed is None


def identify_arm(
    arm: ArmConfig,
    *,
    config_dir: Path,
    point: Point | None,
    product: ProductConfig | None = None,
    view: View | None = None,
    scratch: Path | None = None,
) -> ArmIdentity:
    """What an arm brings to the keys of its captures.

    `product` is the configuration that `point` was made from; it tells the set-up. `view` is what
    the sessions of an arm that is not built in can reach; digests are remembered in `scratch`.

    Raises:
        ConfigError: A declared file or program does not exist.
    """
    values = arm.model_dump(mode="json", exclude=set(DESCRIPTIVE_KEYS))
    if not isinstance(arm, ProcessArm):
        return ArmIdentity(arm=values, code=own_code(), interpreter=interpreter())
    view = view or view_arm(arm, config_dir=config_dir, point=point, choice=None, scratch=scratch)
    names = declared_files(arm, config_dir=config_dir, has_product=point is not None)
    artifacts = {name: digest_path(config_dir / name) for name in names}
    artifacts.update({name: digest_path(Path(name)) for name in absolute_files(arm)})
    if arm.runs_program and product is not None and point is not None:
        artifacts["setup"] = digest_setup(product, config_dir=config_dir)
    environment = {
        "env": {name: os.environ.get(name) for name in arm.deciding_variables},
        "set_env": arm.set_env,
        "path": view.search_path,
    }
    return ArmIdentity(
        arm=values,
        code=own_code(),
        interpreter=describe_interpreter(),
        artifacts=artifacts,
        product=_identify_point(point) if arm.runs_program and point is not None else None,
        binaries={
            name: describe_program(program) for name, program in find_programs(arm, point).items()
        },
        environment=hashlib.sha256(canonical_json(environment)).hexdigest(),
        session=describe_view(view, scratch=scratch),
        unsealed=view.unsealed,
    )


def _identify_point(point: Point) -> dict[str, str]:
    built = built_digest(point.directory.parent)
    found = {"commit": point.commit, "tree": point.tree}
    return found if built is None else {**found, "built": built}
