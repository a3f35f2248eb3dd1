"""The metrics of a query in headers: times, counts and the indexes it used, in both clients' encodings."""

from __future__ import annotations

import binascii
from urllib.parse import quote

from asterism.apis.nosql import headers
from asterism.apis.nosql.headers import is_true
from asterism.apis.transports.http import HeaderList, Headers
from asterism.models.documents.container import Container
from asterism.reading.access_plan import path_text
from asterism.reading.query_page import QueryPage
from asterism.values.json.text import dumps


def metrics_headers(given: Headers, container: Container, page: QueryPage, *, seconds: float) -> HeaderList:
    metrics: HeaderList = []
    if is_true(given.get(headers.POPULATE_QUERY_METRICS)):
        metrics.append((headers.QUERY_METRICS, _query_metrics(page, seconds * 1000)))
    if is_true(given.get(headers.POPULATE_INDEX_METRICS)):
        text = dumps(index_metrics(given, container, page))
        metrics.append((headers.INDEX_UTILIZATION, binascii.b2a_base64(text, newline=False).decode("ascii")))
    elif is_true(given.get(headers.POPULATE_INDEX_METRICS_V2)):
        metrics.append((headers.INDEX_UTILIZATION, quote(dumps(index_metrics(given, container, page)).decode())))
    return metrics


def index_metrics(given: Headers, container: Container, page: QueryPage) -> dict[str, list[dict[str, object]]]:
    single = [path for path in page.indexes_used if not path.startswith("(")]
    if given.get(headers.PARTITION_KEY) is not None:
        # A named partition key is itself a way to the items.
        single += [path_text(segments) for segments in container.record.definition.segments]
    return {
        "UtilizedSingleIndexes": [_single(path) for path in dict.fromkeys(single)],
        "PotentialSingleIndexes": [],
        "UtilizedCompositeIndexes": [
            {"IndexSpecs": path.strip("()").split(", "), "IndexPreciseSet": True, "IndexImpactScore": "High"}
            for path in page.indexes_used
            if path.startswith("(")
        ],
        "PotentialCompositeIndexes": [],
    }


def _single(path: str) -> dict[str, object]:
    return {
        "FilterExpression": "",
        "IndexSpec": path,
        "FilterPreciseSet": True,
        "IndexPreciseSet": True,
        "IndexImpactScore": "High",
    }


def _query_metrics(page: QueryPage, milliseconds: float) -> str:
    ratio = min(1.0, len(page.results) / page.items_loaded) if page.items_loaded else 1.0
    figures = {
        "totalExecutionTimeInMs": round(milliseconds, 2),
        "queryCompileTimeInMs": 0.0,
        "queryLogicalPlanBuildTimeInMs": 0.0,
        "queryPhysicalPlanBuildTimeInMs": 0.0,
        "queryOptimizationTimeInMs": 0.0,
        "VMExecutionTimeInMs": round(milliseconds, 2),
        "indexLookupTimeInMs": 0.0,
        "instructionCount": 0,
        "documentLoadTimeInMs": 0.0,
        "systemFunctionExecuteTimeInMs": 0.0,
        "userFunctionExecuteTimeInMs": 0.0,
        "retrievedDocumentCount": page.items_loaded,
        "retrievedDocumentSize": page.bytes_loaded,
        "outputDocumentCount": len(page.results),
        "outputDocumentSize": page.bytes_returned,
        "writeOutputTimeInMs": 0.0,
        "indexUtilizationRatio": round(ratio, 2),
    }
    # No semicolon at the end: the JavaScript client cannot read one.
    return ";".join(f"{name}={value}" for name, value in figures.items())
