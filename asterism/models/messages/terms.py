"""The terms of an entity by which its messages are planned: its description, made ready for use.

They are made once for each version of the settings. Batches are planned under the settings that they were made of, so
no process goes by older ones (M4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from asterism.models.messages.descriptions import (
    Description,
    QueueDescription,
    RuleDescription,
    SubscriptionDescription,
    TopicDescription,
)
from asterism.models.messages.layout import NEVER, channel_of, parts_of_channel
from asterism.models.messages.messages import SubQueue
from asterism.models.messages.rules import CompiledRules, CompileRules

_SENDABLE: Final = frozenset({"Active", "ReceiveDisabled"})
_RECEIVABLE: Final = frozenset({"Active", "SendDisabled"})


@dataclass(slots=True)
class ChannelTerms:
    """The terms of one channel: those of its queue or subscription, as far as they apply to the sub-queue."""

    channel: bytes
    # The channel of dead letters; the channel itself, if it is the one for them.
    dead_letters: bytes
    transfer_dead_letters: bytes
    lock_ms: int
    # Sub-queues have no sessions.
    requires_session: bool
    default_ttl_ms: int | None
    dead_letters_expired: bool
    # None: messages are delivered any number of times.
    max_delivery_count: int | None
    may_receive: bool
    forward_to: str | None

    def expiry(self, active_from_ms: int, ttl_ms: int | None) -> int:
        """Return the expiry of a message that becomes active at a moment."""
        ttl_ms = self.default_ttl_ms if ttl_ms is None else ttl_ms
        if ttl_ms is None:
            return NEVER
        if self.default_ttl_ms is not None and self.default_ttl_ms < ttl_ms:
            ttl_ms = self.default_ttl_ms
        return min(active_from_ms + ttl_ms, NEVER)


@dataclass(slots=True)
class SubscriptionTerms:
    """The terms by which copies of a topic's messages enter a subscription."""

    main: ChannelTerms
    # None: every message enters as it is.
    rules: CompiledRules | None
    dead_letters_filter_errors: bool


class EntityTerms:
    """The terms of a queue, or of a topic with its subscriptions, under one version of the settings."""

    def __init__(self, settings: Mapping[str, Any], description: Description, compile_rules: CompileRules) -> None:
        self.settings = settings
        self.description = description
        self.may_send = description.status in _SENDABLE
        self.duplicate_window_ms = description.duplicate_window_ms if description.requires_duplicate_detection else 0
        self._channels: dict[bytes, ChannelTerms] = {}
        self.subscriptions: list[SubscriptionTerms] | None = None
        self._by_number: dict[int, SubscriptionDescription] = {}
        if isinstance(description, TopicDescription):
            self._by_number = {each.number: each for each in description.subscriptions.values()}
            self.subscriptions = [self._subscription_terms(each, compile_rules) for each in self._by_number.values()]

        # Channels whose messages go on to another entity.
        self.forwarding = frozenset(each.channel for each in self.all_channels() if each.forward_to is not None)

    def channel(self, channel: bytes) -> ChannelTerms | None:
        """Return the terms of a channel; None if its subscription is deleted."""
        terms = self._channels.get(channel)
        if terms is None:
            terms = self._new_channel_terms(channel)
            if terms is not None:
                self._channels[channel] = terms
        return terms

    def all_channels(self) -> list[ChannelTerms]:
        """Return the terms of all channels, those of the topic itself included."""
        numbers = [0, *self._by_number]
        found = [self.channel(channel_of(number, sub_queue)) for number in numbers for sub_queue in SubQueue]
        return [terms for terms in found if terms is not None]

    def _subscription_terms(
        self, subscription: SubscriptionDescription, compile_rules: CompileRules
    ) -> SubscriptionTerms:
        main = self.channel(channel_of(subscription.number, SubQueue.MAIN))
        assert main is not None, "a described subscription has terms"
        rules = None if _takes_all(subscription.rules) else compile_rules(subscription.rules)
        return SubscriptionTerms(main, rules, subscription.dead_letters_filter_errors)

    def _new_channel_terms(self, channel: bytes) -> ChannelTerms | None:
        number, sub_queue = parts_of_channel(channel)
        owner: QueueDescription | SubscriptionDescription | None
        if number == 0 and isinstance(self.description, TopicDescription):
            # The topic's own messages are the scheduled ones, which its filters have not seen yet.
            owner = SubscriptionDescription(default_ttl_ms=self.description.default_ttl_ms)
        else:
            owner = self.description if isinstance(self.description, QueueDescription) else self._by_number.get(number)
        if owner is None:
            return None
        is_main = sub_queue == SubQueue.MAIN
        return ChannelTerms(
            channel=channel,
            dead_letters=channel_of(number, SubQueue.DEAD_LETTER) if is_main else channel,
            transfer_dead_letters=channel_of(number, SubQueue.TRANSFER_DEAD_LETTER),
            lock_ms=owner.lock_ms,
            requires_session=is_main and owner.requires_session,
            default_ttl_ms=owner.default_ttl_ms if is_main else None,
            dead_letters_expired=owner.dead_letters_expired,
            max_delivery_count=owner.max_delivery_count if is_main else None,
            may_receive=owner.status in _RECEIVABLE,
            forward_to=_target_of(owner, sub_queue),
        )


def _target_of(owner: QueueDescription | SubscriptionDescription, sub_queue: int) -> str | None:
    if sub_queue == SubQueue.MAIN:
        return owner.forward_to
    return owner.forward_dead_letters_to if sub_queue == SubQueue.DEAD_LETTER else None


def _takes_all(rules: tuple[RuleDescription, ...]) -> bool:
    """Return whether every message enters once, as it is."""
    has_true_filter = any(rule.filter.kind == "true" and rule.action_sql is None for rule in rules)
    return has_true_filter and all(rule.action_sql is None for rule in rules)
