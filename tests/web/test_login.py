"""Who may see what: tokens, links, roles."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from noetl.ports.http_api import StartExecution
from tests.server.server_process import ServerProcess
from tests.web.conftest import OpenPage


def _header(page: Page) -> None:
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()


def test_a_token_opens_the_page_that_was_asked_for(server: ServerProcess, open_page: OpenPage) -> None:
    page = open_page("/playbooks?q=shop", token="")
    page.get_by_label("Token").fill("no-such-token")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("not valid")
    page.get_by_label("Token").fill(server.token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Playbooks")).to_be_visible()
    expect(page).to_have_url(f"{server.url}/playbooks?q=shop")


def test_the_token_is_out_of_reach_of_scripts(server: ServerProcess, open_page: OpenPage) -> None:
    page = open_page("/")
    _header(page)
    seen = page.evaluate(
        "document.cookie + JSON.stringify(localStorage) + document.documentElement.outerHTML"
    )
    assert server.token not in seen
    cookies = page.context.cookies()
    assert [(item["httpOnly"], item["sameSite"]) for item in cookies] == [(True, "Strict")]


def test_the_link_of_the_server_opens_it_once(server: ServerProcess, open_page: OpenPage) -> None:
    link = server.client.create_login_link()
    page = open_page(link.path, token="")
    _header(page)
    assert urlsplit(page.url).path == "/"
    again = open_page(link.path, token="")
    expect(again.get_by_text("This login link was used already")).to_be_visible()


@pytest.mark.parametrize("address", ["//evil.example/", "https://evil.example/", "/%5Cevil.example/", "evil"])
def test_a_login_leads_nowhere_else(server: ServerProcess, open_page: OpenPage, address: str) -> None:
    page = open_page(f"/login?next={address}", token="")
    page.get_by_label("Token").fill(server.token)
    page.get_by_role("button", name="Sign in").click()
    _header(page)
    assert page.url == f"{server.url}/"


def test_signing_out_ends_the_session(open_page: OpenPage) -> None:
    page = open_page("/")
    page.get_by_role("button", name=re.compile("Account of")).click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in to NoETL")).to_be_visible()
    page.goto("/executions")
    expect(page.get_by_role("heading", name="Sign in to NoETL")).to_be_visible()


@pytest.mark.parametrize(
    ("role", "offered"),
    [("viewer", ""), ("operator", "Run"), ("author", "Run Edit"), ("admin", "Run Edit Tokens")],
)
def test_buttons_follow_roles(server: ServerProcess, open_page: OpenPage, role: str, offered: str) -> None:
    token = server.client.create_token(f"page-{role}", role).token
    page = open_page("/playbooks/shop/prices", token=token)
    expect(page.get_by_role("heading", name="shop/prices")).to_be_visible()
    expect(page.get_by_text("registered", exact=False).first).to_be_visible()
    page.get_by_role("button", name=re.compile("Account of")).click()
    expect(page.get_by_text(f"page-{role} · {role}")).to_be_visible()
    links = ("Run", "Edit", "Tokens")
    assert [
        name for name in links if page.get_by_role("link", name=name, exact=True).count()
    ] == offered.split()


ACTING = [
    "Run",
    "Run a playbook",
    "Edit",
    "New playbook",
    "Retry…",
    "Drain…",
    "All that match the filter",
    "Send the answer",
]
"""What changes something, wherever it is offered."""
AUTHORS = re.compile("^(Edit|New playbook|Delete version [0-9]+|Save version)$")


def test_a_viewer_is_offered_nothing_that_changes_something(
    server: ServerProcess, open_page: OpenPage
) -> None:
    client = server.client
    client.wait(client.start(StartExecution(path="shop/prices", workload={"shop": "bad"})).execution_id)
    client.start(StartExecution(path="shop/hold"))
    pages = {
        "/": "Needs attention",
        "/executions": "Started",
        "/playbooks": "shop/prices",
        "/playbooks/shop/prices?tab=versions": "What differs",
        "/inbox": "Your role may look, not answer.",
        "/workers": "free",
    }
    tokens = {role: client.create_token(f"offered-{role}", role).token for role in ("viewer", "operator")}
    offered: dict[str, set[str]] = {}
    for role, token in tokens.items():
        page = open_page("/", token=token)
        offered[role] = set()
        for path, text in pages.items():
            page.goto(path)
            if role == "viewer" or path != "/inbox":
                expect(page.get_by_text(text).first).to_be_visible()
            else:
                expect(page.get_by_role("button", name="Send the answer").first).to_be_visible()
            expect(page.locator(".loading")).to_have_count(0)
            names = page.locator("main").evaluate(
                "main => [...main.querySelectorAll('button, a.button, input[type=checkbox]')].map(e => e.type === 'checkbox' ? 'checkbox' : e.getAttribute('aria-label') || e.textContent)"
            )
            offered[role].update(names)
    assert offered["viewer"] & {*ACTING, "checkbox"} == set()
    assert offered["operator"] >= {*ACTING, "checkbox"} - {"Edit", "New playbook"}
    assert [name for role in tokens for name in offered[role] if AUTHORS.match(name)] == []


def test_a_page_that_the_role_forbids_says_so(server: ServerProcess, open_page: OpenPage) -> None:
    token = server.client.create_token("page-curious", "viewer").token
    page = open_page("/tokens", token=token)
    expect(page.get_by_role("alert")).to_contain_text("forbidden")


def test_a_revoked_token_is_asked_for_again(server: ServerProcess, open_page: OpenPage) -> None:
    token = server.client.create_token("page-leaver", "viewer").token
    page = open_page("/playbooks", token=token)
    expect(page.get_by_role("heading", name="Playbooks")).to_be_visible()
    server.client.revoke_token("page-leaver")
    # Not `click`, which waits for the link to stand still: the page may have asked by itself before that.
    page.evaluate("document.querySelector('a[href=\"/executions\"]')?.click()")
    expect(page.get_by_role("heading", name="Sign in to NoETL")).to_be_visible()
