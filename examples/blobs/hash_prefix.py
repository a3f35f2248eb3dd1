"""Blobs whose names begin with a time, and the prefix of three digits that spreads them.

A container is a line of names in their order, divided into ranges. Names that begin with a time grow at the end of the
line: whatever is uploaded now goes to the last range, and no division helps that. A prefix made from a hash of the name
itself sends each upload somewhere else, and needs no memory: the prefix is computed again from the name.

The price is the order: the blobs of a day lie in up to a thousand places. A tag finds them again.
"""

from __future__ import annotations

import hashlib
import sys
from datetime import UTC, datetime, timedelta

from azure.storage.blob import BlobServiceClient, ContainerClient

FIRST = datetime(2026, 11, 18, 22, tzinfo=UTC)
PHOTOS = 40


def with_prefix(name: str) -> str:
    """Return the name behind three digits, from 000 to 999, of its own hash: `588-2026-11-19/08-30.jpg`."""
    digest = hashlib.sha256(name.encode()).digest()
    return f"{int.from_bytes(digest[:8], 'big') % 1000:03}-{name}"


def name_of(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d/%H-%M-%S-%f.jpg")


def day_of(container: ContainerClient, day: str) -> list[str]:
    """Return the names of a day's photos without their prefix, in the order of time."""
    found = container.find_blobs_by_tags(f"\"day\" = '{day}'")
    return sorted(blob.name.partition("-")[2] for blob in found)


def main(connection_string: str) -> None:
    service = BlobServiceClient.from_connection_string(connection_string)
    by_time, spread = (service.get_container_client(name) for name in ("photos-by-time", "photos-spread"))
    for container in (by_time, spread):
        if container.exists():
            container.delete_container()
        container.create_container()
    for number in range(PHOTOS):
        name = name_of(FIRST + timedelta(minutes=5 * number))
        photo = f"photo {number}".encode()
        by_time.upload_blob(name, photo)
        spread.upload_blob(with_prefix(name), photo, tags={"day": name.partition("/")[0]})

    print("in the order of time:", [blob.name for blob in by_time.list_blobs(results_per_page=2)][:2])
    print("spread:", [blob.name for blob in spread.list_blobs()][:2])
    name = name_of(FIRST)
    print("read by its name:", spread.download_blob(with_prefix(name)).readall().decode())
    print("a day by its prefix:", len(list(by_time.list_blobs(name_starts_with="2026-11-19/"))))
    print("a day by its tag:", len(day_of(spread, "2026-11-19")))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "UseDevelopmentStorage=true")
