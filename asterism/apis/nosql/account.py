"""The account itself: the first thing a client asks for, and where it learns which address to talk to."""

from __future__ import annotations

from asterism.apis.http import Request, Response
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.headers import metadata_headers
from asterism.values.json_text import dumps

# What the query engine behind the service tells of its limits. Clients read it when they build plans of their own.
_QUERY_ENGINE = {
    "maxSqlQueryInputLength": 262144,
    "maxJoinsPerSqlQuery": 10,
    "maxLogicalAndPerSqlQuery": 2000,
    "maxLogicalOrPerSqlQuery": 2000,
    "maxUdfRefPerSqlQuery": 10,
    "maxInExpressionItemsCount": 16000,
    "queryMaxInMemorySortDocumentCount": 500,
    "maxQueryRequestTimeoutFraction": 0.9,
    "sqlAllowNonFiniteNumbers": False,
    "sqlAllowAggregateFunctions": True,
    "sqlAllowSubQuery": True,
    "sqlAllowScalarSubQuery": True,
    "allowNewKeywords": True,
    "sqlAllowLike": True,
    "sqlAllowGroupByClause": True,
    "maxSpatialQueryCells": 12,
    "spatialMaxGeometryPointCount": 256,
    "sqlDisableQueryILOptimization": False,
    "sqlDisableFilterPlanOptimization": False,
    "sqlAllowTop": True,
    "enableSpatialIndexing": True,
}


async def read_account(context: Context, request: Request, parts: list[str]) -> Response:  # noqa: ARG001
    # The clients follow these addresses, scheme included, so they are the one the client came by.
    location = {"name": context.region, "databaseAccountEndpoint": f"{request.scheme}://{request.authority}/"}
    replicas = {"minReplicaSetSize": 1, "maxReplicasetSize": 1}
    account = {
        "_self": "",
        "id": _name_for_clients(context.account),
        "_rid": f"{context.account}.asterism",
        "media": "//media/",
        "addresses": "//addresses/",
        "_dbs": "//dbs/",
        "writableLocations": [location],
        "readableLocations": [location],
        "enableMultipleWriteLocations": False,
        "userReplicationPolicy": {"asyncReplication": False, **replicas},
        "userConsistencyPolicy": {"defaultConsistencyLevel": context.consistency},
        "systemReplicationPolicy": replicas,
        "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
        "queryEngineConfiguration": dumps(_QUERY_ENGINE).decode(),
    }
    return Response(200, metadata_headers(charge=0), dumps(account))


def _name_for_clients(account: str) -> str:
    # The JavaScript client takes "localhost" for an old emulator and then asks for the account before every request.
    return "asterism" if account == "localhost" else account
