"""Policy files that a rule can be written to: which one, and its replacement as a whole.

Replaces a file only while it is still what was shown. Never writes a file that this user does not own, one
that others can write, a ready-made policy, or what a link points to in another folder.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ringfence.policy import READY_MADE, Policy, ready_made
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.file_ownership import doubt

RULES_FILE = "answered-rules.yaml"  # the name that is proposed for a file of rules


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A file of a policy, with the bytes that it has now; `source` is the policy's own file."""

    source: Path
    place: Path
    data: bytes

    @property
    def name(self) -> str:
        """The file's name from the folder of the policy."""
        return os.path.relpath(self.place, self.source.absolute().parent)

    def reload(self, data: bytes) -> Policy:
        """Return the policy with other bytes in this file. Raises PolicyError."""
        return Policy.load(self.source, kept=False, unsaved={os.path.realpath(self.place): data})


def file_for_rules(source: Path, policy: Policy) -> PolicyFile:
    """Return the policy's own file, or else the last file that it extends, that a rule may be written to.

    What a policy extends is protected like the policy. Raises CallError `permission_denied` with what to do
    if there is no such file.
    """
    why = ""
    for place in (str(source.absolute()), *reversed(policy.files)):
        found = _why_not(place)
        if not found:
            try:
                return PolicyFile(source, Path(place), Path(place).read_bytes())
            except OSError as error:
                found = f"it cannot be read: {error.strerror}"
        why = why or found
    raise CallError(
        "permission_denied",
        f"No rule can be written: '{source.name}': {why}",
        where="policy",
        hint=f"in the policy's folder create {RULES_FILE} with the line `version: 1`, owned by you, and add"
        f" `extends: [{RULES_FILE}]` to the policy (or {RULES_FILE} to its `extends`); or grant without"
        " --always",
    )


def read_file(source: Path, place: Path) -> PolicyFile:
    """Return one file of a policy, to take a rule out of it. Raises CallError `permission_denied`."""
    why = _why_not(str(place))
    if not why:
        try:
            return PolicyFile(source, place, place.read_bytes())
        except OSError as error:
            why = f"it cannot be read: {error.strerror}"
    raise CallError("permission_denied", f"'{place.name}' cannot be written: {why}", where="policy")


def _why_not(place: str) -> str:
    """Return why a file is not one to write a rule to; "" if it is."""
    real = Path(os.path.realpath(place))
    if str(real) in {os.path.realpath(ready_made(name)) for name in READY_MADE}:
        return "it is a ready-made policy"
    if str(real.parent) != os.path.realpath(Path(place).parent):
        return "it is a link to another folder"
    try:
        trust = doubt(str(real), real.stat())
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if trust:
        return f"it {trust}"
    if not (os.access(real, os.W_OK) and os.access(real.parent, os.W_OK | os.X_OK)):
        return "you may not write it"
    return ""


def replace(file: PolicyFile, data: bytes) -> None:
    """Put new bytes in the place of a file, at once and synced, if it still has those that were shown.

    Raises CallError `approval_stale` if it has not, and `io_error` if it cannot be written: then it is
    unchanged.
    """
    real = Path(os.path.realpath(file.place))
    new = real.with_name(f".{real.name}.{secrets.token_hex(4)}.new")
    try:
        with _locked(real.parent):
            if real.read_bytes() != file.data:
                raise CallError(
                    "approval_stale",
                    f"'{file.name}' has changed since it was shown, so no rule was written",
                    where="policy",
                    hint="look at the offers again (`ringfence approvals show`)",
                )
            _write(new, data, real.stat())
            new.replace(real)
            _sync(real.parent)
    except OSError as error:
        raise CallError(
            "io_error", f"'{file.name}' cannot be written: {error.strerror}", where="policy"
        ) from None
    finally:
        new.unlink(missing_ok=True)


def _write(new: Path, data: bytes, info: os.stat_result) -> None:
    with new.open("xb") as out:
        out.write(data)
        new.chmod(info.st_mode & 0o7777)
        if hasattr(os, "chown"):
            with suppress(PermissionError):
                os.chown(new, info.st_uid, info.st_gid)
        out.flush()
        os.fsync(out.fileno())


def _sync(folder: Path) -> None:
    with suppress(OSError):  # not every system can sync a directory
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which ends with the process: one writer of rules at a time."""
    try:
        import fcntl
    except ImportError:  # this system has no such lock
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
