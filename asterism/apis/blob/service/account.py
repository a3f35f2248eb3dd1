"""Get Account Information, and the service properties, whose changes the rules of the account follow."""

from __future__ import annotations

from asterism.apis.blob.context import BlobCall
from asterism.apis.storage import service_calls
from asterism.apis.transports.http import Answer, Response


async def get_account_info(call: BlobCall) -> Response:  # noqa: ARG001 - a handler
    return Response(
        200,
        [
            ("x-ms-sku-name", "Standard_RAGRS"),
            ("x-ms-account-kind", "StorageV2"),
            ("x-ms-is-hns-enabled", "false"),
        ],
    )


async def set_properties(call: BlobCall) -> Answer:
    answer = await service_calls.set_properties(call)
    call.context.rule_book.forget(call.account.name)
    return answer
