"""The filter of system calls, in an interpreter: for both architectures, on any machine."""

from __future__ import annotations

import errno
import socket
import struct

import pytest

from ringfence.toolkit.sandbox import SandboxError
from ringfence.toolkit.sandbox.call_filter import filter_program

X86, ARM = 0xC000003E, 0xC00000B7
ALLOWED = 0
MACHINES = {"x86_64": X86, "aarch64": ARM}
NUMBERS = {
    "read": (0, 63),
    "execve": (59, 221),
    "mount": (165, 40),
    "setns": (308, 268),
    "ptrace": (101, 117),
    "keyctl": (250, 219),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280),
    "clone": (56, 220),
    "clone3": (435, 435),
    "unshare": (272, 97),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "ioctl": (16, 29),
    "io_uring_setup": (425, 425),
}
THREAD = 0x3D0F00  # the flags of a thread
HIGH = 1 << 32
CASES = [
    ("read", (), ALLOWED),
    ("execve", (), ALLOWED),
    ("mount", (), errno.EPERM),
    ("setns", (), errno.EPERM),
    ("ptrace", (), errno.EPERM),
    ("keyctl", (), errno.EPERM),
    ("open_by_handle_at", (), errno.EPERM),
    ("bpf", (), errno.EPERM),
    ("io_uring_setup", (), errno.EPERM),
    ("clone3", (), errno.ENOSYS),
    ("clone", (THREAD,), ALLOWED),
    ("clone", (17,), ALLOWED),
    *(("clone", (1 << bit | 17,), errno.EPERM) for bit in (17, 25, 26, 27, 28, 29, 30)),
    ("unshare", (0x200,), ALLOWED),
    *(("unshare", (1 << bit,), errno.EPERM) for bit in (7, 17, 25, 26, 27, 28, 29, 30)),
    ("socket", (socket.AF_INET, 1, 0), ALLOWED),
    ("socket", (socket.AF_INET6, 2, 17), ALLOWED),
    ("socket", (socket.AF_INET | HIGH, 1, 0), ALLOWED),
    ("socket", (socket.AF_UNIX, 1, 0), errno.EPERM),
    ("socket", (socket.AF_UNIX | HIGH, 1, 0), errno.EPERM),
    ("socket", (socket.AF_NETLINK, 3, 0), ALLOWED),
    ("socket", (socket.AF_NETLINK, 3, 15), errno.EAFNOSUPPORT),
    ("socket", (40, 1, 0), errno.EAFNOSUPPORT),
    ("socket", (socket.AF_PACKET, 3, 0), errno.EAFNOSUPPORT),
    ("socketpair", (socket.AF_UNIX, socket.SOCK_STREAM, 0), ALLOWED),
    ("socketpair", (socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC, 0), ALLOWED),
    ("socketpair", (socket.AF_UNIX, socket.SOCK_SEQPACKET, 0), ALLOWED),
    ("socketpair", (socket.AF_UNIX, socket.SOCK_DGRAM, 0), errno.EPERM),
    ("socketpair", (socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, 0), errno.EPERM),
    ("socketpair", (socket.AF_INET, socket.SOCK_STREAM, 0), errno.EAFNOSUPPORT),
    ("ioctl", (0, 0x5401), ALLOWED),
    ("ioctl", (0, 0x5412), errno.EPERM),
    ("ioctl", (0, 0x5412 | HIGH), errno.EPERM),
    ("ioctl", (0, 0x541C), errno.EPERM),
]


def decide(program: bytes, machine: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """Run a filter, and return the error that a call gets; 0 if it is allowed."""
    six = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("<iIQ6Q", number if number < 1 << 31 else number - (1 << 32), machine, 0, *six)
    steps = list(struct.iter_unpack("<HBBI", program))
    place = accumulator = 0
    while True:
        code, yes, no, value = steps[place]
        place += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code == 0x54:
            accumulator &= value
        elif code == 0x06:
            return 0 if value == 0x7FFF0000 else value & 0xFFFF
        else:
            held = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}
            place += yes if held[code] else no


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "arguments", "expected"), CASES)
def test_calls(machine: str, name: str, arguments: tuple[int, ...], expected: int) -> None:
    number = NUMBERS[name][list(MACHINES).index(machine)]
    program = filter_program(internet=True, machine=machine)
    assert decide(program, MACHINES[machine], number, arguments) == expected


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_UNIX])
def test_without_internet_there_is_no_socket(family: int) -> None:
    assert decide(filter_program(internet=False, machine="x86_64"), X86, 41, (family, 1, 0)) != ALLOWED


@pytest.mark.parametrize(
    ("machine", "other"), [("x86_64", 0x40000003), ("x86_64", ARM), ("aarch64", 0x40000028)]
)
def test_other_instruction_sets_are_refused(machine: str, other: int) -> None:
    assert decide(filter_program(internet=True, machine=machine), other, 0) == errno.EPERM


@pytest.mark.parametrize("number", [0x40000000, 0x40000029, 0x400000A5, 0xFFFFFFFF])
def test_x32_is_refused(number: int) -> None:
    assert decide(filter_program(internet=True, machine="x86_64"), X86, number) == errno.ENOSYS


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(SandboxError) as caught:
        filter_program(internet=True, machine="riscv64")
    assert caught.value.code == "seccomp_missing"
