"""Reading a configuration, and saying what is wrong in it by the names that its writer knows."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from coldrun.tasks.config.arm_config import ArmConfig, find_kind
from coldrun.tasks.config.evaluation_config import Config, PricesConfig, PriceSnapshot
from coldrun.tasks.lib.canonical import digest_bytes
from coldrun.tasks.lib.concealment import keep_url_secret, keep_variables_secret
from coldrun.tasks.lib.errors import ConfigError


def load_config(path: Path) -> Config:
    """Read and check the configuration at `path`."""
    missing = f"no configuration at {path}; `coldrun init` writes one to start from"
    data = _parse_toml(_read_file(path, missing=missing), path)
    return parse_config(data, source=str(path))


def read_prices(config: Config, config_dir: Path) -> Config:
    """The configuration with what its file of prices holds; as it is where it names none."""
    if config.prices is None:
        return config
    prices = load_prices(config_dir / config.prices.file, name=config.prices.file)
    return config.model_copy(update={"prices": prices})


def load_prices(path: Path, *, name: str | None = None) -> PricesConfig:
    """Read and check the snapshot of prices at `path`, which reports call `name`."""
    missing = f"no prices at {path}; `[prices] file` starts at the configuration's folder"
    data = _read_file(path, missing=missing)
    table = _parse_toml(data, path)
    try:
        snapshot = PriceSnapshot.model_validate(table)
    except ValidationError as error:
        problems = "; ".join(_describe_errors(error, PriceSnapshot, table))
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
    except (ValueError, RecursionError) as error:  # digits without end, brackets without end
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def parse_config(data: dict[str, Any], *, source: str = "the configuration") -> Config:
    """Check configuration data. Raises ConfigError as `load_config` does."""
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"{source}: {'; '.join(_describe_errors(error, Config, data))}") from None
    keep_variables_secret(name for arm in config.arm for name in getattr(arm, "env", ()))
    keep_url_secret(config.panel.repo or "")
    if config.product is not None:
        keep_variables_secret(config.product.setup_env)
        keep_url_secret(config.product.repo)
    return config


def _describe_errors(
    error: ValidationError, root: type[BaseModel], data: Mapping[str, Any]
) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        where = problem["loc"]
        name = _dotted(where)
        match problem["type"]:
            case "extra_forbidden":
                yield _unknown_key(name, str(where[-1]), _known_keys(where, root, data))
            case "missing":
                yield f"`{name}` is missing"
            case "no_kind":
                yield f"`{name}`{problem['msg']}"
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


def _dotted(parts: tuple[int | str, ...]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _known_keys(
    location: tuple[int | str, ...], root: type[BaseModel], data: Mapping[str, Any]
) -> list[str]:
    model, table = root, data
    for part in location[:-1]:
        table = table[part]  # type: ignore[index]  # an index of a list, or a key
        if isinstance(part, str) and part in model.model_fields:
            model = next(_models_in(model.model_fields[part].annotation), model)
        if model is ArmConfig and isinstance(table, Mapping):
            model = find_kind(table["kind"]).settings
    return list(model.model_fields)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
