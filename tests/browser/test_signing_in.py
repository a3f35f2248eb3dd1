"""The way in and out: keys, sessions, and trouble with either."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, derive_readonly_key
from tests.browser.page_watch import PageWatch
from tests.browser.portal_server import PortalServer, running_portal
from tests.browser.signing_in import sign_in


def test_a_wrong_key_is_refused_and_the_right_one_leads_to_the_wanted_page(page: Page, watch: PageWatch) -> None:
    watch.expect_fault("status of 403")
    page.goto("/?search=nothing")
    page.get_by_label("Account key").fill("bm8=")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert").filter(has_text="not a key")).to_contain_text("asterism keys")
    page.get_by_label("Account key").fill(WELL_KNOWN_EMULATOR_KEY)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    assert page.url.endswith("/?search=nothing")


def test_signing_out_ends_the_session_in_every_tab(page: Page, watch: PageWatch) -> None:
    sign_in(page)
    other = page.context.new_page()
    other.goto("/")
    expect(other.get_by_role("heading", name="Data")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Account key")).to_be_visible()
    # The other tab asks for its jobs again and again, and notices.
    watch.expect_fault("status of 401")
    banner = other.get_by_role("alert").filter(has_text="Your session has ended")
    expect(banner).to_be_visible()
    banner.get_by_role("link", name="Sign in").click()
    expect(other.get_by_label("Account key")).to_be_visible()


def test_a_read_only_key_sees_no_way_to_change_things(page: Page) -> None:
    sign_in(page, key=derive_readonly_key(WELL_KNOWN_EMULATOR_KEY))
    expect(page.get_by_text("read only")).to_be_visible()
    expect(page.get_by_role("button", name="New container")).to_have_count(0)
    content = page.content()
    assert WELL_KNOWN_EMULATOR_KEY not in content


def test_a_page_survives_a_restart_of_the_server(page: Page, watch: PageWatch) -> None:
    with running_portal("--no-throttle") as first:
        port = first.server.ports["portal"]
        watch.allow_origin(first.url)
        page.goto(f"{first.url}/")
        page.get_by_label("Account key").fill(first.key)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Data")).to_be_visible()
        # A request may be under way when the server is killed.
        watch.expect_fault("ERR_(CONNECTION_[A-Z]+|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING|CONTENT_LENGTH_MISMATCH)")
        first.server.kill()
        expect(page.get_by_role("alert").filter(has_text="The server does not answer")).to_be_visible()
    with running_portal("--no-throttle", "--portal-port", str(port)) as second:
        assert second.server.process.poll() is None
        expect(page.get_by_role("alert").filter(has_text="The server does not answer")).to_have_count(0)
        # The session is still good: it belongs to the key, not to the process.
        page.reload()
        expect(page.get_by_role("heading", name="Data")).to_be_visible()


def test_an_open_portal_asks_for_no_key(page: Page, watch: PageWatch) -> None:
    with running_portal("--portal-open") as open_portal:
        watch.allow_origin(open_portal.url)
        page.goto(f"{open_portal.url}/")
        expect(page.get_by_role("heading", name="Data")).to_be_visible()


def test_the_portal_is_used_by_keyboard_alone(page: Page, portal: PortalServer) -> None:
    page.goto("/sign-in")
    expect(page.get_by_label("Account key")).to_be_focused()
    page.keyboard.type(portal.key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Data")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
