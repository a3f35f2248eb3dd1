"""The statistics of a secondary location."""

from __future__ import annotations

from asterism.apis.storage.headers import http_date
from asterism.apis.storage.xml_text import leaf, node


def statistics_xml(now_wall_seconds: float) -> str:
    """Return the statistics. Both locations are this server, so the secondary is never behind."""
    synced = http_date(now_wall_seconds)
    replication = node("GeoReplication", leaf("Status", "live") + leaf("LastSyncTime", synced))
    return node("StorageServiceStats", replication)
