"""What an arm brings to the keys of its captures: everything of its own that decides an answer."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coldrun.tasks.arms.artifacts import (
    absolute_files,
    declared_files,
    describe_interpreter,
    find_binaries,
)
from coldrun.tasks.config import ArmConfig, ProcessArm, ProductConfig
from coldrun.tasks.lib.canonical import canonical_json
from coldrun.tasks.lib.machine.file_digest import digest_path
from coldrun.tasks.lib.machine.search_path import session_search_path
from coldrun.tasks.lib.records import Point
from coldrun.tasks.product.point_use import built_digest
from coldrun.tasks.product.set_up import digest_setup


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmKeyParts:
    """The parts of a capture's key that depend on the arm and the machine.

    `artifacts` maps the declared files, and "setup", to digests; `product` has the point's commit
    and tree, and a digest of the files that its set-up made; `binaries` maps programs to their
    place and digest; `environment` is one digest over the values of the declared variables and of
    PATH, so that no secret is stored.
    """

    artifacts: Mapping[str, str]
    product: Mapping[str, str] | None
    interpreter: str
    binaries: Mapping[str, str]
    environment: str


def arm_key_parts(
    arm: ArmConfig,
    *,
    config_dir: Path,
    point: Point | None,
    product: ProductConfig | None = None,
) -> ArmKeyParts:
    """What an arm brings to the keys of its captures.

    `product` is the configuration that `point` was made from; it tells the set-up.

    Raises:
        ConfigError: A declared file or program does not exist.
    """
    artifacts: dict[str, str] = {}
    binaries: dict[str, str] = {}
    environment: dict[str, Any] = {}
    if isinstance(arm, ProcessArm):
        for name in declared_files(arm, config_dir=config_dir, has_product=point is not None):
            artifacts[name] = digest_path(config_dir / name)
        artifacts.update({name: digest_path(Path(name)) for name in absolute_files(arm)})
        binaries = find_binaries(arm, point)
        environment = {
            "env": {name: os.environ.get(name) for name in arm.deciding_variables},
            "set_env": arm.set_env,
            "path": session_search_path(),
        }
    if arm.runs_program and product is not None and point is not None:
        artifacts["setup"] = digest_setup(product, config_dir=config_dir)
    return ArmKeyParts(
        artifacts=artifacts,
        product=_identify_point(point) if arm.runs_program and point is not None else None,
        interpreter=describe_interpreter(),
        binaries=binaries,
        environment=hashlib.sha256(canonical_json(environment)).hexdigest(),
    )


def _identify_point(point: Point) -> dict[str, str]:
    built = built_digest(point.directory.parent)
    found = {"commit": point.commit, "tree": point.tree}
    return found if built is None else {**found, "built": built}
