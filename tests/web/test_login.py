"""Who may see what: tokens, links, roles."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

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


def test_a_login_leads_nowhere_else(server: ServerProcess, open_page: OpenPage) -> None:
    page = open_page("/login?next=//evil.example/", token="")
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


def test_a_page_that_the_role_forbids_says_so(server: ServerProcess, open_page: OpenPage) -> None:
    token = server.client.create_token("page-curious", "viewer").token
    page = open_page("/tokens", token=token)
    expect(page.get_by_role("alert")).to_contain_text("forbidden")


def test_a_revoked_token_is_asked_for_again(server: ServerProcess, open_page: OpenPage) -> None:
    token = server.client.create_token("page-leaver", "viewer").token
    page = open_page("/playbooks", token=token)
    expect(page.get_by_role("heading", name="Playbooks")).to_be_visible()
    server.client.revoke_token("page-leaver")
    page.get_by_role("link", name="Executions").click()
    expect(page.get_by_role("heading", name="Sign in to NoETL")).to_be_visible()
