"""The settings that tables, queues and blobs share: the accounts, given once for all three."""

from __future__ import annotations

from dataclasses import dataclass

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from asterism.apis.settings import WHO, option
from asterism.apis.storage.accounts import Account, parse_account, parse_accounts


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """The base of the settings of each storage door; an option that several doors have is one option."""

    # Without any there is the development account, with its public key.
    given_accounts: tuple[Account, ...] = option(
        (),
        "--storage-account",
        "An account for tables, queues and blobs, its key in base64; may be repeated.",
        panel=WHO,
        metavar="NAME:KEY",
        is_repeatable=True,
        is_secret=True,
        default_help="the well-known development account",
        parse=parse_accounts,
    )
    table_accounts: tuple[Account, ...] = option(
        (),
        "--table-account",
        "The older spelling of --storage-account.",
        panel=WHO,
        metavar="NAME:KEY",
        is_repeatable=True,
        is_secret=True,
        parse=parse_accounts,
    )
    unsigned_tokens: bool = option(
        False,
        "--unsigned-tokens",
        "Let tables, queues and blobs take bearer tokens that nobody has signed. For tests only.",
        panel=WHO,
    )

    @property
    def has_own_accounts(self) -> bool:
        return bool(self.given_accounts or self.table_accounts)

    @property
    def accounts(self) -> dict[str, Account]:
        given = (*self.table_accounts, *self.given_accounts)
        if not given:
            given = (parse_account(f"{DEVELOPMENT_ACCOUNT}:{DEVELOPMENT_KEY}"),)
        return {account.name: account for account in given}

    def first_keys(self) -> dict[str, bytes]:
        """Return the first key of each account, as `DoorSpec.account_keys` does."""
        return {name: account.keys[0] for name, account in self.accounts.items()}
