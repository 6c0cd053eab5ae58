"""Privileges of a sandboxed process: none. Capabilities, set-id, kernel calls and resources are limited."""

from __future__ import annotations

import resource

from ringfence.toolkit.sandbox.call_filter import filter_program
from ringfence.toolkit.sandbox.descriptors import path_of
from ringfence.toolkit.sandbox.landlock_rules import restrict_files, restrict_writing
from ringfence.toolkit.sandbox.mounts import PRIVATE
from ringfence.toolkit.sandbox.request import Request
from ringfence.toolkit.sandbox.system_calls import drop_capabilities, no_new_privileges, seccomp

# Over the limit by this much forks fail at once; in between the supervisor sees it and stops the command.
_MORE_PROCESSES = 64


def drop_privileges(request: Request) -> None:
    """Give up every right that a command does not need, for good; at level `none` nothing is given up."""
    if request.level == "none":
        return
    drop_capabilities()
    no_new_privileges()
    if request.namespaces:
        homes = (home.path for home in request.homes)
        # A terminal of the caller is not on the mounts inside, but `/dev/stderr` leads to it.
        terminals = (path_of(stream) for stream in request.terminals)
        restrict_writing((request.workspace, *homes, *PRIVATE, "/dev", *terminals))
    else:
        restrict_files(request.readable, request.writes_in)
    # Without a network namespace, having no network means having no such sockets.
    seccomp(filter_program(internet=request.network or request.namespaces))


def limit_resources(request: Request) -> None:
    """Set the limits that the kernel checks for each process."""
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, request.scratch_bytes)
    # Not RLIMIT_AS: Node.js reserves far more address space than it ever writes to.
    _lower(resource.RLIMIT_DATA, request.memory)
    if request.namespaces:  # counted for each user namespace; without one, it would count the whole user
        _lower(resource.RLIMIT_NPROC, request.processes + _MORE_PROCESSES)


def _lower(kind: int, value: int) -> None:
    _, most = resource.getrlimit(kind)
    bound = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(kind, (bound, bound))
