"""Refusals of the storage protocols: status, code, message, and the elements that explain them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from asterism.apis.transports.http import HeaderList

_CHALLENGE: Final = (
    "www-authenticate",
    "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize "
    "resource_id=https://storage.azure.com",
)
# Of a client's text in an answer.
_SHOWN_CHARACTERS_MAX: Final = 256

# Elements of an error behind its message, such as the name of a header and its value.
Fields = Sequence[tuple[str, str]]


class Refusal(Exception):
    """An answer that refuses a request. Clients choose their exception by the code, not by the status."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        fields: Fields = (),
        more_headers: HeaderList | None = None,
        is_xml: bool = False,
    ) -> None:
        """`is_xml`: tables answer this refusal in XML as well, and all others in JSON."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.fields = fields
        self.more_headers: HeaderList = more_headers or []
        self.is_xml = is_xml

    def at(self, index: int) -> Refusal:
        """Return the refusal of a single operation of a change set."""
        return Refusal(self.status, self.code, f"{index}:{self.message}", more_headers=self.more_headers)

    def as_xml(self) -> Refusal:
        return Refusal(self.status, self.code, self.message, is_xml=True, more_headers=self.more_headers)

    def as_json(self) -> Refusal:
        return Refusal(self.status, self.code, self.message, more_headers=self.more_headers)


# --- senders --------------------------------------------------------------------------------------------------------


def not_authenticated(reason: str = "") -> Refusal:
    """Return a 403 with this code: after any other, clients do not sign the request again."""
    message = (
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly "
        "including the signature."
    )
    return Refusal(403, "AuthenticationFailed", f"{message} {reason}".rstrip(), is_xml=True)


def no_credentials() -> Refusal:
    return Refusal(
        401,
        "NoAuthenticationInformation",
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
        is_xml=True,
        more_headers=[_CHALLENGE],
    )


def invalid_token(reason: str) -> Refusal:
    """Return a 401 with a challenge: clients of queues and blobs ask for a token of its resource, and try again."""
    return Refusal(
        401,
        "InvalidAuthenticationInfo",
        f"Server failed to authenticate the request. {reason}".rstrip(),
        is_xml=True,
        more_headers=[_CHALLENGE],
    )


def malformed_credentials() -> Refusal:
    return Refusal(
        400,
        "InvalidAuthenticationInfo",
        "Authentication information is not given in the correct format. Check the value of Authorization header.",
        is_xml=True,
    )


def not_permitted(reason: str = "", *, code: str = "AuthorizationFailure") -> Refusal:
    message = "This request is not authorized to perform this operation."
    return Refusal(403, code, f"{message} {reason}".rstrip(), is_xml=True)


def permission_mismatch() -> Refusal:
    return Refusal(
        403,
        "AuthorizationPermissionMismatch",
        "This request is not authorized to perform this operation using this permission.",
        is_xml=True,
    )


def resource_type_mismatch() -> Refusal:
    return Refusal(
        403,
        "AuthorizationResourceTypeMismatch",
        "This request is not authorized to perform this operation using this resource type.",
        is_xml=True,
    )


def secondary_is_read_only() -> Refusal:
    return Refusal(403, "InsufficientAccountPermissions", "Write operations are not allowed.")


# --- headers and parameters -----------------------------------------------------------------------------------------


def invalid_header_value(name: str, value: str, message: str | None = None) -> Refusal:
    said = message or "The value for one of the HTTP headers is not in the correct format."
    return Refusal(400, "InvalidHeaderValue", said, fields=_header(name, value))


def missing_header(name: str) -> Refusal:
    return Refusal(
        400,
        "MissingRequiredHeader",
        "An HTTP header that's mandatory for this request is not specified.",
        fields=(("HeaderName", name),),
    )


def missing_length() -> Refusal:
    return Refusal(411, "MissingContentLengthHeader", "The Content-Length header was not specified.")


def unsupported_header(name: str, value: str = "") -> Refusal:
    return Refusal(
        400,
        "UnsupportedHeader",
        "One of the headers specified in the request is not supported.",
        fields=_header(name, value),
    )


def invalid_query_parameter(name: str, value: str, reason: str = "") -> Refusal:
    return Refusal(
        400,
        "InvalidQueryParameterValue",
        "Value for one of the query parameters specified in the request URI is invalid.",
        fields=[*_parameter(name, value), *([("Reason", reason)] if reason else [])],
        is_xml=True,
    )


def missing_query_parameter(name: str) -> Refusal:
    return Refusal(
        400,
        "MissingRequiredQueryParameter",
        "A query parameter that's mandatory for this request is not specified.",
        fields=(("QueryParameterName", name),),
    )


def unsupported_query_parameter(name: str, value: str = "") -> Refusal:
    return Refusal(
        400,
        "UnsupportedQueryParameter",
        "One of the query parameters specified in the request URI is not supported.",
        fields=_parameter(name, value),
    )


def out_of_range_query_parameter(name: str, value: str, *, minimum: int, maximum: int) -> Refusal:
    return Refusal(
        400,
        "OutOfRangeQueryParameterValue",
        "One of the query parameters specified in the request URI is outside the permissible range.",
        fields=[*_parameter(name, value), ("MinimumAllowed", str(minimum)), ("MaximumAllowed", str(maximum))],
    )


def _header(name: str, value: str) -> Fields:
    return ("HeaderName", name), ("HeaderValue", value[:_SHOWN_CHARACTERS_MAX])


def _parameter(name: str, value: str) -> Fields:
    return ("QueryParameterName", name), ("QueryParameterValue", value[:_SHOWN_CHARACTERS_MAX])


# --- addresses and bodies -------------------------------------------------------------------------------------------


def invalid_input(message: str = "One of the request inputs is not valid.") -> Refusal:
    return Refusal(400, "InvalidInput", message)


def invalid_uri() -> Refusal:
    return Refusal(400, "InvalidUri", "The requested URI does not represent any resource on the server.")


def invalid_resource_name() -> Refusal:
    return Refusal(400, "InvalidResourceName", "The specified resource name contains invalid characters.")


def name_out_of_range() -> Refusal:
    return Refusal(400, "OutOfRangeInput", "The specified resource name length is not within the permissible limits.")


def resource_not_found() -> Refusal:
    return Refusal(404, "ResourceNotFound", "The specified resource does not exist.")


def method_not_allowed(method: str) -> Refusal:
    return Refusal(
        405, "UnsupportedHttpVerb", f"The resource doesn't support the HTTP method {method[:16]} of the request."
    )


def not_implemented(sentence: str) -> Refusal:
    """Return a refusal of a feature that this server lacks. Clients repeat a 5xx, and this does not pass."""
    return Refusal(400, "NotImplemented", sentence)


def body_too_large(bytes_max: int | None = None) -> Refusal:
    return Refusal(
        413,
        "RequestBodyTooLarge",
        "The request body is too large and exceeds the maximum permissible limit.",
        fields=() if bytes_max is None else (("MaxLimit", str(bytes_max)),),
    )


def unread_body(status: int, message: str) -> Refusal:
    """Return the refusal of a request whose body was not read, from the status that the NoSQL protocol has for it."""
    match status:
        case 413:
            return body_too_large()
        case 429:
            # The listener adds when to retry.
            return busy()
        case 408:
            return Refusal(408, "RequestTimeout", message)
        case _:
            return invalid_input(message)


def md5_mismatch() -> Refusal:
    return Refusal(
        400, "Md5Mismatch", "The MD5 value specified in the request did not match with the MD5 value of the data."
    )


def invalid_md5() -> Refusal:
    return Refusal(400, "InvalidMd5", "The MD5 value specified in the request is invalid.")


def invalid_range() -> Refusal:
    return Refusal(416, "InvalidRange", "The range specified is invalid for the current size of the resource.")


def invalid_xml_document(message: str = "XML specified is not syntactically valid.") -> Refusal:
    return Refusal(400, "InvalidXmlDocument", message, is_xml=True)


def invalid_xml_value(name: str, value: str = "") -> Refusal:
    return Refusal(
        400,
        "InvalidXmlNodeValue",
        f"The value for one of the XML nodes is not in the correct format: {name}.",
        fields=(("XmlNodeName", name), ("XmlNodeValue", value[:_SHOWN_CHARACTERS_MAX])),
        is_xml=True,
    )


# --- conditions and the state of the server ---------------------------------------------------------------------------


def condition_not_met() -> Refusal:
    return Refusal(412, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")


def not_modified() -> Refusal:
    return Refusal(304, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")


def busy(retry_after_seconds: float | None = None) -> Refusal:
    """Return a 503 without the error's reason, which names nodes and addresses behind the server.

    Throttled calls on blobs and queues have it as well: their clients do not repeat a 429.
    """
    headers: HeaderList = []
    if retry_after_seconds is not None:
        headers = [
            ("retry-after", str(max(1, math.ceil(retry_after_seconds)))),
            ("x-ms-retry-after-ms", str(max(1, math.ceil(retry_after_seconds * 1000)))),
        ]
    return Refusal(
        503,
        "ServerBusy",
        "The server is currently unable to receive requests. Please retry your request.",
        more_headers=headers,
    )


def timed_out(sentence: str = "The operation could not be completed within the permitted time.") -> Refusal:
    return Refusal(500, "OperationTimedOut", sentence)


def account_full() -> Refusal:
    """Return a 507, which clients repeat less than others: an operator must make room, and retries do not help."""
    return Refusal(507, "InsufficientStorage", "The server has no room left for writes.")


def internal_error() -> Refusal:
    return Refusal(
        500, "InternalError", "The server met an unexpected error; its log has the details under this request id."
    )
