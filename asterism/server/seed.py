"""A JSON file whose properties doors make data of, at the first start of a data directory.

The file is checked whole before anything is created. The next start completes a seed that a crash interrupted, and
only then marks the data directory as seeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asterism.apis.door_spec import SeedSpec
from asterism.apis.services import DoorServices
from asterism.apis.settings import StartRefused
from asterism.errors import MalformedRequest
from asterism.server.data_directory import DataDirectory
from asterism.values.json.text import loads


async def apply_seed(file: Path, seeds: Sequence[SeedSpec], services: DoorServices, directory: DataDirectory) -> str:
    """Create what the file says, unless that was done before; return which it was, for the operator."""
    if directory.is_seeded():
        return f"The data directory was seeded before; {file} is not applied again."
    counts: list[str] = []
    for seed, content in read_seed(file, seeds):
        counts += await seed.create(services, content)
    directory.mark_seeded()
    return f"Seeded from {file}: {', '.join(counts)}."


def read_seed(file: Path, seeds: Sequence[SeedSpec]) -> list[tuple[SeedSpec, Any]]:
    """Return what each door has to create."""
    try:
        content = loads(file.read_bytes())
    except OSError as error:
        raise StartRefused(f"the seed file {file} cannot be read: {error.strerror}") from None
    except MalformedRequest as malformed:
        raise StartRefused(f"the seed file {file}: {malformed.reason}") from None
    if not isinstance(content, dict):
        raise StartRefused(f"{file}: a JSON object is expected here")
    # A file without any property that is known is refused in the words of the first.
    given = [seed for seed in seeds if seed.name in content] or seeds[:1]
    return [(seed, seed.read(content.get(seed.name), str(file))) for seed in given]
