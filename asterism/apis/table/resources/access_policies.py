"""Access policies of a table: the calls that read and set them, and their use by signatures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from asterism.access.sas_grants import Policy
from asterism.apis.storage.access_policies import (
    dump_policies,
    load_policies,
    policies_for_signing,
    read_policies,
    write_policies,
)
from asterism.apis.storage.refusals import Refusal, not_permitted
from asterism.apis.storage.xml_text import xml_response
from asterism.apis.table.context import Call
from asterism.apis.transports.http import Response
from asterism.models.tables.store import TableStore
from asterism.models.tables.table import Table

ACL_DOCUMENT: Final = "acl"


async def get_policies(call: Call) -> Response:
    table = _table(call)
    stored = await call.context.store.get_document(call.account.name, table, ACL_DOCUMENT)
    return xml_response(200, write_policies(load_policies(stored)))


async def set_policies(call: Call) -> Response:
    table = _table(call)
    content = dump_policies(read_policies(call.request.body))
    await call.context.store.put_document(call.account.name, table, ACL_DOCUMENT, content)
    return Response(204, [])


def _table(call: Call) -> Table:
    if call.context.is_cosmos:
        raise Refusal(400, "NotImplemented", "Cosmos DB for Table has no access policies.", is_xml=True)
    if call.grant is not None:
        # The holder of a signature may not create others.
        raise not_permitted()
    return call.table(call.resource.table)


async def signing_policies(store: TableStore, account: str, table_name: str) -> Mapping[str, Policy]:
    """Return the policies of a table as signatures use them."""
    table = store.find_table(account, table_name)
    if table is None:
        return {}
    return policies_for_signing(load_policies(await store.get_document(account, table, ACL_DOCUMENT)))
