"""Reading a configuration, and saying what is wrong in it by the names that its writer knows."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from coldrun.tasks.config.arm_config import ARM_KINDS, ToolCall
from coldrun.tasks.config.evaluation_config import (
    BarConfig,
    Config,
    HoldoutConfig,
    MeasureConfig,
    PanelConfig,
    PanelUse,
    ProductConfig,
    RunConfig,
    SampleConfig,
    SplitConfig,
)
from coldrun.tasks.config.prices import ModelPrices, PricesConfig, PriceSnapshot
from coldrun.tasks.lib.canonical import digest_bytes
from coldrun.tasks.lib.errors import ConfigError


def load_config(path: Path) -> Config:
    """Read and check the configuration at `path`.

    Raises:
        ConfigError: The file cannot be read, is not TOML, or says something impossible; the
            message names the key, the nearest known key for an unknown one, and what to do.
    """
    missing = f"no configuration at {path}; `coldrun init` writes one to start from"
    data = _parse_toml(_read_file(path, missing=missing), path)
    return parse_config(data, source=str(path))


def read_prices(config: Config, config_dir: Path) -> Config:
    """The configuration with what its file of prices holds; as it is where it names none.

    Raises:
        ConfigError: As `load_prices`.
    """
    if config.prices is None:
        return config
    prices = load_prices(config_dir / config.prices.file, name=config.prices.file)
    return config.model_copy(update={"prices": prices})


def load_prices(path: Path, *, name: str | None = None) -> PricesConfig:
    """Read and check the snapshot of prices at `path`, which reports call `name`.

    Raises:
        ConfigError: The file cannot be read, is not TOML, or is no dated snapshot.
    """
    missing = f"no prices at {path}; `[prices] file` starts at the configuration's folder"
    data = _read_file(path, missing=missing)
    try:
        snapshot = PriceSnapshot.model_validate(_parse_toml(data, path))
    except ValidationError as error:
        problems = "; ".join(_describe_errors(error, PriceSnapshot))
        raise ConfigError(f"{path}: {problems}") from None
    return PricesConfig(file=name or str(path), digest=digest_bytes(data), snapshot=snapshot)


def _read_file(path: Path, *, missing: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(missing) from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder; name the .toml file in it") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None


def _parse_toml(data: bytes, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8 and try again"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def parse_config(data: dict[str, Any], *, source: str = "the configuration") -> Config:
    """Check configuration data. Raises ConfigError as `load_config` does."""
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"{source}: {'; '.join(_describe_errors(error))}") from None


def _describe_errors(error: ValidationError, root: type[BaseModel] = Config) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        where = [part for part in problem["loc"] if part not in ARM_KINDS]
        name = _dotted(where)
        match problem["type"]:
            case "extra_forbidden":
                yield _unknown_key(name, str(where[-1]), _known_keys(problem["loc"], root))
            case "missing":
                yield f"`{name}` is missing"
            case "union_tag_not_found":
                yield f"`{name}` needs a `kind`: {', '.join(ARM_KINDS)}"
            case "union_tag_invalid":
                got = problem.get("ctx", {}).get("tag")
                yield f"`{name}`: kind {got!r} is not one of {', '.join(ARM_KINDS)}"
            case "value_error":
                message = problem["msg"].removeprefix("Value error, ")
                yield f"`{name}`: {message}" if name else message
            case _:
                message = problem["msg"][0].lower() + problem["msg"][1:]
                yield f"`{name}`: {message}, found {problem['input']!r}"


def _unknown_key(name: str, key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(sorted(known))}"
    return f"unknown key `{name}`; {hint}"


def _dotted(parts: list[int | str]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


_SECTIONS: dict[str, type[BaseModel]] = {
    "panel": PanelConfig,
    "used_for": PanelUse,
    "sample": SampleConfig,
    "split": SplitConfig,
    "holdout": HoldoutConfig,
    "measure": MeasureConfig,
    "bar": BarConfig,
    "product": ProductConfig,
    "run": RunConfig,
    "prepare": ToolCall,
    "prices": PricesConfig,
    "snapshot": PriceSnapshot,
    "models": ModelPrices,
}


def _known_keys(location: tuple[int | str, ...], root: type[BaseModel]) -> list[str]:
    """The keys of the innermost table that `location` points into."""
    model = root
    for part in location[:-1]:
        if isinstance(part, str):
            model = ARM_KINDS.get(part) or _SECTIONS.get(part) or model
    return list(model.model_fields)
