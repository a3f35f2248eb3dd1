"""Sessions: nothing but a name until they own a cursor or a transaction, which the commands here close.

The names in use are kept for `$listLocalSessions` only, as long as MongoDB keeps an idle session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.mongo.arguments import check_document, wrong_type
from asterism.apis.mongo.commands import Access, Command, FieldRule
from asterism.apis.mongo.data.concerns import with_write_concern
from asterism.apis.mongo.hello import SESSION_MINUTES
from asterism.apis.mongo.session_fields import session_of
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Binary, Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call
    from asterism.apis.mongo.connection import Connection

_UUID_BYTES = 16
# MongoDB's own limit (`maxSessions`).
_REMEMBERED_MAX = 1_000_000
_REMEMBERED_SECONDS = SESSION_MINUTES * 60
_USER: Final = {
    "user": FieldRule(("string",), is_required=True),
    "db": FieldRule(("string",), is_required=True),
}
_PATTERN: Final = {
    "lsid": FieldRule(("object",)),
    "uid": FieldRule(("binData",)),
    "users": FieldRule(("array",)),
    "roles": FieldRule(("array",)),
}
# Fields with `$` that drivers add to any command.
_KNOWN_DOLLARS: Final = frozenset({"$db", "$clusterTime", "$readPreference", "$audit", "$client", "$queryOptions"})


@dataclass(slots=True)
class SessionUse:
    """The last use of a session, by an account and a user."""

    account: str
    user: str
    seconds: float


class SessionRegistry:
    """The sessions that commands have named lately, the one used last behind all others."""

    def __init__(self, wall_seconds: Callable[[], float]) -> None:
        self._wall_seconds = wall_seconds
        self._uses: dict[bytes, SessionUse] = {}

    def __len__(self) -> int:
        self._expire()
        return len(self._uses)

    def use(self, session: bytes, connection: Connection) -> None:
        now = self._wall_seconds()
        use = self._uses.pop(session, None)
        if use is None:
            use = SessionUse(connection.account, connection.user, now)
            if len(self._uses) >= _REMEMBERED_MAX:
                del self._uses[next(iter(self._uses))]
        use.seconds = now
        self._uses[session] = use

    def end(self, session: bytes) -> None:
        self._uses.pop(session, None)

    def of_account(self, account: str) -> Iterator[tuple[bytes, SessionUse]]:
        self._expire()
        return ((session, use) for session, use in list(self._uses.items()) if use.account == account)

    def _expire(self) -> None:
        oldest = self._wall_seconds() - _REMEMBERED_SECONDS
        while self._uses:
            session = next(iter(self._uses))
            if self._uses[session].seconds >= oldest:
                return
            del self._uses[session]


async def start_session(call: Call) -> Document:
    _refuse_write_concern(call)
    identity = bytearray(call.services.random_bytes(_UUID_BYTES))
    identity[6], identity[8] = identity[6] & 0x0F | 0x40, identity[8] & 0x3F | 0x80
    call.context.sessions.use(bytes(identity) + call.connection.user.encode(), call.connection)
    return {"id": {"id": Binary(bytes(identity), 4)}, "timeoutMinutes": SESSION_MINUTES}


async def end_sessions(call: Call) -> Document:
    """End sessions of the sender: their cursors and transactions are closed."""
    for session in _read_sessions(call):
        await _end(call, session)
    return {}


async def kill_sessions(call: Call) -> Document:
    """End sessions by name; without a name, all of the sender."""
    _refuse_write_concern(call)
    named = _read_sessions(call)
    if not named:
        named = [name for name, use in _sessions(call) if use.user == call.connection.user]
    for session in named:
        await _end(call, session)
    return {}


async def kill_all_sessions(call: Call) -> Document:
    """End the sessions of users, of all users if none is named."""
    _refuse_write_concern(call)
    entries = _array(call)
    for entry in entries:
        _check_entry(call, entry, _USER)
    users = {entry["user"] for entry in entries}
    for session, use in _sessions(call):
        if not entries or use.user in users:
            await _end(call, session)
    return {}


async def kill_sessions_by_pattern(call: Call) -> Document:
    """End the sessions that match one of the patterns, all sessions without a pattern."""
    _refuse_write_concern(call)
    patterns = _array(call)
    for pattern in patterns:
        _check_entry(call, pattern, _PATTERN)
        if pattern.get("lsid") is not None:
            session_of(pattern["lsid"], f"{call.command.name}.lsid", "")
    for session, use in _sessions(call):
        if not patterns or any(_matches(pattern, session, use) for pattern in patterns):
            await _end(call, session)
    return {}


async def refresh_sessions(call: Call) -> Document:
    for session in _read_sessions(call):
        call.context.sessions.use(session, call.connection)
    return {}


def _matches(pattern: Document, session: bytes, use: SessionUse) -> bool:
    lsid, users = pattern.get("lsid"), pattern.get("users")
    if lsid is not None and bytes(lsid.get("id") or b"") != session[:_UUID_BYTES]:
        return False
    return users is None or any(isinstance(user, dict) and user.get("user") == use.user for user in users)


def _sessions(call: Call) -> Iterator[tuple[bytes, SessionUse]]:
    """Return the sessions of the account, without the session of the command itself."""
    return (entry for entry in call.context.sessions.of_account(call.account) if entry[0] != call.session)


async def _end(call: Call, session: bytes) -> None:
    context = call.context
    await context.transactions.end_session(session)
    await context.cursors.end_session(session)
    context.sessions.end(session)


def _read_sessions(call: Call) -> list[bytes]:
    user = call.connection.user
    return [session_of(lsid, f"{call.command.name}.{call.command.name}", user) for lsid in _array(call)]


def _array(call: Call) -> list[Any]:
    name, value = call.command.name, call.target
    if value is None:
        raise MongoFailure(40414, f"BSON field '{name}.{name}' is missing but a required field")
    if not isinstance(value, list):
        raise wrong_type(f"{name}.{name}", value, ("array",))
    # Null is passed over, as MongoDB does.
    return [entry for entry in value if entry is not None]


def _check_entry(call: Call, entry: Any, rules: dict[str, FieldRule]) -> None:
    where = f"{call.command.name}.{call.command.name}"
    if not isinstance(entry, dict):
        raise wrong_type(where, entry, ("object",))
    check_document(where, entry, rules)


def _refuse_write_concern(call: Call) -> None:
    if call.write_concern is not None:
        raise MongoFailure(72, f"Command {call.command.name} does not support writeConcern")


# --- transactions ---------------------------------------------------------------------------------------------------


async def commit_transaction(call: Call) -> Document:
    session, number = _transaction_of(call)
    await call.context.transactions.commit(session, number, account=call.account, spent=call.spent)
    return {}


async def abort_transaction(call: Call) -> Document:
    session, number = _transaction_of(call)
    await call.context.transactions.abort(session, number)
    return {}


def _transaction_of(call: Call) -> tuple[bytes, int]:
    for name in call.body:
        if name[:1] == "$" and name not in _KNOWN_DOLLARS:
            raise MongoFailure(40415, f"BSON field '{call.command.name}.{name}' is an unknown field.")
    if call.session is None or call.txn_number is None or not call.is_in_transaction:
        raise MongoFailure(125, f"{call.command.name} must be run within a transaction")
    return call.session, call.txn_number


_ENDING_FIELDS: Final = {
    "recoveryToken": FieldRule(("object",)),
    "commitTimestamp": FieldRule(("timestamp",)),
    "durableTimestamp": FieldRule(("timestamp",)),
}

COMMANDS = (
    Command("startSession", start_session, "A new session.", ignores_unknown_fields=True),
    Command("endSessions", end_sessions, "End sessions.", access=Access.NOBODY, api_version_1=True,
            ignores_unknown_fields=True),
    Command("refreshSessions", refresh_sessions, "Keep sessions.", api_version_1=True, ignores_unknown_fields=True),
    Command("killSessions", kill_sessions, "End sessions by name.", ignores_unknown_fields=True),
    Command("killAllSessions", kill_all_sessions, "End sessions of users.", ignores_unknown_fields=True),
    Command("killAllSessionsByPattern", kill_sessions_by_pattern, "End sessions that match a pattern.",
            ignores_unknown_fields=True),
    Command("commitTransaction", with_write_concern(commit_transaction), "Commit.", fields=_ENDING_FIELDS,
            admin_only=True, in_transaction=True, api_version_1=True, writes=True),
    Command("abortTransaction", with_write_concern(abort_transaction), "Abort.", fields=_ENDING_FIELDS,
            admin_only=True, in_transaction=True, api_version_1=True, writes=True),
)  # fmt: skip
