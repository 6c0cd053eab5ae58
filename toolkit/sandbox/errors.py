"""Errors of the sandbox: the stable codes, and the exception that carries them."""

from __future__ import annotations

# Code: what usually helps.
ERRORS: dict[str, str] = {
    "not_on_this_system": "run it on Linux 5.12 or later, or in WSL2 on Windows",
    "bad_request": "correct the arguments; the message names the one that does not fit",
    "namespaces_forbidden": "allow user namespaces for Ringfence, or choose level `copy`",
    "mount_refused": "choose level `copy`, or put the scratch directory on another file system",
    "proc_masked": "run outside a container that masks /proc, or choose level `copy`",
    "mount_inside": "unmount it for the time of the command, or choose level `copy`",
    "too_large": "raise the bound, hide what the command does not need, or use level `overlay`",
    "landlock_missing": "boot a kernel with Landlock (5.13 or later, `lsm=` with landlock)",
    "seccomp_missing": "use a kernel with seccomp filters on x86-64 or aarch64",
    "start_failed": "the message has the system's reason",
    "sandbox_died": "the sandbox was killed from outside; run the command again",
}


class SandboxError(Exception):
    """A command could not be run as asked. `code` is stable; `place` is a path or the step that failed."""

    def __init__(self, code: str, message: str, *, place: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.place = place
        self.hint = hint or ERRORS[code]
