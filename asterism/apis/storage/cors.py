"""Cross-origin requests: those that the rules of the account permit a browser to make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism.apis.storage.refusals import Refusal
from asterism.apis.transports.http import HeaderList, Headers, Response

Rule = Mapping[str, Any]


def answer_preflight(rules: Sequence[Rule], given: Headers) -> Response:
    """Answer OPTIONS, which a browser sends first. The request is not signed; the rules alone decide."""
    origin, method = given.get("origin"), given.get("access-control-request-method")
    if not origin or not method:
        raise Refusal(
            400, "InvalidHeaderValue", "A preflight needs Origin and Access-Control-Request-Method.", is_xml=True
        )
    names = (given.get("access-control-request-headers") or "").split(",")
    wanted = [name.strip() for name in names if name.strip()]
    for rule in rules:
        allows_headers = all(_has_header(rule["AllowedHeaders"], name) for name in wanted)
        if allows_headers and _fits(rule, origin=origin, method=method):
            answer: HeaderList = [
                ("access-control-allow-origin", _allowed_origin(rule, origin)),
                ("access-control-allow-methods", ",".join(rule["AllowedMethods"])),
                ("access-control-max-age", str(rule["MaxAgeInSeconds"])),
                ("access-control-allow-credentials", "true"),
            ]
            if wanted:
                answer.append(("access-control-allow-headers", ",".join(wanted)))
            return Response(200, answer)
    raise Refusal(
        403, "CorsPreflightFailure", "CORS not enabled or no matching rule found for this request.", is_xml=True
    )


def cors_headers(rules: Sequence[Rule], *, method: str, origin: str, answered: HeaderList) -> HeaderList:
    """Return the headers with which a browser hands the answer to a page of another origin; none without a rule.

    `answered` are the headers of the answer. Those that a script may see are named one by one: browsers know no
    prefixes, and take `*` for a name where the request has credentials.
    """
    for rule in rules:
        if _fits(rule, origin=origin, method=method):
            exposed = [name for name, _ in answered if _has_header(rule["ExposedHeaders"], name)]
            return [
                ("access-control-allow-origin", _allowed_origin(rule, origin)),
                ("access-control-expose-headers", ",".join(exposed)),
                ("access-control-allow-credentials", "true"),
                ("vary", "Origin"),
            ]
    return []


def _fits(rule: Rule, *, origin: str, method: str) -> bool:
    return method.upper() in rule["AllowedMethods"] and any(
        allowed == "*" or allowed == origin or _is_subdomain(origin, allowed) for allowed in rule["AllowedOrigins"]
    )


def _is_subdomain(origin: str, allowed: str) -> bool:
    """Return True for an origin that `https://*.example.com` stands for."""
    scheme, mark, domain = allowed.partition("://*.")
    host = origin.removeprefix(f"{scheme}://")
    return (
        bool(mark)
        and host != origin
        and "/" not in host
        and host.endswith(f".{domain}")
        and len(host) > len(domain) + 1
    )


def _allowed_origin(rule: Rule, origin: str) -> str:
    return "*" if "*" in rule["AllowedOrigins"] else origin


def _has_header(entries: Sequence[str], name: str) -> bool:
    """Return True if a name is among the entries, some of which may be prefixes: `x-ms-meta-*`."""
    lowered = name.lower()
    return any(
        lowered.startswith(entry[:-1].lower()) if entry.endswith("*") else lowered == entry.lower() for entry in entries
    )
