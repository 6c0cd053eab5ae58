"""Filter of system calls: a seccomp program that refuses what a command never needs and could escape by.

Refuses other instruction sets (x32, 32-bit), mounts, namespaces, tracing, io_uring, kernel keys, typing into
a terminal, and sockets other than those of the given families. Refused calls fail; they do not kill.
"""

from __future__ import annotations

import errno
import socket
import struct
from dataclasses import dataclass
from functools import cache

from ringfence.toolkit.sandbox.errors import SandboxError
from ringfence.toolkit.sandbox.system_calls import (
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWTIME,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    MACHINE,
)

_NUMBERS: dict[str, tuple[int, int]] = {  # on x86-64 and on aarch64; -1: there is no such call
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "setns": (308, 268),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "memfd_secret": (447, 447),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "reboot": (169, 142),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "vhangup": (153, 58),
    "nfsservctl": (180, 42),
    "lookup_dcookie": (212, 18),
    "iopl": (172, -1),
    "ioperm": (173, -1),
    "modify_ldt": (154, -1),
    "uselib": (134, -1),
    "_sysctl": (156, -1),
}
_CHECKED: dict[str, tuple[int, int]] = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "unshare": (272, 97),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "ioctl": (16, 29),
}
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000  # the bit in the number of a call of the x32 instruction set
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_NAMESPACES = (
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET
)
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data


def _argument(index: int) -> int:
    """The offset of the low half of an argument: both architectures are little-endian."""
    return 16 + 8 * index


@dataclass(frozen=True, slots=True)
class _Step:
    code: int
    value: int
    yes: int = 0
    no: int = 0

    def packed(self) -> bytes:
        return struct.pack("HBBI", self.code, self.yes, self.no, self.value)


def _refuse(number: int) -> _Step:
    return _Step(_RETURN, _REFUSE | number)


_ALLOWED = _Step(_RETURN, _ALLOW)


def _call(number: int, body: list[_Step]) -> list[_Step]:
    """Steps for one system call: `body` decides it."""
    return [_Step(_EQUAL, number, 0, len(body)), *body]


def _sockets(families: tuple[int, ...]) -> list[_Step]:
    """Of `families` everything, of netlink what lists interfaces alone."""
    steps = [_Step(_LOAD, _argument(0))]
    for family in families:
        steps += [_Step(_EQUAL, family, 0, 1), _ALLOWED]
    if families:
        netlink = [_Step(_LOAD, _argument(2)), _Step(_EQUAL, 0, 0, 1), _ALLOWED, _refuse(errno.EAFNOSUPPORT)]
        steps += [_Step(_EQUAL, socket.AF_NETLINK, 0, len(netlink)), *netlink]
    return [*steps, _Step(_EQUAL, socket.AF_UNIX, 0, 1), _refuse(errno.EPERM), _refuse(errno.EAFNOSUPPORT)]


# A pair of datagram sockets could be connected to a path later, so a pair is of streams or packets.
_PAIRS = [
    _Step(_LOAD, _argument(0)),
    _Step(_EQUAL, socket.AF_UNIX, 1, 0),
    _refuse(errno.EAFNOSUPPORT),
    _Step(_LOAD, _argument(1)),
    _Step(_AND, 0xF),
    _Step(_EQUAL, socket.SOCK_DGRAM, 0, 1),
    _refuse(errno.EPERM),
    _ALLOWED,
]
_TERMINALS = [
    _Step(_LOAD, _argument(1)),
    _Step(_EQUAL, _TIOCSTI, 1, 0),
    _Step(_EQUAL, _TIOCLINUX, 0, 1),
    _refuse(errno.EPERM),
    _ALLOWED,
]


def _flags(refused: int) -> list[_Step]:
    return [_Step(_LOAD, _argument(0)), _Step(_ANY_BIT, refused, 0, 1), _refuse(errno.EPERM), _ALLOWED]


@cache
def filter_program(*, internet: bool, machine: str = MACHINE) -> bytes:
    """Return the program; `internet`: sockets of the internet families may be made."""
    if machine not in _ARCHITECTURES:
        raise SandboxError("seccomp_missing", f"no filter of system calls for {machine}", place="seccomp")
    column = list(_ARCHITECTURES).index(machine)
    checked = {name: numbers[column] for name, numbers in _CHECKED.items()}
    refused = [numbers[column] for numbers in _NUMBERS.values() if numbers[column] >= 0]
    steps = [
        _Step(_LOAD, _ARCHITECTURE),
        _Step(_EQUAL, _ARCHITECTURES[machine], 1, 0),
        _refuse(errno.EPERM),
        _Step(_LOAD, _NUMBER),
        _Step(_AT_LEAST, _X32, 0, 1),
        _refuse(errno.ENOSYS),
    ]
    for number in refused:
        steps += [_Step(_EQUAL, number, 0, 1), _refuse(errno.EPERM)]
    # The C library then uses clone, whose flags a filter can read.
    steps += _call(checked["clone3"], [_refuse(errno.ENOSYS)])
    steps += _call(checked["clone"], _flags(_NAMESPACES))
    steps += _call(checked["unshare"], _flags(_NAMESPACES | CLONE_NEWTIME))
    steps += _call(checked["socket"], _sockets((socket.AF_INET, socket.AF_INET6) if internet else ()))
    steps += _call(checked["socketpair"], _PAIRS)
    steps += _call(checked["ioctl"], _TERMINALS)
    return b"".join(step.packed() for step in [*steps, _ALLOWED])
