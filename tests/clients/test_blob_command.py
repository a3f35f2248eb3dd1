"""`asterism blobs`, as its user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient

from tests.clients.blob_server import BlobServer
from tests.support.commands import failure_of, run, run_well
from tests.support.server import PROGRAM, WAIT_SECONDS_MAX, environment

# Two blocks and the beginning of a third one.
LARGE = os.urandom(1024 * 1024) * 9


@pytest.fixture
def container(blobs: BlobServer) -> Iterator[ContainerClient]:
    made = blobs.service().create_container(f"command-{uuid.uuid4()}")
    yield made
    made.delete_container()


def content(container: ContainerClient, name: str) -> bytes:
    return container.download_blob(name).readall()


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_container_is_made_filled_seen_and_deleted(blobs: BlobServer, tmp_path: Path) -> None:
    server, name = blobs.running, f"made-{uuid.uuid4()}"
    cat = tmp_path / "cat.txt"
    cat.write_bytes(b"meow")
    assert (
        run_well(server, "blobs", "create", name, "--metadata", "color=blue") == f"The container {name} is created.\n"
    )
    assert "exists" in failure_of(server, "blobs", "create", name)
    assert run_well(server, "blobs", "put", name, str(cat)) == f"{name}/cat.txt: 4 B written.\n"
    run_well(server, "blobs", "put", name, str(cat), "2026/ü <1>.txt", "--metadata", "owner=me")
    found = blobs.service().get_blob_client(name, "2026/ü <1>.txt").get_blob_properties()
    assert (found.metadata, found.content_settings.content_type) == ({"owner": "me"}, "text/plain")
    assert name in run_well(server, "blobs", "list", "--prefix", name)
    assert "ü <1>.txt" in run_well(server, "blobs", "list", name)
    listed = json.loads(run_well(server, "blobs", "list", name, "--folders", "--format", "json"))["blobs"]
    assert listed[0] == {"folder": "2026/"}
    assert (listed[1]["name"], listed[1]["kind"], listed[1]["bytes"]) == ("cat.txt", "BlockBlob", 4)
    assert "more than 1" in run_well(server, "blobs", "list", name, "--limit", "1")
    assert run_well(server, "blobs", "delete", name, "cat.txt") == f"{name}/cat.txt is deleted.\n"
    assert run_well(server, "blobs", "delete", name) == f"The container {name} is deleted.\n"
    assert failure_of(server, "blobs", "list", name) == "asterism: The specified container does not exist."


def test_a_blob_is_replaced_only_when_that_is_asked(
    blobs: BlobServer, container: ContainerClient, tmp_path: Path
) -> None:
    server, name = blobs.running, container.container_name
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"small")
    large.write_bytes(LARGE)
    run_well(server, "blobs", "put", name, str(large), "blob")
    for file in (small, large):
        assert failure_of(server, "blobs", "put", name, str(file), "blob").endswith("exists; --overwrite replaces it")
    assert content(container, "blob") == LARGE
    run_well(server, "blobs", "put", name, str(small), "blob", "--overwrite")
    assert content(container, "blob") == b"small"


def test_a_large_blob_comes_back_as_it_was_with_its_md5(
    blobs: BlobServer, container: ContainerClient, tmp_path: Path
) -> None:
    server, name, target = blobs.running, container.container_name, tmp_path / "copy"
    source = tmp_path / "large.bin"
    source.write_bytes(LARGE)
    run_well(server, "blobs", "put", name, str(source))
    assert container.get_blob_client("large.bin").get_blob_properties().content_settings.content_md5
    assert run_well(server, "blobs", "get", name, "large.bin", str(target)) == f"{target}: 9.0 MB written.\n"
    assert target.read_bytes() == LARGE
    assert "--overwrite" in failure_of(server, "blobs", "get", name, "large.bin", str(target))
    run_well(server, "blobs", "get", name, "large.bin", str(target), "--overwrite")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "large.bin"]


def test_data_that_do_not_fit_their_md5_make_no_file(
    blobs: BlobServer, container: ContainerClient, tmp_path: Path
) -> None:
    blob = container.get_blob_client("wrong")
    blob.upload_blob(b"right")
    settings = blob.get_blob_properties().content_settings
    settings.content_md5 = bytearray(b"0123456789abcdef")
    blob.set_http_headers(settings)
    failure = failure_of(blobs.running, "blobs", "get", container.container_name, "wrong", str(tmp_path / "file"))
    assert "does not have the MD5" in failure
    assert list(tmp_path.iterdir()) == []


def test_a_blob_is_written_of_the_input_and_to_the_output(blobs: BlobServer, container: ContainerClient) -> None:
    name = container.container_name

    def piped(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*PROGRAM, "blobs", *arguments, "--endpoint", blobs.running.endpoint],
            input=given,
            capture_output=True,
            env=environment(),
            timeout=WAIT_SECONDS_MAX,
            check=False,
        )

    assert piped("put", name, "-", "piped", given=LARGE).returncode == 0
    assert content(container, "piped") == LARGE
    assert piped("get", name, "piped", "-").stdout == LARGE
    assert piped("put", name, "-", given=b"x").returncode == 2


def test_a_folder_goes_up_and_comes_down_as_it_was(
    blobs: BlobServer, container: ContainerClient, tmp_path: Path
) -> None:
    server, name = blobs.running, container.container_name
    files = {f"photos/{number:03}.bin": os.urandom(number * 10) for number in range(60)}
    files |= {"large.bin": LARGE, "empty": b"", "a/b/c/d.txt": b"deep", "ü/名 1.txt": b"named"}
    source = write_files(tmp_path / "source", files)
    total = "9.0 MB"
    arguments = (name, str(source), "--prefix", "set/", "--connections", "3")
    assert run_well(server, "blobs", "upload", *arguments) == f"64 files, {total}, written to {name}.\n"
    assert {blob.name for blob in container.list_blobs()} == {f"set/{path}" for path in files}
    target = tmp_path / "target"
    answer = run_well(server, "blobs", "download", name, str(target), "--prefix", "set/photos/")
    assert answer == f"60 files, 17.3 KB, written to {target}.\n"
    finished = run(server, "blobs", "download", name, str(target))
    assert finished.returncode == 1
    assert "60 files left as it was before" in finished.stderr
    assert read_files(target) == {f"set/{path}": data for path, data in files.items()}


def test_what_exists_is_left_and_the_rest_is_moved(
    blobs: BlobServer, container: ContainerClient, tmp_path: Path
) -> None:
    server, name = blobs.running, container.container_name
    container.upload_blob("old", b"as it was")
    source = write_files(tmp_path / "source", {"old": b"changed", "new": b"new"})
    finished = run(server, "blobs", "upload", name, str(source))
    assert (finished.returncode, finished.stdout) == (1, f"1 file, 3 B, written to {name}.\n")
    assert "1 file left as it was before ('old'): --overwrite replaces" in finished.stderr
    assert (content(container, "old"), content(container, "new")) == (b"as it was", b"new")
    run_well(server, "blobs", "upload", name, str(source), "--overwrite")
    assert content(container, "old") == b"changed"


@pytest.mark.parametrize("outside", ["../outside", "/outside", "a/../../outside", "a//b", "folder/", "./here"])
def test_no_file_is_written_outside_the_folder(
    outside: str, blobs: BlobServer, container: ContainerClient, tmp_path: Path
) -> None:
    # The official client would change such names; other programs write them as they are.
    source = tmp_path / "source"
    source.write_bytes(b"x")
    run_well(blobs.running, "blobs", "put", container.container_name, str(source), outside)
    container.upload_blob("inside", b"fine")
    target = tmp_path / "target"
    finished = run(blobs.running, "blobs", "download", container.container_name, str(target))
    assert finished.returncode == 1
    assert "cannot be files in" in finished.stderr
    assert read_files(tmp_path) == {"source": b"x", "target/inside": b"fine"}


def test_a_link_in_the_folder_is_not_followed(blobs: BlobServer, container: ContainerClient, tmp_path: Path) -> None:
    elsewhere, target = tmp_path / "elsewhere", tmp_path / "target"
    write_files(elsewhere, {"secret": b"secret"})
    target.mkdir()
    (target / "link").symlink_to(elsewhere)
    for name in ("link/file", "link/new/folder/file", "other"):
        container.upload_blob(name, b"x")
    finished = run(blobs.running, "blobs", "download", container.container_name, str(target))
    assert (finished.returncode, finished.stdout) == (1, f"1 file, 1 B, written to {target}.\n")
    assert "2 files left out, because their names cannot be files in" in finished.stderr
    assert (read_files(elsewhere), list(elsewhere.iterdir())) == ({"secret": b"secret"}, [elsewhere / "secret"])
    (target / "other").unlink()
    finished = run(blobs.running, "blobs", "upload", container.container_name, str(target), "--prefix", "up/")
    assert (finished.returncode, "link" in finished.stderr) == (1, True)
    assert [blob.name for blob in container.list_blobs(name_starts_with="up/")] == []


@pytest.mark.parametrize("option", ["--connections=1", "--overwrite"])
def test_a_name_that_no_file_can_have_does_not_stop_the_others(
    option: str, blobs: BlobServer, container: ContainerClient, tmp_path: Path
) -> None:
    long = "名" * 80
    for name in ("a", "b" * 300, f"c/{'d' * 300}/e", long, "last"):
        container.upload_blob(name, b"x")
    finished = run(blobs.running, "blobs", "download", container.container_name, str(tmp_path), option)
    assert (finished.returncode, finished.stdout) == (1, f"3 files, 3 B, written to {tmp_path}.\n")
    assert "2 files left out, because their names cannot be files in" in finished.stderr
    assert read_files(tmp_path) == {"a": b"x", long: b"x", "last": b"x"}


@pytest.mark.parametrize("option", ["--connections=1", "--overwrite"])
@pytest.mark.parametrize("names", [("both", "both/inside"), ("both0", "both0/inside/it")])
def test_a_name_that_is_a_file_and_a_folder_is_said(
    names: tuple[str, str], option: str, blobs: BlobServer, container: ContainerClient, tmp_path: Path
) -> None:
    for name in (*names, "last"):
        container.upload_blob(name, b"x")
    finished = run(blobs.running, "blobs", "download", container.container_name, str(tmp_path), option)
    assert (finished.returncode, finished.stdout) == (1, f"2 files, 2 B, written to {tmp_path}.\n")
    assert "1 file left out, because their names cannot be files in" in finished.stderr
    assert "left as it was before" not in finished.stderr


def test_a_folder_in_the_place_of_a_file_is_not_a_file_that_was_there(
    blobs: BlobServer, container: ContainerClient, tmp_path: Path
) -> None:
    container.upload_blob("name", b"x")
    (tmp_path / "name").mkdir()
    for option in ("--connections=1", "--overwrite"):
        failure = failure_of(blobs.running, "blobs", "download", container.container_name, str(tmp_path), option)
        assert failure.endswith(f"1 file left out, because their names cannot be files in {tmp_path} ('name')")
    failure = failure_of(
        blobs.running, "blobs", "get", container.container_name, "name", str(tmp_path / "name"), "--overwrite"
    )
    assert failure.endswith("name is a folder")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("list", "none-such"), "The specified container does not exist."),
        (("get", "none-such", "x", "-"), "none-such/x does not exist"),
        (("get", "none-such", "a/.."), "cannot be the name of a file"),
        (("put", "none-such", "/no/such/file"), "cannot be read: No such file or directory"),
        (("upload", "none-such", "/no/such/folder"), "is not a folder"),
        (("create", "Bad_Name"), "invalid"),
        (("delete", "box/blob"), "'box/blob' cannot be a name"),
        (("list", "box/folder"), "'box/folder' cannot be a name"),
        (("delete", ""), "'' cannot be a name"),
        (("put", "none-such", "/dev/null", "blob", "--type", "ü"), "cannot be the value of x-ms-blob-content-type"),
        (("delete", "none-such", "\udcff"), "bytes that are not UTF-8"),
    ],
)
def test_a_command_that_cannot_be_done_says_why(blobs: BlobServer, arguments: tuple[str, ...], sentence: str) -> None:
    assert sentence in failure_of(blobs.running, "blobs", *arguments)


def test_the_help_teaches_by_examples(blobs: BlobServer) -> None:
    text = run_well(blobs.running, "blobs", "--help")
    assert all(part in text for part in ("blobs put photos cat.jpg", "download", "partitions --blob photos"))
