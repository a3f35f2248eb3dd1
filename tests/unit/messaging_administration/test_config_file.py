"""Config.json of the vendor's emulators: both shapes, comments, warnings, and one line for everything that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asterism.apis.amqp.administration.config_file import parse_config, read_config
from asterism.apis.settings import StartRefused

BUS = """\ufeff// A comment
{
  "UserConfig": {
    "Namespaces": [
      {
        "Name": "sbemulatorns",
        "Queues": [
          {
            "Name": "queue.1", /* another
                                  comment */
            "Properties": {
              "DeadLetteringOnMessageExpiration": false,
              "DefaultMessageTimeToLive": "PT1H",
              "DuplicateDetectionHistoryTimeWindow": "PT20S",
              "ForwardDeadLetteredMessagesTo": "",
              "ForwardTo": "topic//1",
              "LockDuration": "PT1M",
              "MaxDeliveryCount": 3,
              "RequiresDuplicateDetection": false,
              "RequiresSession": true,
            }
          }
        ],
        "Topics": [
          {
            "Name": "topic//1",
            "Properties": { "DefaultMessageTimeToLive": "PT1H", "RequiresDuplicateDetection": true },
            "Subscriptions": [
              {
                "Name": "subscription.1",
                "Properties": { "MaxDeliveryCount": 3, "ForwardTo": "" },
                "Rules": [
                  {
                    "Name": "app-prop-filter-1",
                    "Properties": {
                      "FilterType": "Correlation",
                      "CorrelationFilter": { "ContentType": "application/text", "Properties": { "prop3": "value3" } }
                    }
                  },
                  {
                    "Name": "user-filter",
                    "Properties": {
                      "FilterType": "Sql",
                      "SqlFilter": { "SqlExpression": "sys.MessageId = '123456' AND userProp1 = 'value1'" },
                      "Action": { "SqlExpression": "SET sys.To = 'Entity'" }
                    }
                  }
                ]
              },
              { "Name": "subscription.2" }
            ]
          }
        ]
      }
    ],
    "Logging": { "Type": "File" }
  }
}
""".replace("topic//1", "topic.1")

HUBS = """
{
  "UserConfig": {
    "NamespaceConfig": [
      {
        "Type": "EventHub",
        "Name": "emulatorNs1",
        "Entities": [ { "Name": "eh1", "PartitionCount": "2", "ConsumerGroups": [ { "Name": "cg1" } ] } ]
      }
    ],
    "LoggingConfig": { "Type": "File" }
  }
}
"""


def test_queues_topics_subscriptions_and_rules_are_read() -> None:
    config = parse_config(BUS.removeprefix("\ufeff"), "Config.json")
    (namespace,) = config.namespaces
    queue, topic = namespace.entities
    assert config.warnings == ()
    assert (namespace.name, queue.kind, queue.name) == ("sbemulatorns", "queue", "queue.1")
    assert queue.fields == {
        "dead_letters_expired": False,
        "default_ttl_ms": 3_600_000,
        "duplicate_window_ms": 20_000,
        "forward_to": "topic.1",
        "lock_ms": 60_000,
        "max_delivery_count": 3,
        "requires_duplicate_detection": False,
        "requires_session": True,
    }
    first, second = topic.subscriptions
    assert (first.fields, second.rules) == ({"max_delivery_count": 3}, None)
    correlation, sql = first.rules or ()
    assert (correlation.filter.kind, correlation.filter.content_type) == ("correlation", "application/text")
    assert [(each.name, each.type, each.text) for each in correlation.filter.properties] == [
        ("prop3", "string", "value3")
    ]
    assert (sql.name, sql.action_sql) == ("user-filter", "SET sys.To = 'Entity'")


def test_hubs_are_read() -> None:
    (namespace,) = parse_config(HUBS, "Config.json").namespaces
    (hub,) = namespace.hubs
    assert (namespace.name, hub.name, hub.partition_count, hub.groups) == ("emulatorNs1", "eh1", 2, ("cg1",))


def test_a_file_is_read_with_its_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "Config.json"
    file.write_text(BUS, encoding="utf-8")
    assert len(read_config(str(file)).namespaces) == 1


def test_comments_and_commas_in_texts_are_kept() -> None:
    text = '{"UserConfig": {"Namespaces": [{"Name": "a//b,}", "Queues": [],}]}}'
    assert parse_config(text, "f").namespaces[0].name == "a//b,}"


def test_unknown_properties_are_warnings() -> None:
    queues = '[{"Name": "q", "Properties": {"X": 1}}]'
    text = f'{{"UserConfig": {{"Namespaces": [{{"Name": "n", "Colour": 1, "Queues": {queues}}}]}}}}'
    assert parse_config(text, "f").warnings == (
        "f: the property 'colour' at UserConfig.Namespaces[0] is not known and has no effect",
        "f: the property 'x' at UserConfig.Namespaces[0].Queues[0] is not known and has no effect",
    )


def queue(**properties: Any) -> dict[str, Any]:
    return {"Name": "q", "Properties": properties}


def rule(**properties: Any) -> dict[str, Any]:
    subscription = {"Name": "s", "Rules": [{"Name": "r", "Properties": properties}]}
    return {"Topics": [{"Name": "t", "Subscriptions": [subscription]}]}


@pytest.mark.parametrize(
    ("namespace", "words"),
    [
        ({"Queues": [{}]}, r"Queues\[0\]: The name is missing"),
        ({"Queues": [{"Name": "a b"}]}, r"Queues\[0\]: 'a b' cannot be the name"),
        ({"Queues": {}}, r"Namespaces\[0\]\.Queues: This is not a list"),
        ({"Queues": ["q"]}, r"Queues\[0\]: This is not an object"),
        ({"Queues": [queue(), queue()]}, "Two entities have the same name"),
        ({"Queues": [queue(LockDuration="PT6M")]}, r"Queues\[0\]: LockDuration is between"),
        ({"Queues": [queue(LockDuration=60)]}, "LockDuration is not a duration"),
        ({"Queues": [queue(MaxDeliveryCount=0)]}, "MaxDeliveryCount is 0"),
        ({"Queues": [queue(RequiresSession="maybe")]}, "RequiresSession is not true or false"),
        ({"Queues": [queue(ForwardTo="elsewhere")]}, "'q' forwards to 'elsewhere'"),
        ({"Topics": [{"Name": "t", "Subscriptions": [{"Name": "s"}, {"Name": "S"}]}]}, "Two subscriptions"),
        (rule(FilterType="Sql", SqlFilter={"SqlExpression": "a ="}), r"Rules\[0\]: A name, a constant"),
        (rule(FilterType="Sql"), "'SqlExpression' of a rule is not a text"),
        (rule(FilterType="Regex"), "filter type 'regex'"),
        (rule(FilterType="Correlation", CorrelationFilter={}), "at least one property"),
        (rule(FilterType="Correlation", CorrelationFilter={"Nonsense": "x"}), "'Nonsense' is not a field"),
    ],
)
def test_a_wrong_property_is_one_line_with_its_place(namespace: dict[str, Any], words: str) -> None:
    text = json.dumps({"UserConfig": {"Namespaces": [{"Name": "n", **namespace}]}})
    with pytest.raises(StartRefused, match=words) as caught:
        parse_config(text, "Config.json")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("the messaging configuration Config.json is wrong at UserConfig.Namespaces[0]")


@pytest.mark.parametrize(
    ("entity", "words"),
    [
        ({"Name": "h", "PartitionCount": 0}, "PartitionCount"),
        ({"Name": "h", "PartitionCount": "many"}, "PartitionCount"),
        ({"Name": "-"}, "The name of a hub"),
        ({"Name": "h", "ConsumerGroups": [{"Name": "a b"}]}, "The name of a consumer group"),
    ],
)
def test_a_wrong_hub_is_refused(entity: dict[str, Any], words: str) -> None:
    text = json.dumps({"UserConfig": {"NamespaceConfig": [{"Type": "EventHub", "Name": "n", "Entities": [entity]}]}})
    with pytest.raises(StartRefused, match=words):
        parse_config(text, "Config.json")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"UserConfig": 5}', "[" * 100_000])
def test_a_file_that_is_not_a_configuration_is_refused(text: str) -> None:
    with pytest.raises(StartRefused, match=r"^the messaging configuration f "):
        parse_config(text, "f")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match="cannot be read"):
        read_config(str(tmp_path / "missing.json"))
