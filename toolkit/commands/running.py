"""Run of one command: at the strongest level that works here, and never below what the policy requires."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ringfence.policy.byte_names import from_disk
from ringfence.policy.model import Commands
from ringfence.toolkit.commands.hidden import Within, surroundings
from ringfence.toolkit.commands.planning import Planned, plan_effects
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.sandbox import LEVELS, Ended, Level, Limits, SandboxError, Spec
from ringfence.toolkit.sandbox import run as run_in_sandbox
from ringfence.toolkit.text import escape
from ringfence.toolkit.workspace.workspace import Workspace

_SHELLS = ("/bin/bash", "/bin/sh")
# Variables that are likely to be a secret, or to lead to a program that has one.
_SECRET = re.compile(
    r"(?i)TOKEN|SECRET|PASSW|CREDENTIAL|PRIVATE|API_?KEY|ACCESS_?KEY|_KEY$|_AUTH|^AWS_|^AZURE_|^GOOGLE_|^GH_|^RINGFENCE_"
    r"|^DBUS_|^DOCKER_|^KUBE|^DATABASE_URL$|^DISPLAY$|^WAYLAND|^XAUTHORITY$"
)
# Errors of the sandbox that say what this machine lacks, and not what is wrong with the command.
_LACKING = (
    "not_on_this_system", "namespaces_forbidden", "mount_refused", "proc_masked", "landlock_missing",
    "seccomp_missing", "too_large",
)  # fmt: skip
# Levels at which a command runs in the workspace itself, and the note in its result.
_IN_PLACE: Mapping[str, str] = MappingProxyType(
    {
        "landlock": "At level landlock nothing of the workspace can be written, but what is in `through`.",
        "none": "At level none nothing is confined: what was changed was not judged, and cannot be undone.",
    }
)
_OVERLAY = "overlay"
_TMPFS = "/dev/shm"


@dataclass(frozen=True, slots=True)
class Order:
    """A command line with where and how it is to run; `seconds` is its limit of time."""

    command: str
    cwd: str
    stdin: bytes
    seconds: float


def run(  # noqa: PLR0913  the parts of one run, by name
    order: Order,
    policy: Commands,
    workspace: Workspace,
    root: str,
    scratch: str,
    *,
    hidden_places: tuple[str, ...],
    within: Within,
    opens_below: Callable[[str], bool],
    progress: Progress,
) -> dict[str, Any]:
    """Run a command, and return how it ended as JSON values. Its changes are in the scratch then.

    `hidden_places` are directories of this machine that the command must not see. Raises CallError
    `level_unavailable`, `command_failed` or `cancelled`.
    """
    seen = surroundings(workspace, within, opens_below, policy.through, progress.check)
    environment, left_out = plain_environment(dict(os.environ))
    limits = policy.limits
    spec = Spec(
        argv=(_shell(), "-c", order.command),
        workspace=os.path.realpath(root),
        scratch=scratch,
        cwd=order.cwd,
        hidden=seen.hidden,
        through=seen.through,
        network=policy.network,
        env=environment,
        hidden_places=hidden_places,
        limits=Limits(order.seconds, limits.output, limits.memory, limits.processes, limits.scratch),
    )
    ended = _at_some_level(spec, policy.require, order, progress)
    notes = list(ended.notes)
    notes += [
        f"'{escape(place)}' is in `through`, but holds something protected or hidden, so it was planned."
        for place in seen.overlaid
    ]
    if ended.level in _IN_PLACE:
        notes.append(_IN_PLACE[ended.level])
    if left_out:
        notes.append(f"{left_out} variables of the environment that may hold secrets were not passed on.")
    return {
        "status": ended.status,
        "signal": ended.signal,
        "stopped": ended.stopped,
        "seconds": ended.seconds,
        "level": ended.level,
        "network": policy.network,
        "output": ended.output.hex(),
        "output_bytes": ended.output_bytes,
        "hidden": list(seen.hidden),
        "through": list(seen.through),
        "started_ns": ended.started_ns,
        "notes": notes,
    }


def plan(
    scratch: str, ended: dict[str, Any], policy: Commands, workspace: Workspace, progress: Progress
) -> Planned:
    """Plan the changes in a scratch, if the level has one. Raises CallError for what no plan can have."""
    if ended["level"] in _IN_PLACE:
        return Planned()
    return plan_effects(
        scratch,
        workspace,
        level=ended["level"],
        started_ns=ended["started_ns"],
        discard=policy.discard,
        through=tuple(map(from_disk, ended["through"])),
        hidden=tuple(map(from_disk, ended["hidden"])),
        check=progress.check,
    )


def _at_some_level(spec: Spec, require: Level, order: Order, progress: Progress) -> Ended:
    """Run at the strongest level that works, down to the required one."""
    reasons: list[SandboxError] = []
    for level in LEVELS[: LEVELS.index(require) + 1]:
        try:
            return run_in_sandbox(
                _at(spec, level),
                stdin=order.stdin if progress.stdin is None else progress.stdin,
                on_output=progress.output,
                check=progress.check,
                terminal=0 if progress.terminal else None,
            )
        except SandboxError as error:
            if error.code not in _LACKING:
                raise CallError("command_failed", error.message, hint=error.hint) from None
            reasons.append(error)
    first = reasons[0]
    message = f"This machine cannot confine a command at level {require}: {first.message}"
    raise CallError("level_unavailable", message, hint=f"{first.hint}; `ringfence doctor` says more")


def _at(spec: Spec, level: Level) -> Spec:
    return replace(spec, level=level)


def _shell() -> str:
    return next((shell for shell in _SHELLS if os.access(shell, os.X_OK)), _SHELLS[-1])


def plain_environment(given: dict[str, str]) -> tuple[dict[str, str], int]:
    """Return the environment without what may be secret, and the number of variables left out."""
    kept = {name: value for name, value in given.items() if not _SECRET.search(name)}
    kept.pop("TMPDIR", None)  # the command has a /tmp of its own
    return kept, len([name for name in given if name not in kept and name != "TMPDIR"])


def usable_folder(folder: str) -> str:
    """Return a directory for scratches in which an overlay can have its upper layer.

    In a container `folder` is often on an overlay itself, which cannot; then it is one in memory.
    """
    if _file_system(folder) != _OVERLAY or not os.access(_TMPFS, os.W_OK):
        return folder
    name = hashlib.sha256(os.fsencode(os.path.abspath(folder))).hexdigest()[:32]
    return os.path.join(_TMPFS, f"ringfence-{os.getuid()}-{name}")


def _file_system(path: str) -> str:
    """Return the type of the file system that a path is on, or will be on; "" if that is not known."""
    best, kind = "", ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            for line in mounts:
                before, _, after = line.partition(" - ")
                point = before.split(" ")[4].encode().decode("unicode_escape")
                if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
                    best, kind = point, after.split(" ")[0]
    except (OSError, ValueError, IndexError):
        return ""
    return kind
