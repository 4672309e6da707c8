"""The sealed part on disk: encrypted beside the configuration, its key outside the repository.

AES-256-GCM over the canonical bytes of the sealed tasks, with their hash as associated data, so
that a changed file, another panel's file or a wrong key are all noticed. The hash is in the lock:
whatever the bytes were read from, they are checked against it.

This keeps honest people from reading, tuning on or committing the sealed tasks. Whoever has the
history and the lock can mine them again, which is also the way back when the key is lost.
"""

from __future__ import annotations

import base64
import binascii
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from coldrun.tasks.config import Config, PanelConfig
from coldrun.tasks.freeze.lock import EvaluationFiles, panel_from_bytes
from coldrun.tasks.lib.canonical import canonical_json, digest_bytes
from coldrun.tasks.lib.errors import ColdrunError, LockError, StorageError, UsageError
from coldrun.tasks.lib.machine.files import find_enclosing_repository
from coldrun.tasks.lib.records import Task
from coldrun.tasks.lib.safe_json import BadJsonError, load_object
from coldrun.tasks.mine.mine_panel import mine_panel

KEY_VARIABLE = "COLDRUN_HOLDOUT_KEY"
KEY_BYTES = 32
NONCE_BYTES = 12
CIPHER = "AES-256-GCM"
SEALED_SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundKey:
    """A key and where it was found, for people."""

    key: bytes
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedPart:
    """The sealed tasks, checked against the lock. `note` says why they were mined again, if so."""

    data: bytes
    tasks: tuple[Task, ...]
    note: str | None


def key_folder() -> Path:
    """Where keys lie: the user's own configuration folder."""
    import platformdirs

    return Path(platformdirs.user_config_dir("coldrun")) / "holdout"


def key_path(sealed_digest: str) -> Path:
    """The key file of one sealed part, by the hash of its bytes."""
    return key_folder() / f"{sealed_digest.removeprefix('sha256:')}.key"


def find_key(sealed_digest: str) -> FoundKey | None:
    """The key in COLDRUN_HOLDOUT_KEY, else the key file; None when there is neither."""
    given = os.environ.get(KEY_VARIABLE)
    if given:
        return FoundKey(key=_parse_key(given, KEY_VARIABLE), place=KEY_VARIABLE)
    path = key_path(sealed_digest)
    try:
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the key {path} ({error}); restore it or remove it") from None
    return FoundKey(key=_parse_key(text, str(path)), place=str(path))


def ensure_key(files: EvaluationFiles, sealed_digest: str) -> FoundKey:
    """The key to seal with: the one that is there, or a new one in a file of mode 0600."""
    found = find_key(sealed_digest)
    if found is not None:
        return found
    path = key_path(sealed_digest)
    _refuse_same_repository(files, path)
    key = secrets.token_bytes(KEY_BYTES)
    try:
        write_private(path, base64.urlsafe_b64encode(key) + b"\n")
    except FileExistsError:
        again = find_key(sealed_digest)
        if again is None:
            raise
        return again
    except OSError as error:
        raise StorageError(
            f"cannot write the key of the sealed part to {path}: {error.strerror}; free that "
            f"place, or give a key of your own in {KEY_VARIABLE} (32 bytes, base64)"
        ) from None
    return FoundKey(key=key, place=str(path))


def write_private(path: Path, data: bytes) -> None:
    """Make a file that its user alone can read; FileExistsError where there is one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def describe_key(sealed_digest: str) -> str:
    """Where the key lies, in a sentence."""
    found = find_key(sealed_digest)
    if found is None:
        return (
            f"the key of the sealed part is not on this machine ({key_path(sealed_digest)}); an "
            "opening mines the sealed tasks again"
        )
    if found.place == KEY_VARIABLE:
        return f"the key of the sealed part is the one in {KEY_VARIABLE}; it was written nowhere"
    return (
        f"the key of the sealed part is {found.place}; never commit it (without it, an opening "
        "mines the sealed tasks again)"
    )


def seal(data: bytes, key: bytes) -> bytes:
    """Encrypt the sealed tasks' canonical bytes; another nonce every time."""
    digest = digest_bytes(data)
    nonce = secrets.token_bytes(NONCE_BYTES)
    text = AESGCM(key).encrypt(nonce, data, _associated(digest))
    values = {
        "schema": SEALED_SCHEMA,
        "cipher": CIPHER,
        "digest": digest,
        "nonce": nonce.hex(),
        "data": base64.b64encode(text).decode("ascii"),
    }
    return canonical_json(values) + b"\n"


def unseal(sealed: bytes, key: bytes, *, digest: str) -> bytes:
    """Decrypt the sealed tasks."""
    values = _read_envelope(sealed)
    if values.get("digest") != digest:
        raise LockError(
            f"the sealed file is of another panel: it says {values.get('digest')}, the lock "
            f"{digest}"
        )
    try:
        nonce = bytes.fromhex(values["nonce"])
        text = base64.b64decode(values["data"], validate=True)
        data = AESGCM(key).decrypt(nonce, text, _associated(digest))
    except InvalidTag:
        raise LockError("the key does not fit the sealed file, or the file was changed") from None
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise LockError(f"the sealed file is damaged ({type(error).__name__})") from None
    return data


def is_intact(files: EvaluationFiles, sealed_digest: str) -> bool:
    """Whether the sealed file is there and, as far as a key at hand can tell, whole."""
    try:
        if find_key(sealed_digest) is not None:
            _decrypt(files, sealed_digest)
            return True
        return _read_envelope(files.sealed.read_bytes()).get("digest") == sealed_digest
    except (OSError, ColdrunError):
        return False


def write_key_and_seal(files: EvaluationFiles, data: bytes) -> bytes:
    """The bytes of the sealed file, with its key in place first."""
    return seal(data, ensure_key(files, digest_bytes(data)).key)


def read_sealed(
    files: EvaluationFiles, lock: dict[str, Any], config: Config, *, scratch: Path
) -> SealedPart:
    """The sealed tasks: decrypted where key and file are there, else mined again.

    Raises:
        LockError: What was found is not what the lock says was sealed, or another version of the
            miner sealed it.
    """
    note = None
    try:
        data = _decrypt(files, lock["sealed"]["digest"])
    except ColdrunError as error:
        note = str(error)
        data = _mine_again(files, lock, config, scratch, why=note)
    return SealedPart(data=data, tasks=panel_from_bytes(data), note=note)


def _decrypt(files: EvaluationFiles, digest: str) -> bytes:
    found = find_key(digest)
    if found is None:
        raise LockError(f"no key at {key_path(digest)} or in {KEY_VARIABLE}")
    try:
        sealed = files.sealed.read_bytes()
    except OSError as error:
        raise LockError(f"cannot read {files.sealed} ({error.strerror})") from None
    data = unseal(sealed, found.key, digest=digest)
    if digest_bytes(data) != digest:
        raise LockError(f"{files.sealed} holds other tasks than the lock says")
    return data


def _mine_again(
    files: EvaluationFiles, lock: dict[str, Any], config: Config, scratch: Path, *, why: str
) -> bytes:
    from coldrun.tasks.freeze.freeze_panel import MINER_VERSION, draw_sealed

    sealed = lock["sealed"]
    if sealed["miner"] != MINER_VERSION:
        raise LockError(
            f"the sealed part cannot be decrypted ({why}) nor mined again: miner version "
            f"{sealed['miner']} sealed it, this is version {MINER_VERSION}; bring the key back, or "
            "install the version of coldrun that froze the panel"
        )
    panel = _pinned(config.panel, lock["panel"])
    mined = mine_panel(panel, config_dir=files.config.parent, scratch=scratch)
    drawn = draw_sealed(config, mined.tasks)
    found = None if drawn is None else digest_bytes(drawn)
    if drawn is None or found != sealed["digest"]:
        raise LockError(
            f"the sealed part cannot be decrypted ({why}), and mined again it is another one: the "
            f"lock says {sealed['digest']}, mining found {found}; bring the key back, or check "
            "that the repository has the frozen history (--repo)"
        )
    return drawn


def _pinned(panel: PanelConfig, locked: dict[str, Any]) -> PanelConfig:
    if panel.kind != "commit-files":
        return panel
    ends = {name: locked[name]["commit"] for name in ("head", "base") if locked[name] is not None}
    return panel.model_copy(update=ends)


def _parse_key(text: str, place: str) -> bytes:
    try:
        key = base64.b64decode(text.strip().replace("-", "+").replace("_", "/"), validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != KEY_BYTES:
        raise UsageError(
            f"{place} holds no key: expected {KEY_BYTES} bytes in base64, such as "
            "`openssl rand -base64 32` prints"
        )
    return key


def _read_envelope(sealed: bytes) -> dict[str, Any]:
    try:
        values = load_object(sealed)
    except BadJsonError as error:
        raise LockError(f"the sealed file is damaged ({error})") from None
    if values.get("schema") != SEALED_SCHEMA or values.get("cipher") != CIPHER:
        raise LockError(
            f"the sealed file is of another version (schema {values.get('schema')}, cipher "
            f"{values.get('cipher')})"
        )
    return values


def _associated(digest: str) -> bytes:
    return f"coldrun sealed {SEALED_SCHEMA} {digest}".encode("ascii")


def _refuse_same_repository(files: EvaluationFiles, key: Path) -> None:
    repository = find_enclosing_repository(files.config.parent)
    if repository is not None and key.is_relative_to(repository):
        raise UsageError(
            f"the key would be {key}, inside the repository {repository} that the sealed file "
            f"lies in; set XDG_CONFIG_HOME to a folder outside, or give a key in {KEY_VARIABLE}"
        )
