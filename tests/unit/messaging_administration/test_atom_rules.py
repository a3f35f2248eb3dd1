"""Subscriptions and their rules in Atom."""

from __future__ import annotations

import pytest

from tests.unit.messaging_administration.door_at_hand import DoorAtHand, entry, entry_of, run

SUBSCRIPTION = entry("SubscriptionDescription")
VALUE = (
    "<KeyValueOfstringanyType><Key>{name}</Key>"
    '<Value xmlns:d6p1="http://www.w3.org/2001/XMLSchema" i:type="d6p1:{kind}">{text}</Value></KeyValueOfstringanyType>'
)
BAD_VALUE = VALUE.format(name="a", kind="int", text="x")


async def with_subscription(door: DoorAtHand, body: bytes = SUBSCRIPTION) -> None:
    await door.send("PUT", "t", entry("TopicDescription"))
    assert (await door.send("PUT", "t/subscriptions/s", body)).status == 201


def sql(expression: str) -> bytes:
    return entry_of(
        "RuleDescription", f'<Filter i:type="SqlFilter"><SqlExpression>{expression}</SqlExpression></Filter>'
    )


def test_a_new_subscription_lets_everything_in_or_has_the_rule_that_is_given() -> None:
    async def test(door: DoorAtHand) -> None:
        await with_subscription(door)
        rule = await door.send("GET", "t/subscriptions/s/rules/$default")
        assert 'i:type="TrueFilter"' in rule.body.decode()
        assert rule.text("Name") == "$Default"
        given = entry_of(
            "SubscriptionDescription",
            '<DefaultRuleDescription><Filter i:type="SqlFilter"><SqlExpression>a = 1</SqlExpression></Filter>'
            "<Name>mine</Name></DefaultRuleDescription>",
        )
        assert (await door.send("PUT", "t/subscriptions/other", given)).status == 201
        assert (await door.send("GET", "t/subscriptions/other/rules")).titles == ["mine"]

    run(test)


def test_subscriptions_are_listed_changed_and_deleted() -> None:
    async def test(door: DoorAtHand) -> None:
        await with_subscription(door)
        await door.send("PUT", "t/subscriptions/Another", SUBSCRIPTION)
        assert (await door.send("PUT", "t/subscriptions/S", SUBSCRIPTION)).status == 409
        assert (await door.send("GET", "t/subscriptions")).titles == ["Another", "s"]
        page = await door.send("GET", "T/Subscriptions", query="$skip=0&$top=1")
        assert (page.titles, len(page.xml.findall("{*}link"))) == (["Another"], 2)
        changed = await door.update(
            "t/subscriptions/s", entry("SubscriptionDescription", LockDuration="PT2M", ForwardTo="t")
        )
        assert (changed.status, changed.text("LockDuration")) == (200, "PT2M")
        assert changed.text("ForwardTo") == "sb://asterism.servicebus.windows.net/t"
        for name in ("missing", ""):
            refused = await door.update(f"t/subscriptions/{name}", SUBSCRIPTION)
            assert refused.status in (400, 404)
        assert (
            await door.update("t/subscriptions/s", entry("SubscriptionDescription", LockDuration="P25D"))
        ).status == 400
        assert (await door.send("DELETE", "t/subscriptions/another")).status == 200
        assert (await door.send("DELETE", "t/subscriptions/another")).status == 404
        assert (await door.send("GET", "t/subscriptions")).titles == ["s"]

    run(test)


def test_a_rule_comes_back_as_it_was_sent() -> None:
    values = [
        ("key_string", "string", " str &amp; "),
        ("key_int", "int", "2"),
        ("key_long", "long", "2147483650"),
        ("key_bool", "boolean", "false"),
        ("key_datetime", "dateTime", "2020-07-05T11:12:13"),
        ("key_duration", "duration", "P1DT2H3M"),
    ]
    properties = "".join(VALUE.format(name=name, kind=kind, text=text) for name, kind, text in values)
    parameter = VALUE.format(name="@param", kind="dateTime", text="2020-07-05T11:12:13")
    filter_xml = (
        f'<Filter i:type="CorrelationFilter"><CorrelationId>c</CorrelationId><Label>l</Label>'
        f"<Properties>{properties}</Properties></Filter>"
    )
    action_xml = (
        '<Action i:type="SqlRuleAction"><SqlExpression>SET a = @param</SqlExpression>'
        f"<CompatibilityLevel>20</CompatibilityLevel><Parameters>{parameter}</Parameters></Action>"
    )

    async def test(door: DoorAtHand) -> None:
        await with_subscription(door)
        created = await door.send(
            "PUT", "t/subscriptions/s/rules/r", entry_of("RuleDescription", filter_xml + action_xml)
        )
        assert created.status == 201
        shown = (await door.send("GET", "t/subscriptions/s/rules/R")).body.decode()
        assert filter_xml in shown
        assert action_xml in shown

    run(test)


def test_rules_are_added_replaced_and_deleted() -> None:
    async def test(door: DoorAtHand) -> None:
        await with_subscription(door)
        for name in ("one", "two"):
            assert (await door.send("PUT", f"t/subscriptions/s/rules/{name}", sql("a &lt; 1"))).status == 201
        assert (await door.send("PUT", "t/subscriptions/s/rules/ONE", sql("a = 1"))).status == 409
        assert (await door.send("GET", "t/subscriptions/s/rules")).titles == ["$Default", "one", "two"]
        replaced = await door.update("t/subscriptions/s/rules/one", sql("b = 2"))
        assert (replaced.status, replaced.text("SqlExpression")) == (200, "b = 2")
        assert 'i:type="EmptyRuleAction"' in replaced.body.decode()
        assert (await door.update("t/subscriptions/s/rules/three", sql("b = 2"))).status == 404
        assert (await door.send("DELETE", "t/subscriptions/s/rules/$Default")).status == 200
        assert (await door.send("DELETE", "t/subscriptions/s/rules/$Default")).status == 404
        assert (await door.send("GET", "t/subscriptions/s/rules")).titles == ["one", "two"]
        assert (await door.send("GET", "t/subscriptions/missing/rules")).status == 404

    run(test)


@pytest.mark.parametrize(
    "body",
    [
        sql("a ="),
        sql(""),
        sql("a = " + "1 + " * 300 + "1"),
        sql("a = @missing"),
        entry_of("RuleDescription", '<Filter i:type="CorrelationFilter" />'),
        entry_of("RuleDescription", '<Filter i:type="Nonsense" />'),
        entry_of("RuleDescription", '<Filter i:type="SqlFilter" />'),
        entry_of(
            "RuleDescription",
            '<Filter i:type="TrueFilter" /><Action i:type="SqlRuleAction"><SqlExpression>SET</SqlExpression></Action>',
        ),
        entry_of(
            "RuleDescription",
            f'<Filter i:type="CorrelationFilter"><Properties>{BAD_VALUE}</Properties></Filter>',
        ),
        entry("SubscriptionDescription"),
    ],
)
def test_a_rule_that_has_no_meaning_is_refused(body: bytes) -> None:
    async def test(door: DoorAtHand) -> None:
        await with_subscription(door)
        refused = await door.send("PUT", "t/subscriptions/s/rules/r", body)
        assert (refused.status, refused.detail[:14]) == (400, "SubCode=40000.")
        assert (await door.send("GET", "t/subscriptions/s/rules")).titles == ["$Default"]

    run(test)


def test_names_of_subscriptions_and_rules_have_fifty_characters() -> None:
    async def test(door: DoorAtHand) -> None:
        await with_subscription(door)
        for name in ("a" * 51, "a b", "-"):
            assert (await door.send("PUT", f"t/subscriptions/{name}", SUBSCRIPTION)).status == 400
            assert (await door.send("PUT", f"t/subscriptions/s/rules/{name}", sql("a = 1"))).status == 400

    run(test)


def test_quotas_of_a_topic_are_kept() -> None:
    async def test(door: DoorAtHand) -> None:
        await with_subscription(door)
        assert (await door.send("PUT", "t/subscriptions/two", SUBSCRIPTION)).status == 201
        assert (await door.send("PUT", "t/subscriptions/three", SUBSCRIPTION)).status == 403
        correlation = entry_of("RuleDescription", '<Filter i:type="CorrelationFilter"><Label>l</Label></Filter>')
        assert (await door.send("PUT", "t/subscriptions/s/rules/sql", sql("a = 1"))).status == 201
        assert (await door.send("PUT", "t/subscriptions/two/rules/sql", sql("a = 1"))).status == 403
        assert (await door.send("PUT", "t/subscriptions/two/rules/label", correlation)).status == 201
        assert (await door.send("PUT", "t/subscriptions/s/rules/label", correlation)).status == 403

    run(test, bus_subscriptions_max=2, bus_sql_filters_max=3, bus_correlation_filters_max=1)
