"""The protocol's headers: their names, and those of every response."""

from __future__ import annotations

from typing import Final

from asterism.apis.transports.http import HeaderList

# --- of requests ----------------------------------------------------------------------------------------------------

ACCESS_DATE: Final = "x-ms-date"
ALLOW_CROSS_PARTITION: Final = "x-ms-documentdb-query-enablecrosspartition"
AUTHORIZATION: Final = "authorization"
AUTOSCALE_SETTINGS: Final = "x-ms-cosmos-offer-autopilot-settings"
BATCH_ATOMIC: Final = "x-ms-cosmos-batch-atomic"
BATCH_CONTINUE_ON_ERROR: Final = "x-ms-cosmos-batch-continue-on-error"
CHANGE_FEED: Final = "a-im"
CONSISTENCY_LEVEL: Final = "x-ms-consistency-level"
CONTINUATION: Final = "x-ms-continuation"
END_EPK: Final = "x-ms-end-epk"
EXPIRY_SECONDS: Final = "x-ms-documentdb-expiry-seconds"
# Asterism's own: the work of a query, as JSON in EXPLANATION.
EXPLAIN: Final = "x-asterism-explain"
IF_MATCH: Final = "if-match"
IF_MODIFIED_SINCE: Final = "if-modified-since"
IF_NONE_MATCH: Final = "if-none-match"
# Asterism's own: a feed of items then lists in UNINDEXED_ITEMS those that were left out of the index.
INDEX_MARKS: Final = "x-asterism-index-marks"
INTENDED_CONTAINER_RID: Final = "x-ms-cosmos-intended-collection-rid"
IS_BATCH: Final = "x-ms-cosmos-is-batch-request"
IS_QUERY: Final = "x-ms-documentdb-isquery"
IS_QUERY_PLAN: Final = "x-ms-cosmos-is-query-plan-request"
IS_UPSERT: Final = "x-ms-documentdb-is-upsert"
MAX_ITEM_COUNT: Final = "x-ms-max-item-count"
OFFER_THROUGHPUT: Final = "x-ms-offer-throughput"
PARTITION_KEY: Final = "x-ms-documentdb-partitionkey"
POPULATE_INDEX_METRICS: Final = "x-ms-cosmos-populateindexmetrics"
POPULATE_INDEX_METRICS_V2: Final = "x-ms-cosmos-populateindexmetrics-v2"
POPULATE_PARTITION_STATISTICS: Final = "x-ms-documentdb-populatepartitionstatistics"
POPULATE_QUERY_METRICS: Final = "x-ms-documentdb-populatequerymetrics"
INDEXING_DIRECTIVE: Final = "x-ms-indexing-directive"
POPULATE_QUOTA: Final = "x-ms-documentdb-populatequotainfo"
POST_TRIGGERS: Final = "x-ms-documentdb-post-trigger-include"
PREFER: Final = "prefer"
PRE_TRIGGERS: Final = "x-ms-documentdb-pre-trigger-include"
PRIORITY_LEVEL: Final = "x-ms-cosmos-priority-level"
SCRIPT_LOGGING: Final = "x-ms-documentdb-script-enable-logging"
SUPPORTED_QUERY_FEATURES: Final = "x-ms-cosmos-supported-query-features"
START_EPK: Final = "x-ms-start-epk"
THROUGHPUT_BUCKET: Final = "x-ms-cosmos-throughput-bucket"

# --- of both, and of responses --------------------------------------------------------------------------------------

ACTIVITY_ID: Final = "x-ms-activity-id"
ALT_CONTENT_PATH: Final = "x-ms-alt-content-path"
CHARGE: Final = "x-ms-request-charge"
CONTENT_PATH: Final = "x-ms-content-path"
CONTENT_TYPE: Final = "content-type"
ETAG: Final = "etag"
EXPLANATION: Final = "x-asterism-explanation"
INDEX_PROGRESS: Final = "x-ms-documentdb-collection-index-transformation-progress"
INDEX_UTILIZATION: Final = "x-ms-cosmos-index-utilization"
ITEM_COUNT: Final = "x-ms-item-count"
LSN: Final = "lsn"
MIN_THROUGHPUT: Final = "x-ms-cosmos-min-throughput"
OFFER_REPLACE_PENDING: Final = "x-ms-offer-replace-pending"
PARTITION_RANGE_ID: Final = "x-ms-documentdb-partitionkeyrangeid"
QUERY_METRICS: Final = "x-ms-documentdb-query-metrics"
RESOURCE_QUOTA: Final = "x-ms-resource-quota"
RESOURCE_USAGE: Final = "x-ms-resource-usage"
RETRY_AFTER: Final = "x-ms-retry-after-ms"
SCRIPT_LOG: Final = "x-ms-documentdb-script-log-results"
SESSION_TOKEN: Final = "x-ms-session-token"
SUBSTATUS: Final = "x-ms-substatus"
# The order of ties: clients that continue in the middle of equal values skip rows by their resource ids.
QUERY_EXECUTION_INFO: Final = "x-ms-cosmos-query-execution-info"
# The indexes of such items on the page, as `0,7,8`.
UNINDEXED_ITEMS: Final = "x-asterism-unindexed-items"

# Clients take these for the versions of the service's parts; none of them decides anything by them.
COMMON: Final[tuple[tuple[str, str], ...]] = (
    (CONTENT_TYPE, "application/json"),
    ("x-ms-version", "2020-07-15"),
    ("x-ms-gatewayversion", "version=2.14.0"),
    ("x-ms-serviceversion", "version=2.14.0.0"),
    ("x-ms-schemaversion", "1.18"),
)

# The Python client writes its booleans with a capital, the JavaScript one without.
_TRUE: Final = frozenset({"True", "true", "TRUE"})


def is_true(value: str | None) -> bool:
    return value in _TRUE


def metadata_headers(*, charge: float, etag: str | None = None) -> HeaderList:
    """Return the headers of answers about databases, containers, offers and ranges."""
    headers = [*COMMON, (CHARGE, str(charge))]
    if etag is not None:
        headers.append((ETAG, etag))
    return headers
