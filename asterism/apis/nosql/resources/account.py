"""The account itself: the first thing a client asks for, and where it learns which address to talk to."""

from __future__ import annotations

from asterism.apis.nosql.call import Call
from asterism.apis.nosql.headers import metadata_headers
from asterism.apis.transports.http import Response
from asterism.values.json.text import dumps

# The limits of the service's query engine. Clients read them when they build plans of their own.
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


async def read_account(call: Call) -> Response:
    context, request = call.context, call.request
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
