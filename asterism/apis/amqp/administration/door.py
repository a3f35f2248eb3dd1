"""The door for administration: Atom for queues, topics and subscriptions, and JSON as of the resource manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from asterism.apis.amqp.administration.address import Address, Form, parse_address
from asterism.apis.amqp.administration.arm_json import json_response
from asterism.apis.amqp.administration.arm_routes import ARM_ROUTES, find_resource, handle_resource
from asterism.apis.amqp.administration.call import AdministrationCall, AdministrationServices, host_of
from asterism.apis.amqp.administration.errors import AdministrationWords, is_of_manager, word_refusal
from asterism.apis.amqp.administration.routes import ROUTES, UPDATE
from asterism.apis.amqp.web_pages import page_refusal
from asterism.apis.http_pipeline import make_pipeline, read_body
from asterism.apis.transports.http import BodyRefused, Request, Response
from asterism.errors import Forbidden, MalformedRequest

if TYPE_CHECKING:
    from asterism.apis.amqp.administration.authorization import TokenChecker
    from asterism.apis.browser_guard import BrowserGuard
    from asterism.apis.pipeline import RequestMeter


class AdministrationDoor:
    def __init__(
        self,
        services: AdministrationServices,
        *,
        tokens: TokenChecker,
        namespace_of: Callable[[str], str],
        is_public: Callable[[str], bool],
        guard: BrowserGuard,
        meter: RequestMeter,
        new_request_id: Callable[[], str],
    ) -> None:
        """`namespace_of` finds the namespace by a host name. `is_public` tells whether a key of a namespace is printed
        in documentation: web pages are refused there."""
        self._services = services
        self._tokens = tokens
        self._namespace_of = namespace_of
        self._is_public = is_public
        self._guard = guard
        self._new_request_id = new_request_id
        operations = {route.operation for route in ROUTES.values()} | {route.operation for route in ARM_ROUTES.values()}
        self._pipeline = make_pipeline(
            "messaging", AdministrationWords(), self._handle, meter, operations=sorted(operations)
        )

    async def answer(self, request: Request) -> Response:
        namespace = self._namespace_of(host_of(request.authority))
        return await self._pipeline.run(AdministrationCall(request, self._new_request_id(), namespace))

    def word_refusal(self, refused: BodyRefused, request: Request) -> Response:
        return word_refusal(refused, request)

    async def _handle(self, call: AdministrationCall) -> Response:
        if is_of_manager(call.request):
            return await self._handle_resource(call)
        if self._services.hubs.is_shared:
            await self._services.bus.store.namespaces.catch_up()
        call.address = self._address(call)
        if call.address.form is Form.HEALTH:
            call.operation = "health"
            return json_response(200, {"status": "healthy", "message": "Service is healthy."})
        await self._check(call, call.address.path, is_manager=False)
        method = "GET" if call.request.method == "HEAD" else call.request.method
        route = ROUTES.get((UPDATE if method == "PUT" and call.is_update else method, call.address.form))
        if route is None:
            raise MalformedRequest(reason=f"The method {method[:20]} cannot be used with this address.")
        call.operation = route.operation
        await read_body(call.request)
        return await route.handle(self._services, call)

    def _address(self, call: AdministrationCall) -> Address:
        return parse_address(call.request.path, lambda name: self._services.bus.find(call.namespace, name) is not None)

    async def _handle_resource(self, call: AdministrationCall) -> Response:
        resource = find_resource(call, self._services)
        call.namespace = resource.namespace
        if self._services.hubs.is_shared:
            await self._services.bus.store.namespaces.catch_up()
        await self._check(call, resource.entity_path, is_manager=True)
        return await handle_resource(resource, self._services, call)

    async def _check(self, call: AdministrationCall, path: str, *, is_manager: bool) -> None:
        request = call.request
        if self._is_public(call.namespace):
            reason = page_refusal(self._guard, request.headers, request.authority)
            if reason is not None:
                raise Forbidden(reason=reason)
        await self._tokens.check(
            request.headers.get("authorization"),
            namespace=call.namespace,
            host=call.host,
            path=path,
            is_manager=is_manager,
        )
