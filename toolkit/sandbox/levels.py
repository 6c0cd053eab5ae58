"""Levels of the sandbox: which of them work on this machine, found by running each."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

from ringfence.toolkit.sandbox.errors import SandboxError
from ringfence.toolkit.sandbox.runner import run
from ringfence.toolkit.sandbox.spec import LEVELS, Level, LevelReport, Limits, Spec

APPARMOR_PROFILE = Path(__file__).with_name("apparmor") / "ringfence"
_OLDEST = (
    5,
    12,
)  # the kernel that can change mounts recursively; overlays without privilege came one earlier
_LIMITS = Limits(seconds=20, output=1 << 12)
_SETTINGS = (  # a setting of the kernel, the value that forbids user namespaces, and what to do
    ("/proc/sys/user/max_user_namespaces", "0", "run `sysctl user.max_user_namespaces=15000` as root"),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "run `sysctl kernel.unprivileged_userns_clone=1` as root",
    ),
)
_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_CONTAINERS = ("/.dockerenv", "/run/.containerenv")


def levels(place: str | None = None) -> tuple[LevelReport, ...]:
    """Return a report for each level, the strongest first, from a real run in a temporary directory.

    `place` is the directory in which scratch directories will lie, since the result depends on its file
    system; None: the system's temporary directory.
    """
    if (reason := _no_linux()) is not None:
        rest = (
            LevelReport(level, False, reason, "use WSL2, or Linux") for level in LEVELS if level != "none"
        )
        return (*rest, LevelReport("none", True))
    return tuple(_report(level, place) for level in LEVELS)


def _no_linux() -> str | None:
    if sys.platform != "linux":
        return f"not on this system ({sys.platform})"
    release = platform.release()
    if release.endswith("Microsoft"):  # WSL2 says `microsoft-standard`
        return "WSL1 has neither namespaces nor Landlock"
    return None


def _report(level: Level, place: str | None) -> LevelReport:
    if level == "none":
        return LevelReport(level, True)
    trial_folder = os.path.realpath(tempfile.mkdtemp(prefix="ringfence-level-", dir=place))
    try:
        return _tried(level, trial_folder)
    except SandboxError as error:
        return LevelReport(level, False, error.message, hint(error))
    finally:
        shutil.rmtree(trial_folder, ignore_errors=True)


def _tried(level: Level, trial_folder: str) -> LevelReport:
    """Write a file and see where it lands, and look for a hidden one."""
    workspace, scratch = f"{trial_folder}/workspace", f"{trial_folder}/scratch"
    for directory in (workspace, scratch):
        os.mkdir(directory, 0o700)
    Path(workspace, "hidden").touch()
    Path(workspace, "open").touch()
    words = "cat open && if cat hidden; then echo seen; fi; echo written > new; true"
    spec = Spec(("/bin/sh", "-c", words), workspace, scratch, hidden=("hidden",), level=level, limits=_LIMITS)
    ended = run(spec)
    output = ended.output.decode("utf-8", "replace").strip()
    if ended.status != 0 or "seen" in output or os.path.lexists(f"{workspace}/new"):
        return LevelReport(
            level, False, f"the trial ended with {ended.status}: {output}", "report this as a bug"
        )
    return LevelReport(level, True, " ".join(ended.notes))


def hint(error: SandboxError) -> str:
    """Return what to do about a level that does not work, from what this machine looks like."""
    if error.code not in ("namespaces_forbidden", "mount_refused", "proc_masked"):
        return error.hint
    for name, forbids, advice in _SETTINGS:
        if _setting(Path(name)) == forbids:
            return advice
    if any(os.path.exists(name) for name in _CONTAINERS):
        return (
            "this is a container: allow user namespaces and mounts in its seccomp profile and unmask /proc"
            " (Docker: `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`), or use"
            " level `copy`"
        )
    if _setting(_APPARMOR) == "1":
        return (
            f"AppArmor restricts user namespaces: copy {APPARMOR_PROFILE} to /etc/apparmor.d/, correct the"
            " launcher's path in it, and run `apparmor_parser -r /etc/apparmor.d/ringfence` as root"
        )
    if _kernel() < _OLDEST:
        return f"the kernel is {platform.release()}; 5.12 or later is needed"
    return error.hint


def _setting(name: Path) -> str:
    try:
        return name.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2] if part.isdecimal())
