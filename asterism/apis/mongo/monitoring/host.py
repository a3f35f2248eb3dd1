"""`hostInfo`: the machine, as far as it can be known without privileges."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from asterism.apis.mongo.call import Call
from asterism.apis.mongo.commands import Command
from asterism.values.bson.types import Document

_MEGABYTE = 1024 * 1024
_MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


async def host_info(call: Call) -> Document:
    memory = _memory_bytes() // _MEGABYTE
    cores = os.cpu_count() or 1
    return {
        "system": {
            "currentTime": call.context.now(),
            "hostname": platform.node(),
            "cpuAddrSize": 64,
            "memSizeMB": memory,
            "memLimitMB": min(memory, _memory_limit_bytes() // _MEGABYTE),
            "numCores": cores,
            "numCoresAvailableToProcess": _available_cores(),
            "numPhysicalCores": _counted("core id") or cores,
            "numCpuSockets": _counted("physical id") or 1,
            "cpuArch": platform.machine(),
            "numaEnabled": False,
            "numNumaNodes": 1,
        },
        "os": {"type": platform.system(), "name": platform.system(), "version": platform.release()},
        "extra": {
            "versionString": platform.version(),
            "libcVersion": " ".join(platform.libc_ver()).strip(),
            "kernelVersion": platform.release(),
            "pageSize": os.sysconf("SC_PAGE_SIZE"),
            "numPages": _memory_bytes() // os.sysconf("SC_PAGE_SIZE"),
            "maxOpenFiles": os.sysconf("SC_OPEN_MAX"),
            **_first_processor(),
        },
    }


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _memory_limit_bytes() -> int:
    """Return the limit of the container, or all of the memory."""
    for path in _MEMORY_LIMITS:
        text = _text(path).strip()
        if text.isdigit():
            return int(text)
    return _memory_bytes()


def _available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else -1


def _counted(field: str) -> int:
    """Return how many different values a field of the list of processors has; 0 without such a list."""
    lines = _text(Path("/proc/cpuinfo")).splitlines()
    return len({line for line in lines if line.startswith(field)})


def _first_processor() -> Document:
    fields = {"model name": "cpuString", "flags": "cpuFeatures", "cpu MHz": "cpuFrequencyMHz"}
    found: Document = dict.fromkeys(fields.values(), "")
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        name, _, value = line.partition(":")
        shown = fields.get(name.strip())
        if shown is not None and not found[shown]:
            found[shown] = value.strip()
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


COMMANDS = (Command("hostInfo", host_info, "The machine."),)
