"""Running a stored procedure: `POST …/sprocs/{id}` with its parameters."""

from __future__ import annotations

from asterism.apis.nosql import headers
from asterism.apis.nosql.call import Call
from asterism.apis.nosql.context import Context
from asterism.apis.nosql.headers import is_true
from asterism.apis.nosql.items.partition_key_header import required_key
from asterism.apis.nosql.scripts.operations import UnitOperations
from asterism.apis.nosql.scripts.resources import PROCEDURES, scope_of_scripts
from asterism.apis.nosql.scripts.units import failure_of, log_headers, run_unit
from asterism.apis.nosql.session import session_token
from asterism.apis.transports.http import Request, Response
from asterism.errors import TooLarge
from asterism.limits import ITEM_NESTING_LEVELS_MAX
from asterism.models.documents.transaction import Transaction
from asterism.scripts.results import ScriptFailed, ScriptSucceeded
from asterism.values.item import check_nesting
from asterism.values.json.text import loads


async def execute_procedure(call: Call) -> Response:
    """Run a stored procedure in one logical partition: all of its writes are stored, or none."""
    context, request = call.context, call.request
    container, record = call.items_container(), PROCEDURES.find(call)
    refusal = f"A stored procedure runs in one logical partition; name its key in the header {headers.PARTITION_KEY}."
    key = await container.key_of_unit(required_key(container, request, refusal=refusal))
    parameters = _parameters(context, request)
    is_logging = is_true(request.headers.get(headers.SCRIPT_LOGGING))
    body, scope = str(record.properties["body"]), await scope_of_scripts(context, container)

    async def act(work: Transaction, operations: UnitOperations) -> ScriptSucceeded | ScriptFailed:  # noqa: ARG001
        return await context.scripts.run_stored_procedure(
            body, parameters, operations=operations, scope=scope, is_logging=is_logging
        )

    result, settled = await run_unit(context, container, key, act)
    if isinstance(result, ScriptFailed):
        raise failure_of(result, is_logging=is_logging)
    answer_headers = [
        *context.facts(container).headers,
        (headers.CHARGE, str(settled.charge)),
        (headers.SESSION_TOKEN, session_token(settled.range_id, settled.lsn)),
        (headers.LSN, str(settled.lsn)),
        (headers.PARTITION_RANGE_ID, str(settled.range_id)),
        *log_headers(result.log, is_logging=is_logging),
    ]
    return Response(200, answer_headers, result.body)


def _parameters(context: Context, request: Request) -> list[object]:
    """Return the parameters: a body that is not a list is the only parameter. An empty body and null mean none."""
    if len(request.body) > context.limits.item_bytes_max:
        raise TooLarge(what="list of parameters", bytes_max=context.limits.item_bytes_max)
    parameters = loads(request.body) if request.body.strip() else None
    if parameters is None:
        return []
    check_nesting(parameters, levels_max=ITEM_NESTING_LEVELS_MAX + 1)
    return list(parameters) if isinstance(parameters, list) else [parameters]
