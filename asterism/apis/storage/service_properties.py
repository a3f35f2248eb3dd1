"""The properties of a service of an account: logging, metrics, rules of cross-origin requests, and more for blobs."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from asterism.apis.storage.address import ServiceName
from asterism.apis.storage.documents import PROPERTIES_DOCUMENT, AccountDocuments
from asterism.apis.storage.refusals import invalid_xml_document, invalid_xml_value
from asterism.apis.storage.xml_text import children, document, leaf, local_name, node, read_document, text_of
from asterism.errors import TooMuchContention
from asterism.keyspaces.routing.contention import ATTEMPTS_MAX
from asterism.values.json.text import dumps, loads_stored

# The service's limit.
CORS_RULES_MAX: Final = 5
RETENTION_DAYS: Final = range(1, 366)
_ROOT: Final = "StorageServiceProperties"
_METRICS: Final = ("HourMetrics", "MinuteMetrics")
_FLAGS_OF_LOGGING: Final = ("Delete", "Read", "Write")
_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH", "TRACE", "CONNECT"})
_WHOLE: Final = re.compile(r"\d{1,9}", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

# A section of the document -> its content. Sections that a request leaves out stay as they are.
Properties = dict[str, Any]

_NO_RETENTION: Final = {"Enabled": False}
_DEFAULTS: Final[Properties] = {
    "Logging": {"Version": "1.0", "Delete": False, "Read": False, "Write": False, "RetentionPolicy": _NO_RETENTION},
    "HourMetrics": {"Version": "1.0", "Enabled": False, "RetentionPolicy": _NO_RETENTION},
    "MinuteMetrics": {"Version": "1.0", "Enabled": False, "RetentionPolicy": _NO_RETENTION},
    "Cors": [],
}
_DEFAULTS_OF_BLOBS: Final[Properties] = {
    **_DEFAULTS,
    "DefaultServiceVersion": None,
    "DeleteRetentionPolicy": {"Enabled": False},
    "StaticWebsite": {"Enabled": False},
}
_WEB_PATHS: Final = ("IndexDocument", "DefaultIndexDocumentPath", "ErrorDocument404Path")
_PATH_CHARACTERS_MAX: Final = 1024


def default_properties(service: ServiceName) -> Properties:
    return dict(_DEFAULTS_OF_BLOBS if service == "blob" else _DEFAULTS)


def load_properties(stored: bytes | None, service: ServiceName) -> Properties:
    defaults = default_properties(service)
    return {**defaults, **cast("Properties", loads_stored(stored))} if stored else defaults


def dump_properties(properties: Properties) -> bytes:
    return dumps(properties)


async def stored_properties(documents: AccountDocuments, account: str, service: ServiceName) -> Properties:
    return load_properties(await documents.get_account_document(account, PROPERTIES_DOCUMENT), service)


async def change_properties(documents: AccountDocuments, account: str, service: ServiceName, given: Properties) -> None:
    """Store the sections of a request in place of those that the account has; the others stay."""
    for _ in range(ATTEMPTS_MAX):
        before = await documents.get_account_document(account, PROPERTIES_DOCUMENT)
        after = dump_properties({**load_properties(before, service), **given})
        if await documents.replace_account_document(account, PROPERTIES_DOCUMENT, after, before=before):
            return
    raise TooMuchContention


def read_properties(body: bytes, service: ServiceName) -> Properties:
    """Read the sections of a document."""
    known = default_properties(service)
    properties: Properties = {}
    for section in read_document(body, _ROOT):
        name = local_name(section)
        if name not in known:
            raise invalid_xml_document()
        properties[name] = _READERS[name](section)
    return properties


def _read_logging(section: ElementTree.Element) -> Mapping[str, Any]:
    parts = children(section)
    flags = {name: _flag(parts, name) for name in _FLAGS_OF_LOGGING}
    return {"Version": text_of(parts.get("Version")) or "1.0", **flags, "RetentionPolicy": _read_retention(parts)}


def _read_metrics(section: ElementTree.Element) -> Mapping[str, Any]:
    parts = children(section)
    metrics: dict[str, Any] = {"Version": text_of(parts.get("Version")) or "1.0", "Enabled": _flag(parts, "Enabled")}
    if "IncludeAPIs" in parts:
        metrics["IncludeAPIs"] = _flag(parts, "IncludeAPIs")
    elif metrics["Enabled"]:
        raise invalid_xml_document("Enabled metrics need the element IncludeAPIs.")
    return {**metrics, "RetentionPolicy": _read_retention(parts)}


def _read_retention(parts: Mapping[str, ElementTree.Element]) -> Mapping[str, Any]:
    return _read_days(children(parts["RetentionPolicy"])) if "RetentionPolicy" in parts else _NO_RETENTION


def _read_days(policy: Mapping[str, ElementTree.Element]) -> Mapping[str, Any]:
    if not policy or not _flag(policy, "Enabled"):
        return _NO_RETENTION
    days = text_of(policy.get("Days"))
    if not _WHOLE.fullmatch(days) or int(days) not in RETENTION_DAYS:
        raise invalid_xml_value("Days", days)
    return {"Enabled": True, "Days": int(days)}


def _flag(parts: Mapping[str, ElementTree.Element], name: str) -> bool:
    text = text_of(parts.get(name)).lower()
    if text not in ("true", "false"):
        raise invalid_xml_value(name, text)
    return text == "true"


def _read_cors(section: ElementTree.Element) -> list[Mapping[str, Any]]:
    if len(section) > CORS_RULES_MAX:
        raise invalid_xml_document("There are at most five rules of cross-origin requests.")
    return [_read_rule(children(rule)) for rule in section]


def _read_rule(parts: Mapping[str, ElementTree.Element]) -> Mapping[str, Any]:
    origins, methods = _list(parts, "AllowedOrigins"), _list(parts, "AllowedMethods")
    if not origins or not methods or not _METHODS.issuperset(methods):
        raise invalid_xml_value("CorsRule")
    age = text_of(parts.get("MaxAgeInSeconds")) or "0"
    if not _WHOLE.fullmatch(age):
        raise invalid_xml_value("MaxAgeInSeconds", age)
    return {
        "AllowedOrigins": origins,
        "AllowedMethods": methods,
        # Both may be empty.
        "AllowedHeaders": _list(parts, "AllowedHeaders"),
        "ExposedHeaders": _list(parts, "ExposedHeaders"),
        "MaxAgeInSeconds": int(age),
    }


def _list(parts: Mapping[str, ElementTree.Element], name: str) -> list[str]:
    return [entry.strip() for entry in text_of(parts.get(name)).split(",") if entry.strip()]


def _read_version(section: ElementTree.Element) -> str:
    version = text_of(section)
    if not _DATE.fullmatch(version):
        raise invalid_xml_value("DefaultServiceVersion", version)
    return version


def _read_deletion(section: ElementTree.Element) -> Mapping[str, Any]:
    parts = children(section)
    policy = dict(_read_days(parts))
    if "AllowPermanentDelete" in parts:
        policy["AllowPermanentDelete"] = _flag(parts, "AllowPermanentDelete")
    return policy


def _read_website(section: ElementTree.Element) -> Mapping[str, Any]:
    parts = children(section)
    paths = {name: text_of(parts[name]) for name in _WEB_PATHS if text_of(parts.get(name))}
    wrong = next((name for name, path in paths.items() if len(path) > _PATH_CHARACTERS_MAX), None)
    if wrong is not None:
        raise invalid_xml_value(wrong, paths[wrong])
    if "IndexDocument" in paths and "DefaultIndexDocumentPath" in paths:
        raise invalid_xml_document("A static web site has either IndexDocument or DefaultIndexDocumentPath.")
    return {"Enabled": _flag(parts, "Enabled"), **paths}


_READERS: Final[Mapping[str, Callable[[ElementTree.Element], Any]]] = {
    "Logging": _read_logging,
    "HourMetrics": _read_metrics,
    "MinuteMetrics": _read_metrics,
    "Cors": _read_cors,
    "DefaultServiceVersion": _read_version,
    "DeleteRetentionPolicy": _read_deletion,
    "StaticWebsite": _read_website,
}


def write_properties(properties: Properties) -> bytes:
    sections = [_write_section(name, properties[name]) for name in ("Logging", *_METRICS)]
    rules = "".join(node("CorsRule", "".join(_write_rule_parts(rule))) for rule in properties["Cors"])
    more = [
        node(name, "".join(leaf(part, value) for part, value in properties[name].items()))
        for name in ("DeleteRetentionPolicy", "StaticWebsite")
        if name in properties
    ]
    if properties.get("DefaultServiceVersion"):
        more.append(leaf("DefaultServiceVersion", properties["DefaultServiceVersion"]))
    return document(node(_ROOT, "".join([*sections, node("Cors", rules), *more])))


def _write_section(name: str, section: Mapping[str, Any]) -> str:
    parts = [leaf(part, value) for part, value in section.items() if part != "RetentionPolicy"]
    retention = "".join(leaf(part, value) for part, value in section["RetentionPolicy"].items())
    return node(name, "".join(parts) + node("RetentionPolicy", retention))


def _write_rule_parts(rule: Mapping[str, Any]) -> list[str]:
    return [leaf(name, ",".join(value) if isinstance(value, list) else value) for name, value in rule.items()]
