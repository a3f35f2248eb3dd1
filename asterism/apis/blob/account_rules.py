"""The rules of an account: its options of the server, and the retention that its service properties ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from asterism.apis.blob.spec import BlobSettings
from asterism.apis.storage.documents import AccountDocuments
from asterism.apis.storage.service_properties import stored_properties
from asterism.models.blobs.rules import AccountRules

# Another process may change the properties of an account; the service as well takes up to 30 seconds to follow.
_KNOWN_SECONDS: Final = 5.0
_ACCOUNTS_MAX: Final = 1_000


@dataclass(slots=True)
class _Known:
    rules: AccountRules
    until_monotonic_seconds: float


class AccountRuleBook:
    """Rules by account. Every write asks for them, so they are kept for some seconds."""

    def __init__(
        self, settings: BlobSettings, documents: AccountDocuments, monotonic_seconds: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._documents = documents
        self._monotonic_seconds = monotonic_seconds
        self._known: dict[str, _Known] = {}

    async def rules_of(self, account: str) -> AccountRules:
        known = self._known.get(account)
        now = self._monotonic_seconds()
        if known is not None and now < known.until_monotonic_seconds:
            return known.rules
        properties = await stored_properties(self._documents, account, "blob")
        deletion = properties["DeleteRetentionPolicy"]
        rules = AccountRules(
            versioning=self._settings.is_versioned(account),
            blob_retention_days=deletion["Days"] if deletion["Enabled"] else self._settings.soft_delete_days(account),
            container_retention_days=self._settings.container_retention_days(account),
            permanent_delete=bool(deletion.get("AllowPermanentDelete")),
        )
        if len(self._known) >= _ACCOUNTS_MAX:
            self._known.clear()
        self._known[account] = _Known(rules, now + _KNOWN_SECONDS)
        return rules

    def forget(self, account: str) -> None:
        self._known.pop(account, None)
