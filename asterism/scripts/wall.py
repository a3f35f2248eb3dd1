"""The wall behind the engine: rights that a script host drops for good before the first script runs.

A script that breaks out of the JavaScript engine is a program in the host's process, which contains neither data nor
keys; behind the wall it also has no access to files, sockets, other processes or executable memory. The host reads from
one descriptor and writes to one, and asks the kernel for memory, time and its own signals: a filter of system calls
(seccomp) refuses all else. Decision 18 explains the choice.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass

# Address space of all heaps of a host: each may have 64 MiB, and a host of functions has one for each of 100.
ADDRESS_SPACE_BYTES_MAX = 8 << 30
# The usual number of the user without rights.
_UNPRIVILEGED_ID = 65534

_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM

# Classic BPF: load a word of the call, jump if it is equal or has a bit, return.
_LOAD, _IF_EQUAL, _IF_BITS, _RETURN = 0x20, 0x15, 0x45, 0x06
_AT_NUMBER, _AT_ARCHITECTURE, _AT_ARGUMENTS = 0, 4, 16
_INSTRUCTION = struct.Struct("=HBBI")
_PROT_EXEC = 4


@dataclass(frozen=True, slots=True)
class _Machine:
    """The kernel's numbers on one kind of machine."""

    audit_number: int
    read: int
    write: int
    # Calls that map memory or change its protection, which is their third argument.
    maps: tuple[int, ...]
    # Calls that are always allowed: clocks, timers, the process's own memory, signals, numbers and end.
    free: tuple[int, ...]


_MACHINES = {
    "x86_64": _Machine(
        audit_number=0xC000003E,
        read=0,
        write=1,
        # mmap, mprotect
        maps=(9, 10),
        # setitimer, clock_gettime, getitimer, clock_getres, gettimeofday, times, time, getrusage; munmap, brk, mremap,
        # madvise; rt_sigaction, rt_sigprocmask, rt_sigreturn, sigaltstack; futex, sched_yield, restart_syscall; close,
        # fstat; getpid, gettid, getrandom; exit, exit_group
        free=(
            *(38, 228, 36, 229, 96, 100, 201, 98),
            *(11, 12, 25, 28),
            *(13, 14, 15, 131),
            *(202, 24, 219),
            *(3, 5),
            *(39, 186, 318),
            *(60, 231),
        ),
    ),
    "aarch64": _Machine(
        audit_number=0xC00000B7,
        read=63,
        write=64,
        maps=(222, 226),
        # The same, without `time`.
        free=(
            *(103, 113, 102, 114, 169, 153, 165),
            *(215, 214, 216, 233),
            *(134, 135, 139, 132),
            *(98, 124, 128),
            *(57, 80),
            *(172, 178, 278),
            *(93, 94),
        ),
    ),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def build_wall(*, reads_from: int, writes_to: int) -> list[str]:
    """Drop the rights that a host does not need; return a message for each step that the system refused."""
    missing: list[str] = []
    steps: list[tuple[str, Callable[[], None]]] = [
        ("limits", _limit_resources),
        ("a user without rights", _drop_user),
        ("the filter of system calls", lambda: _filter_calls(reads_from=reads_from, writes_to=writes_to)),
    ]
    for name, step in steps:
        try:
            step()
        except (OSError, ValueError) as error:
            missing.append(f"{name} ({error})")
    return missing


def _limit_resources() -> None:
    """Allow no files, no processes, and no more memory than scripts may have."""
    _lower(resource.RLIMIT_AS, ADDRESS_SPACE_BYTES_MAX)
    _lower(resource.RLIMIT_NPROC, 0)
    # Open descriptors stay open.
    _lower(resource.RLIMIT_NOFILE, 0)


def _lower(kind: int, limit: int) -> None:
    _, hard = resource.getrlimit(kind)
    allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (allowed, allowed))


def _drop_user() -> None:
    """Change to the user without rights if this is root; any other user cannot change, and has only the filter."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_UNPRIVILEGED_ID, _UNPRIVILEGED_ID, _UNPRIVILEGED_ID)
        os.setresuid(_UNPRIVILEGED_ID, _UNPRIVILEGED_ID, _UNPRIVILEGED_ID)


def _filter_calls(*, reads_from: int, writes_to: int) -> None:
    machine = _MACHINES.get(os.uname().machine)
    if not sys.platform.startswith("linux") or machine is None or sys.byteorder != "little":
        raise OSError(errno.ENOSYS, f"not known for {sys.platform} on {os.uname().machine}")
    # Standard error stays, for Python's traceback after an error.
    code = _filter(machine, read_descriptors=(reads_from,), write_descriptors=(writes_to, 2))
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // _INSTRUCTION.size, ctypes.cast(buffer, ctypes.c_void_p))
    _control(libc, _PR_SET_DUMPABLE, 0)
    _control(libc, _PR_SET_NO_NEW_PRIVS, 1)
    _control(libc, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program))


def _control(libc: ctypes.CDLL, option: int, value: int, pointer: object = None) -> None:
    # As longs: an int would leave the upper half of its register unchanged.
    zero = ctypes.c_ulong(0)
    if libc.prctl(option, ctypes.c_ulong(value), pointer or zero, zero, zero) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _filter(machine: _Machine, *, read_descriptors: tuple[int, ...], write_descriptors: tuple[int, ...]) -> bytes:
    """Return the program that the kernel runs for each system call, with the most frequent calls first."""
    code = [
        _instruction(_LOAD, _AT_ARCHITECTURE),
        _instruction(_IF_EQUAL, machine.audit_number, skip_if_true=1),
        _instruction(_RETURN, _REFUSE),
        _instruction(_LOAD, _AT_NUMBER),
        *_of_call(machine.read, _on_descriptors(read_descriptors)),
        *_of_call(machine.write, _on_descriptors(write_descriptors)),
    ]
    for number in machine.free:
        code += _of_call(number, [_instruction(_RETURN, _ALLOW)])
    for number in machine.maps:
        code += _of_call(number, _without_execution())
    return b"".join([*code, _instruction(_RETURN, _REFUSE)])


def _of_call(number: int, block: list[bytes]) -> list[bytes]:
    """Return a block that runs for one call, and ends the program."""
    return [_instruction(_IF_EQUAL, number, skip_if_false=len(block)), *block]


def _on_descriptors(descriptors: tuple[int, ...]) -> list[bytes]:
    block = [_instruction(_LOAD, _AT_ARGUMENTS)]
    for descriptor in descriptors:
        block += [_instruction(_IF_EQUAL, descriptor, skip_if_false=1), _instruction(_RETURN, _ALLOW)]
    return [*block, _instruction(_RETURN, _REFUSE)]


def _without_execution() -> list[bytes]:
    return [
        _instruction(_LOAD, _AT_ARGUMENTS + 2 * 8),
        _instruction(_IF_BITS, _PROT_EXEC, skip_if_false=1),
        _instruction(_RETURN, _REFUSE),
        _instruction(_RETURN, _ALLOW),
    ]


def _instruction(code: int, value: int, *, skip_if_true: int = 0, skip_if_false: int = 0) -> bytes:
    return _INSTRUCTION.pack(code, skip_if_true, skip_if_false, value)
