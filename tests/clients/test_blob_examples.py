"""The guide to blobs and its examples, run with the official client, and what `asterism partitions` says of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.storage.blob import ContainerClient

from scripts.blob_pictures import EXAMPLE, PICTURE_NAME, load_example, read_figures
from tests.clients.blob_server import BlobServer
from tests.clients.queue_server import QueueServer
from tests.support.commands import failure_of, run_well
from tests.support.server import PROJECT, WAIT_SECONDS_MAX, RunningServer, environment, running_server

GUIDE = (PROJECT / "docs" / "guides" / "blobs.md").read_text(encoding="utf-8")
# So that a few uploads a second are a hot load.
HOT_RU_PER_SECOND = 20
EXPECTED = {
    "reports": """\
whole: ['month,total', '2026-09,120', '2026-10,140']
a range: 2026-09
not replaced: overwrite=True was not given
locked: 412
now: 2026-11,150
as it was: ['2026-09,120', '2026-10,140']
final: ['2026/sales.csv']
shared: 24 bytes
not permitted: 403
""",
    "hash_prefix": """\
in the order of time: ['2026-11-18/22-00-00-000000.jpg', '2026-11-18/22-05-00-000000.jpg']
spread: ['008-2026-11-19/00-00-00-000000.jpg', '028-2026-11-18/22-05-00-000000.jpg']
read by its name: photo 0
a day by its prefix: 16
a day by its tag: 16
""",
}


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX, check=False, env=environment()
    )


@pytest.mark.parametrize("name", list(EXPECTED))
def test_an_example_does_what_it_says(name: str, blobs: BlobServer) -> None:
    done = run(sys.executable, str(PROJECT / "examples" / "blobs" / f"{name}.py"), blobs.connection_string)
    assert (done.stdout, done.returncode) == (EXPECTED[name], 0), done.stderr


def test_the_guide_prints_what_it_says(blobs: BlobServer) -> None:
    session = "\n".join(re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL))
    said = re.findall(r"^ *print\(.*\) +# (.*)$", session, re.MULTILINE)
    assert len(said) == session.count("print(")
    done = run(sys.executable, "-c", session.replace("UseDevelopmentStorage=true", blobs.connection_string))
    assert (done.stdout.splitlines(), done.returncode) == (said, 0), done.stderr


def test_the_guide_names_every_example_and_its_picture() -> None:
    examples = {path.stem for path in Path(EXAMPLE).parent.glob("*.py")}
    assert examples == set(EXPECTED)
    assert all(f"{name}.py" in GUIDE for name in examples)
    assert f"(../pictures/{PICTURE_NAME})" in GUIDE


def test_the_figures_of_the_picture_show_the_hot_end() -> None:
    by_time, spread = read_figures().values()
    assert [(each["hot"], each["request_units"] > 0) for each in by_time] == [(False, False)] * 3 + [(True, True)]
    assert [(each["hot"], each["request_units"] > 0) for each in spread] == [(False, True)] * 4


# --- partitions -------------------------------------------------------------------------------------------------------


def partitions(server: RunningServer, *names: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run_well(server, "partitions", *names, "--format", "json"))
    return found


def upload_until_hot(server: RunningServer, container: ContainerClient) -> tuple[dict[str, Any], str]:
    """Upload blobs named by time until their range is shown to be hot; return the range, and what the command prints.

    The server measures every few seconds: a command that takes longer than that may find the load over again."""
    example, number = load_example(), 0
    deadline = time.monotonic() + 2 * WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        for _ in range(50):
            container.upload_blob(example.name_of(example.FIRST + timedelta(minutes=number)), bytes(1000))
            number += 1
        (only,) = partitions(server, "--blob", container.container_name)["partitions"]
        text = run_well(server, "partitions", "--blob", container.container_name)
        if only["hot"] and "HOT" in text:
            return {**only, "uploaded": number}, text
    raise AssertionError("no range became hot")


def test_names_by_time_are_shown_as_a_hotspot(tmp_path: Path) -> None:
    limit = f"ordered-range-ru-per-second={HOT_RU_PER_SECOND}"
    with running_server(tmp_path, "--limit", limit, doors=("nosql", "blob"), alone=True) as server:
        container = BlobServer(server).service().create_container("photos")
        hot, text = upload_until_hot(server, container)
    assert (hot["drift"], hot["items"]) == ("rising", hot["uploaded"])
    assert "all of the load is at the upper end of the line" in hot["says"]
    assert "HOT, hotspot, keys rising" in text


def test_ranges_of_blobs_show_names_sizes_and_the_largest(blobs: BlobServer) -> None:
    server = blobs.running
    container = blobs.service().create_container(f"ranges-{time.time_ns()}")
    for number in range(8):
        container.upload_blob(f"folder/{number}.bin", bytes(300_000))
    container.upload_blob("folder/7.bin/ü", b"x")
    name = container.container_name
    (only,) = partitions(server, "--blob", name)["partitions"]
    assert (only["items"], only["start_key"], only["end_key"]) == (9, None, None)
    assert only["bytes"] > 8 * 300_000
    assert '["folder/0.bin"]' in run_well(server, "partitions", "--blob", name, "--details")
    assert "There is no container of blobs" in failure_of(server, "partitions", "--blob", "nosuch")


def test_a_queue_is_shown_in_its_range(queues: QueueServer) -> None:
    other = queues.of_new_account()
    for name in ("jobs", "mail"):
        other.service().create_queue(name).send_message("first")
    account = ("--account", other.account)
    shown = partitions(queues.running, "--queue", "mail", *account)
    assert (shown["own_partition"], shown["totals"]["items"]) == ("0", 2)
    assert partitions(queues.running, "--queue", "*", *account)["own_partition"] is None
    text = run_well(queues.running, "partitions", "--queue", "mail", "--details", *account)
    assert "The queue mail is in partition 0." in text
    assert '["jobs"]' in text
    assert failure_of(queues.running, "partitions", "--queue", "nosuch", *account).endswith(
        "There is no queue 'nosuch'."
    )


@pytest.mark.parametrize(
    "arguments", [["--blob", "a", "--queue", "b"], ["db", "c", "--blob", "a"], ["--table", "t", "--blob", "a"]]
)
def test_the_command_wants_one_thing(arguments: list[str], blobs: BlobServer) -> None:
    done = run(sys.executable, "-m", "asterism", "partitions", *arguments, "--endpoint", blobs.running.endpoint)
    assert done.returncode == 2
    assert "--table NAME" in done.stderr
