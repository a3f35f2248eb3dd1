"""Folders on their way into containers of blobs and back: a blob for each file, over several connections."""

from __future__ import annotations

import errno
import mimetypes
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from asterism.cli.blob_files import Advance, TargetExists, TargetImpossible, download_file, upload_file
from asterism.cli.blob_mover import Connections, Moved, Mover
from asterism.cli.blob_pages import ListedBlob
from asterism.cli.failure import CommandFailed
from asterism.cli.storage_client import StorageClient

_NUL: Final = "\0"
_PARTIAL_SUFFIX: Final = ".asterism-part"
# Of the name of a file that is not whole yet: with four bytes each and the rest of the name, 255 bytes are enough.
_PARTIAL_CHARACTERS_MAX: Final = 50
# Errors that another name would not have. After all others, such as a full disk, a download stops.
_ERRORS_OF_NAMES: Final = frozenset(
    {errno.EEXIST, errno.EILSEQ, errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR}
)

# Gets how many files and bytes more there are to move.
Grow = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class LocalFile:
    path: Path
    blob: str
    size: int


# --- up ---------------------------------------------------------------------------------------------------------------


def files_of(folder: Path, prefix: str) -> Iterator[LocalFile | str]:
    """Yield the files below a folder in the order of their names; as texts, those that no blob can be made of, such as
    links, which may lead out of the folder."""
    if not folder.is_dir():
        raise CommandFailed(f"{folder} is not a folder")
    for parent, folders, names in os.walk(folder):
        folders.sort()
        yield from (f"{os.path.join(parent, name)} (link)" for name in folders if os.path.islink(Path(parent, name)))
        for name in sorted(names):
            path = Path(parent, name)
            relative = path.relative_to(folder).as_posix()
            if path.is_symlink() or not path.is_file() or not _is_unicode(relative):
                yield relative.encode("utf-8", "replace").decode()
            else:
                yield LocalFile(path, prefix + relative, path.stat().st_size)


def upload_folder(
    connections: Connections,
    container: str,
    files: Iterable[LocalFile | str],
    *,
    may_replace: bool,
    advance: Advance,
    grow: Grow,
) -> Moved:
    def move(file: LocalFile, check: Advance) -> int:
        with connections.client() as client:
            return upload_path(client, f"{container}/{file.blob}", file.path, may_replace=may_replace, advance=check)

    def wanted(moved: Moved) -> Iterator[tuple[str, LocalFile]]:
        for file in files:
            if isinstance(file, LocalFile):
                grow(1, file.size)
                yield file.blob, file
            else:
                moved.refused.append(file)

    return Mover(connections.count, move, advance).run(wanted)


def upload_path(
    client: StorageClient,
    path: str,
    file: Path,
    *,
    may_replace: bool,
    advance: Advance,
    headers: dict[str, str] | None = None,
) -> int:
    """Write a blob of a file, with a type of content after the file's name unless `headers` have one."""
    guessed = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    try:
        with file.open("rb") as source:
            return upload_file(
                client,
                path,
                source,
                size=file.stat().st_size,
                headers={"x-ms-blob-content-type": guessed, **(headers or {})},
                may_replace=may_replace,
                advance=advance,
            )
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror}") from None


# --- down -------------------------------------------------------------------------------------------------------------


def download_folder(
    connections: Connections,
    container: str,
    blobs: Iterable[ListedBlob],
    folder: Path,
    *,
    may_replace: bool,
    advance: Advance,
    grow: Grow,
) -> Moved:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        root = folder.resolve(strict=True)
    except OSError as error:
        raise CommandFailed(f"{folder} cannot be a folder: {error.strerror}") from None

    def move(blob: ListedBlob, check: Advance) -> int:
        with connections.client() as client:
            target = root.joinpath(*blob.name.split("/"))
            return download_path(
                client, f"{container}/{blob.name}", target, within=root, may_replace=may_replace, advance=check
            )

    def wanted(moved: Moved) -> Iterator[tuple[str, ListedBlob]]:
        for blob in blobs:
            if is_name_of_file(blob.name):
                grow(1, blob.size)
                yield blob.name, blob
            else:
                moved.refused.append(blob.name)

    return Mover(connections.count, move, advance).run(wanted)


def is_name_of_file(name: str) -> bool:
    """Return True if a file inside a folder can have the name of a blob: no part of it leads out of the folder."""
    parts = name.split("/")
    can_be_parts = all(part not in ("", ".", "..") and os.sep not in part for part in parts)
    return can_be_parts and _NUL not in name and _is_unicode(name)


def _is_unicode(name: str) -> bool:
    """Return True for a name without bytes, or halves of characters, that no other system could read."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def download_path(
    client: StorageClient,
    path: str,
    target: Path,
    *,
    within: Path | None = None,
    may_replace: bool,
    advance: Advance,
) -> int:
    """Write a file of a blob. It appears when it is whole. With `within`, links must not lead out of that folder."""
    try:
        _check_target(target, may_replace=may_replace)
        # Before any folder is made: making them follows the links as well.
        if within is not None and not Path(os.path.realpath(target.parent)).is_relative_to(within):
            raise TargetImpossible(f"{target} is outside {within}: a link leads there")
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f"{target.name[:_PARTIAL_CHARACTERS_MAX]}.{os.urandom(4).hex()}{_PARTIAL_SUFFIX}")
        try:
            with partial.open("xb") as written:
                size = download_file(client, path, written, advance=advance)
            _put_in_place(partial, target, may_replace=may_replace)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        failure = TargetImpossible if error.errno in _ERRORS_OF_NAMES else CommandFailed
        raise failure(f"{target} cannot be written: {error.strerror}") from None
    return size


def _check_target(target: Path, *, may_replace: bool) -> None:
    try:
        found = target.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISDIR(found.st_mode):
        raise TargetImpossible(f"{target} is a folder")
    if not may_replace:
        raise TargetExists(f"{target} exists")


def _put_in_place(partial: Path, target: Path, *, may_replace: bool) -> None:
    if may_replace:
        partial.replace(target)
        return
    try:
        # Fails if something has the name by now, which a renaming would replace.
        target.hardlink_to(partial)
    except FileExistsError:
        _check_target(target, may_replace=False)
        raise
    except OSError:
        # A file system without hard links.
        partial.replace(target)


def write_to(client: StorageClient, path: str, target: BinaryIO) -> int:
    """Write a blob to the standard output."""
    return download_file(client, path, target, advance=lambda _: None)
