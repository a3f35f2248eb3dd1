"""The page of a queue, a topic and a subscription: messages, dead letters, fragments, and the form that sends."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, derive_readonly_key
from asterism.cli.client import AdminClient
from tests.browser.page_watch import PageWatch
from tests.browser.portal_server import DOORS, PortalServer, running_portal
from tests.browser.signing_in import sign_in
from tests.browser.toasts import expect_toast


@pytest.fixture(scope="module")
def portal() -> Iterator[PortalServer]:
    with running_portal("--no-throttle", doors=(*DOORS, "amqp")) as running:
        yield running


class Operator:
    """The command line's client, for what a page starts from."""

    def __init__(self, portal: PortalServer) -> None:
        self._client = AdminClient(portal.server.endpoint, WELL_KNOWN_EMULATOR_KEY, insecure=True)

    def post(self, route: str, **fields: Any) -> dict[str, Any]:
        return self._client.post(f"messaging/{route}", {"namespace": "asterism", **fields})

    def read(self, route: str, **parameters: str) -> dict[str, Any]:
        return self._client.get(f"messaging/{route}", namespace="asterism", **parameters)

    def new_queue(self, **settings: Any) -> str:
        name = f"queue-{uuid.uuid4()}"
        self.post("create", entity=name, **settings)
        return name

    def send(self, entity: str, *bodies: str, **fields: Any) -> None:
        self.post("send", entity=entity, messages=[{"body": body, **fields} for body in bodies])

    def dead_letter(self, entity: str, *bodies: str) -> None:
        self.send(entity, *bodies)
        taken = self.post("receive", entity=entity, count=len(bodies))["messages"]
        tokens = [message["lock_token"] for message in taken]
        self.post("settle", entity=entity, action="dead-letter", lock_tokens=tokens, reason="broken", description="why")


@pytest.fixture(scope="module")
def operator(portal: PortalServer) -> Operator:
    return Operator(portal)


def open_page(page: Page, entity: str, *, key: str = WELL_KNOWN_EMULATOR_KEY) -> None:
    sign_in(page, path=f"/m/asterism/{entity}", key=key)
    expect(page.get_by_role("heading", level=1)).to_have_text(entity)


def test_the_list_leads_to_the_messages_of_a_queue(page: Page, operator: Operator) -> None:
    queue = operator.new_queue()
    operator.send(queue, '{"id": 1, "tags": ["a"]}', properties={"region": "eu"}, subject="made")
    sign_in(page, path=f"/?search={queue}")
    page.get_by_role("link", name=queue).click()
    expect(page).to_have_url(re.compile(f"/m/asterism/{queue}$"))
    row = page.get_by_role("table", name="messages").get_by_role("row").filter(has_text="region=eu")
    expect(row).to_contain_text("made")
    row.get_by_role("button", name="Open message 1").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Body")).to_contain_text('"tags": [')
    expect(dialog).to_contain_text("region")
    expect(dialog).to_contain_text("sequence number")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)


def test_messages_are_shown_page_by_page(page: Page, operator: Operator) -> None:
    queue = operator.new_queue()
    operator.send(queue, *(f"message {number:02}" for number in range(30)))
    open_page(page, queue)
    table = page.get_by_role("table", name="messages")
    expect(table).to_contain_text("message 19")
    page.get_by_role("button", name="Next page").click()
    expect(table).to_contain_text("message 29")
    expect(page.get_by_role("button", name="Next page")).to_be_disabled()
    page.get_by_role("button", name="First page").click()
    expect(table).to_contain_text("message 00")
    page.get_by_label("From number").fill("25")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(table.get_by_role("row")).to_have_count(7)


def test_a_message_is_sent_by_the_form(page: Page, operator: Operator) -> None:
    queue = operator.new_queue()
    open_page(page, queue)
    page.get_by_role("tab", name="Send").click()
    page.get_by_label("Body", exact=True).fill('{"id": 7}')
    page.get_by_label("The body is JSON").check()
    page.get_by_label("Subject").fill("by hand")
    page.get_by_label("Properties").fill("region=eu\ncount=3")
    page.get_by_role("button", name="Send", exact=True).click()
    expect_toast(page, "Sent, with the number 1.")
    (message,) = operator.read("messages", entity=queue)["messages"]
    assert message["body"]["text"] == '{"id": 7}'
    assert message["application_properties"] == {"region": "eu", "count": 3}
    assert message["properties"]["content_type"] == "application/json"
    page.get_by_role("tab", name="Messages").click()
    expect(page.get_by_role("table", name="messages")).to_contain_text("by hand")


def test_a_message_that_cannot_be_sent_stays_in_the_form(page: Page, operator: Operator, watch: PageWatch) -> None:
    open_page(page, operator.new_queue())
    watch.expect_fault("status of 400")
    page.get_by_role("tab", name="Send").click()
    page.get_by_label("Body", exact=True).fill("{")
    page.get_by_label("The body is JSON").check()
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="not JSON")).to_be_visible()
    expect(page.get_by_label("Body", exact=True)).to_have_value("{")


def test_dead_letters_are_shown_with_their_reasons_and_sent_again(page: Page, operator: Operator) -> None:
    queue = operator.new_queue()
    operator.dead_letter(queue, "first", "second", "third")
    open_page(page, queue)
    page.get_by_role("tab", name="Dead letters").click()
    table = page.get_by_role("table", name="dead letters")
    expect(table).to_contain_text("broken")
    expect(page.get_by_role("button", name="Send selected again")).to_be_disabled()
    page.get_by_role("checkbox", name="Select 2").check()
    page.get_by_role("button", name="Send selected again").click()
    page.get_by_role("dialog").get_by_role("button", name="Send again").click()
    expect_toast(page, "1 sent again.")
    expect(table).not_to_contain_text("second")
    page.get_by_role("button", name="Send all again").click()
    page.get_by_role("dialog").get_by_role("button", name="Send again").click()
    expect_toast(page, "2 sent again.")
    expect(page.get_by_text("There are no dead letters.", exact=True)).to_be_visible()
    assert operator.read("entity", entity=queue)["counts"]["active"] == 3


def test_a_queue_is_emptied_after_its_name_was_typed(page: Page, operator: Operator) -> None:
    queue = operator.new_queue()
    operator.send(queue, "a", "b")
    open_page(page, queue)
    page.get_by_role("button", name="Remove all messages").click()
    dialog = page.get_by_role("dialog")
    confirm = dialog.get_by_role("button", name="Remove all")
    expect(confirm).to_be_disabled()
    dialog.get_by_label("Type the name").fill(queue)
    confirm.click()
    expect_toast(page, "2 removed.")
    expect(page.get_by_text("There are no messages.")).to_be_visible()


def test_a_fragment_is_closed_and_opened(page: Page, operator: Operator) -> None:
    queue = operator.new_queue(is_partitioned=True)
    open_page(page, queue)
    page.get_by_role("tab", name="Fragments").click()
    fragments = page.get_by_role("list", name="Fragments").get_by_role("listitem")
    expect(fragments).to_have_count(16)
    page.get_by_role("button", name="Close fragment 5").click()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    expect(page.get_by_role("listitem", name="Fragment 5")).to_contain_text("closed")
    page.get_by_role("button", name="Open fragment 5").click()
    expect(page.get_by_role("listitem", name="Fragment 5")).to_contain_text("up")


def test_a_topic_leads_to_its_subscriptions(page: Page, operator: Operator) -> None:
    topic = operator.new_queue(kind="topic")
    operator.post("create", entity=f"{topic}/subscriptions/eu", filter="region = 'eu'")
    operator.send(topic, "hello", properties={"region": "eu"})
    open_page(page, topic)
    page.get_by_role("table", name="Subscriptions").get_by_role("link", name="eu").click()
    expect(page).to_have_url(re.compile(f"/m/asterism/{topic}/subscriptions/eu$"))
    expect(page.get_by_role("table", name="messages")).to_contain_text("hello")
    page.get_by_role("tab", name="Rules").click()
    expect(page.get_by_role("table", name="Rules")).to_contain_text("region = 'eu'")
    page.get_by_role("link", name=topic).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(topic)


def test_a_visitor_with_a_read_only_key_looks_and_changes_nothing(page: Page, operator: Operator) -> None:
    queue = operator.new_queue()
    operator.dead_letter(queue, "x")
    open_page(page, queue, key=derive_readonly_key(WELL_KNOWN_EMULATOR_KEY))
    expect(page.get_by_role("tab", name="Send")).to_have_count(0)
    page.get_by_role("tab", name="Dead letters").click()
    expect(page.get_by_role("table", name="dead letters")).to_contain_text("broken")
    expect(page.get_by_role("button", name="again")).to_have_count(0)
    expect(page.get_by_role("button", name="Remove")).to_have_count(0)


def test_the_page_fits_a_phone(page: Page, operator: Operator) -> None:
    queue = operator.new_queue(is_partitioned=True)
    operator.send(queue, "x" * 400, properties={"a-rather-long-name": "y" * 60})
    page.set_viewport_size({"width": 390, "height": 844})
    open_page(page, queue)
    expect(page.get_by_role("table", name="messages")).to_be_visible()
    for tab in ("Messages", "Send", "Fragments", "Settings"):
        page.get_by_role("tab", name=tab).click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("path", ["/m/asterism/nosuch", "/h/asterism/nosuch", "/m/nosuch/nosuch"])
def test_a_page_of_something_that_does_not_exist_says_so(page: Page, path: str) -> None:
    sign_in(page, path="/")
    answer = page.request.get(path)
    assert (answer.status, "There is no" in answer.text()) == (404, True)
