"""A report that is written in blocks, locked, changed, looked at as it was, found by a tag, and shared for an hour."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.blob import BlobClient, BlobSasPermissions, BlobServiceClient, generate_blob_sas

HEAD = b"month,total\n"
LINES = [b"2026-09,120\n", b"2026-10,140\n"]


def main(connection_string: str) -> None:
    service = BlobServiceClient.from_connection_string(connection_string)
    reports = service.get_container_client("reports")
    if reports.exists():
        reports.delete_container()
    reports.create_container()

    # Uploads and downloads: the client sends large data in blocks, and asks for large blobs in ranges.
    report = reports.upload_blob("2026/sales.csv", HEAD + b"".join(LINES), metadata={"owner": "ada"})
    print("whole:", report.download_blob().readall().decode().split())
    print("a range:", report.download_blob(offset=len(HEAD), length=7).readall().decode())
    try:
        report.upload_blob(b"by mistake")
    except ResourceExistsError:
        print("not replaced: overwrite=True was not given")

    # A snapshot keeps what the blob is now; it shares the data with the blob.
    snapshot = report.create_snapshot()["snapshot"]

    # A lease is a lock with an end: for its time only its holder changes the blob.
    lease = report.acquire_lease(lease_duration=15)
    try:
        report.upload_blob(b"by another program", overwrite=True)
    except HttpResponseError as refusal:
        print("locked:", refusal.status_code)
    report.upload_blob(HEAD + b"2026-11,150\n", overwrite=True, lease=lease)
    lease.release()
    print("now:", report.download_blob().readall().decode().split()[1])
    before = reports.get_blob_client("2026/sales.csv", snapshot=snapshot)
    print("as it was:", before.download_blob().readall().decode().split()[1:])

    # Tags are found over all containers of the account, whatever the names are.
    report.set_blob_tags({"state": "final", "month": "2026-11"})
    found = service.find_blobs_by_tags("\"state\" = 'final' AND \"month\" >= '2026-10'")
    print("final:", [blob.name for blob in found if blob.container_name == "reports"])

    # Until it ends, a signature permits reading this blob by its URL, and nothing else.
    shared = BlobClient.from_blob_url(f"{report.url}?{signature_for(report)}")
    print("shared:", shared.get_blob_properties().size, "bytes")
    try:
        shared.delete_blob()
    except HttpResponseError as refusal:
        print("not permitted:", refusal.status_code)


def signature_for(blob: BlobClient) -> str:
    return generate_blob_sas(
        blob.account_name,
        blob.container_name,
        blob.blob_name,
        account_key=blob.credential.account_key,
        permission=BlobSasPermissions(read=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "UseDevelopmentStorage=true")
