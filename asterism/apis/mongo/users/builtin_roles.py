"""The roles that every database has, and those of `admin` that reach over all databases, with their actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ADMIN: Final = "admin"

READ: Final = frozenset(
    {"changeStream", "collStats", "dbHash", "dbStats", "find", "killCursors", "listCollections", "listIndexes"}
)
READ_WRITE: Final = READ | {
    "convertToCapped", "createCollection", "createIndex", "dropCollection", "dropIndex", "insert", "remove",
    "renameCollectionSameDB", "update",
}  # fmt: skip
DATABASE_ADMIN: Final = frozenset(
    {
        "bypassDocumentValidation", "collMod", "collStats", "compact", "convertToCapped", "createCollection",
        "createIndex", "dbStats", "dropCollection", "dropDatabase", "dropIndex", "enableProfiler", "indexStats",
        "listCollections", "listIndexes", "planCacheIndexFilter", "planCacheRead", "planCacheWrite", "reIndex",
        "renameCollectionSameDB", "storageDetails", "validate",
    }
)  # fmt: skip
USER_ADMIN: Final = frozenset(
    {
        "changeCustomData", "changePassword", "createRole", "createUser", "dropRole", "dropUser", "grantRole",
        "revokeRole", "setAuthenticationRestriction", "viewRole", "viewUser",
    }
)  # fmt: skip
SHARDING: Final = frozenset(
    {"clearJumboFlag", "enableSharding", "moveChunk", "refineCollectionShardKey", "reshardCollection", "splitChunk",
     "splitVector"}
)  # fmt: skip
_MONITOR_CLUSTER: Final = frozenset(
    {
        "connPoolStats", "getCmdLineOpts", "getDefaultRWConcern", "getLog", "getParameter", "getShardMap", "hostInfo",
        "inprog", "listDatabases", "listSessions", "listShards", "netstat", "replSetGetConfig", "replSetGetStatus",
        "serverStatus", "shardingState", "top",
    }
)  # fmt: skip
_MONITOR_DATABASES: Final = frozenset({"collStats", "dbStats", "getShardVersion", "indexStats"})
_MANAGER_CLUSTER: Final = frozenset(
    {
        "addShard", "appendOplogNote", "applicationMessage", "cleanupOrphaned", "flushRouterConfig",
        "getClusterParameter", "getDefaultRWConcern", "getShardMap", "listSessions", "listShards", "removeShard",
        "replSetConfigure", "replSetGetConfig", "replSetGetStatus", "replSetStateChange", "resync",
        "setClusterParameter", "setDefaultRWConcern", "setFeatureCompatibilityVersion",
    }
)  # fmt: skip
_HOST_CLUSTER: Final = frozenset(
    {
        "applicationMessage", "closeAllDatabases", "connPoolSync", "flushRouterConfig", "fsync", "invalidateUserCache",
        "killAnyCursor", "killAnySession", "killop", "logRotate", "resync", "rotateCertificates", "setParameter",
        "shutdown", "touch", "unlock",
    }
)  # fmt: skip

# On its own database.
OF_DATABASE: Final[Mapping[str, frozenset[str]]] = {
    "read": READ,
    "readWrite": READ_WRITE,
    "dbAdmin": DATABASE_ADMIN,
    "dbOwner": READ_WRITE | DATABASE_ADMIN | USER_ADMIN,
    "userAdmin": USER_ADMIN,
    "enableSharding": frozenset({"enableSharding"}),
}

_LIST: Final = frozenset({"listDatabases"})
# Of `admin` alone: actions on every database, and on the cluster.
OF_ADMIN: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    "readAnyDatabase": (READ, _LIST),
    "readWriteAnyDatabase": (READ_WRITE, _LIST),
    "dbAdminAnyDatabase": (DATABASE_ADMIN, _LIST),
    "userAdminAnyDatabase": (USER_ADMIN, _LIST | {"invalidateUserCache"}),
    "clusterMonitor": (_MONITOR_DATABASES, _MONITOR_CLUSTER),
    "clusterManager": (SHARDING, _MANAGER_CLUSTER),
    "hostManager": (frozenset({"killCursors"}), _HOST_CLUSTER),
    "clusterAdmin": (
        _MONITOR_DATABASES | SHARDING | {"dropDatabase", "killCursors"},
        _MONITOR_CLUSTER | _MANAGER_CLUSTER | _HOST_CLUSTER,
    ),
    "backup": (READ, _LIST | {"appendOplogNote", "getParameter", "serverStatus"}),
    "restore": (READ_WRITE | DATABASE_ADMIN | USER_ADMIN, _LIST | {"getParameter"}),
    "root": (
        READ_WRITE | DATABASE_ADMIN | USER_ADMIN | SHARDING | _MONITOR_DATABASES,
        _MONITOR_CLUSTER | _MANAGER_CLUSTER | _HOST_CLUSTER | _LIST,
    ),
}
ALL_ACTIONS: Final = frozenset().union(
    *OF_DATABASE.values(), *(actions for pair in OF_ADMIN.values() for actions in pair), {"anyAction"}
)


def is_builtin(role: str, database: str) -> bool:
    return role in OF_DATABASE or (role in OF_ADMIN and database == ADMIN)


def names_of(database: str) -> list[str]:
    """List the roles that a database has from the start."""
    return sorted(OF_DATABASE) + (sorted(OF_ADMIN) if database == ADMIN else [])
