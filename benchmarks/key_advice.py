"""The advisor on a million items and 200,000 requests in files: its time on one core, and its memory."""

from __future__ import annotations

import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import NotMeasured, server_core
from benchmarks.subject import Subject

ITEMS = 1_000_000
REQUESTS = 200_000
ITEM_BYTES = 1024
_CAPTURE_SECONDS = 3600.0
_TENANTS = 400
_USERS = 50_000
_LINES_AT_A_TIME = 2_000


@dataclass(frozen=True)
class AdviceCost:
    seconds: float
    cpu_seconds: float
    peak_bytes: int


def write_files(folder: Path) -> tuple[Path, Path]:
    """Write items and requests of a workload with tenants, users and documents; some tenants are large."""
    items, requests = folder / "items.jsonl", folder / "requests.jsonl"
    with items.open("w") as file:
        for start in range(0, ITEMS, _LINES_AT_A_TIME):
            file.write("".join([_item(number) for number in range(start, start + _LINES_AT_A_TIME)]))
    chance = random.Random(1)
    with requests.open("w") as file:
        for start in range(0, REQUESTS, _LINES_AT_A_TIME):
            file.write("".join([_request(number, chance) for number in range(start, start + _LINES_AT_A_TIME)]))
    return items, requests


def _owner(number: int) -> tuple[int, int]:
    """Return tenant and user of an item; the first tenants have the most users."""
    user = number * 7919 % _USERS
    return int(_TENANTS * (user / _USERS) ** 3), user


def _item(number: int) -> str:
    tenant, user = _owner(number)
    front = (
        f'{{"id":"d{number:07d}","tenant":"t{tenant:03d}","user":"u{user:05d}","kind":"k{number % 5}",'
        f'"at":"2026-03-{1 + number % 28:02d}T{number % 24:02d}:00:00Z","size":{number % 997},"open":true,"text":"'
    )
    return f'{front}{"x" * (ITEM_BYTES - len(front) - 2)}"}}\n'


def _request(number: int, chance: random.Random) -> str:
    tenant, user = _owner(item := chance.randrange(ITEMS))
    at = 1_772_000_000 + _CAPTURE_SECONDS * number / REQUESTS
    owner = f'"/tenant":"t{tenant:03d}","/user":"u{user:05d}"'
    match number % 10:
        case 0 | 1 | 2 | 3 | 4:
            named = f'"operation":"read","id":"d{item:07d}","key":["t{tenant:03d}"],"bytes":{ITEM_BYTES},"charge":1.0'
        case 5 | 6:
            named = (
                f'"operation":"query","equal":{{"/tenant":["t{tenant:03d}"],"/user":["u{user:05d}"]}},"results":20,'
                '"charge":4.1'
            )
        case _:
            named = (
                f'"operation":"create","id":"n{number}","key":["t{tenant:03d}"],"values":{{"/id":"n{number}",{owner},'
                f'"/kind":"k1"}},"bytes":{ITEM_BYTES},"charge":5.4'
            )
    return f'{{"at":{at:.3f},{named},"status":200}}\n'


def measure_advice(subject: Subject, folder: Path) -> AdviceCost:
    """Run `asterism advise` on the files, on one core; a process of its own, for its memory."""
    items, requests = write_files(folder)
    command = [sys.executable, "-m", "asterism", "advise", "--items", str(items), "--requests", str(requests)]
    command += ["--present-key", "/tenant", "--json"]
    output = os.open(folder / "advice.json", os.O_WRONLY | os.O_CREAT)
    started = time.perf_counter()
    process = os.posix_spawn(
        sys.executable, command, subject.environment, file_actions=[(os.POSIX_SPAWN_DUP2, output, 1)]
    )
    os.close(output)
    os.sched_setaffinity(process, {server_core()})
    _, status, usage = os.wait4(process, 0)
    if os.waitstatus_to_exitcode(status):
        raise NotMeasured(f"asterism advise ended with {os.waitstatus_to_exitcode(status)}")
    return AdviceCost(time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
