"""Registered playbooks: versions, and what is pinned."""

import pytest

from noetl.client.http_client import Client
from noetl.client.server_requests import ServerError
from noetl.ports.http_api import StartExecution
from tests.server.server_process import GREET, WAITING, ServerProcess
from tests.server.test_api_security import send

SHOP = GREET.replace("examples/greet", "shop/order")


def test_a_change_makes_the_next_version_and_nothing_else_does(client: Client) -> None:
    first = client.register(SHOP)
    assert (first.path, first.version, first.created, first.label) == ("shop/order", 1, True, "1.0")
    again = client.register(f"# only a comment\n{SHOP}")
    assert (again.version, again.created, again.hash) == (1, False, first.hash)
    second = client.register(SHOP.replace("Hello", "Bye"))
    assert (second.version, second.created) == (2, True)
    assert [version.version for version in client.versions("shop/order").versions] == [2, 1]
    assert client.playbook("shop/order").version == 2
    old = client.playbook("shop/order", 1)
    assert (old.source, old.hash) == (SHOP, first.hash)
    assert old.canonical.startswith("apiVersion: noetl.io/v2\n")
    with pytest.raises(ServerError) as unknown:
        client.playbook("shop/order", 3)
    assert unknown.value.code == "not_found"


@pytest.mark.spec("000 §4.1 (2)")
def test_an_execution_runs_the_version_that_it_names(client: Client) -> None:
    playbook = SHOP.replace("shop/order", "shop/pinned")
    first = client.register(playbook)
    client.register(playbook.replace("Hello", "Bye"))
    started = [
        client.start(StartExecution(path="shop/pinned", version=1)),
        client.start(StartExecution(path="shop/pinned")),
        client.start(StartExecution(playbook_id=first.hash)),
    ]
    ended = [client.wait(execution.execution_id) for execution in started]
    assert [detail.result["greeting"] for detail in ended] == ["Hello World", "Bye World", "Hello World"]
    assert ended[0].hash == first.hash


def test_what_runs_is_not_deleted_and_outlives_what_is(client: Client) -> None:
    playbook = WAITING.replace("examples/waiting", "shop/held")
    client.register(playbook)
    client.register(playbook.replace("step: end\n", "step: end\n  desc: changed\n"))
    execution_id = client.start(StartExecution(path="shop/held", version=1)).execution_id
    for version in (1, 0):
        with pytest.raises(ServerError) as refused:
            client.delete_playbook("shop/held", version)
        assert (refused.value.code, refused.value.problem.execution_id) == ("refused", execution_id)
    assert client.delete_playbook("shop/held", 2).versions == [2]
    client.signal(execution_id, "go")
    assert client.wait(execution_id).status == "completed"
    assert client.delete_playbook("shop/held").versions == [1]
    assert client.show(execution_id).playbook == "shop/held"
    with pytest.raises(ServerError) as unknown:
        client.start(StartExecution(path="shop/held"))
    assert unknown.value.code == "not_found"
    assert client.register(playbook).version == 3


def test_the_list_is_paged_by_path(client: Client) -> None:
    for name in ("c", "a", "b"):
        client.register(GREET.replace("examples/greet", f"pages/{name}"))
    page = client.playbooks(prefix="pages/", limit=2)
    assert [playbook.path for playbook in page.playbooks] == ["pages/a", "pages/b"]
    rest = client.playbooks(prefix="pages/", limit=2, cursor=page.next_cursor or "")
    assert ([playbook.path for playbook in rest.playbooks], rest.next_cursor) == (["pages/c"], None)


@pytest.mark.parametrize("view", ["versions", "net", "statistics"])
def test_a_playbook_may_be_called_as_a_view(server: ServerProcess, client: Client, view: str) -> None:
    """Without a version, its path would mean a view of the playbook above it."""
    above, path = f"named/{view}", f"named/{view}/{view}"
    client.register(GREET.replace("examples/greet", path))
    status, _, problem = send(f"{server.url}/api/catalog/{path}", token=server.token)
    assert (status, problem["code"]) == (404, "not_found")
    assert problem["hint"] == f"the playbook `{path}` is read at `/api/catalog/{path}@latest`"
    for text in (GREET, GREET.replace("Hello", "Bye")):
        client.register(text.replace("examples/greet", path))
        client.register(text.replace("examples/greet", above))
    read = [client.playbook(above), client.playbook(path), client.playbook(path, 1)]
    assert [(playbook.path, playbook.version) for playbook in read] == [(above, 2), (path, 2), (path, 1)]
    assert [version.version for version in client.versions(path).versions] == [2, 1]
    assert (client.net(path).path, client.statistics(path).path) == (path, path)
    assert client.delete_playbook(path, 1).versions == [1]
    assert client.delete_playbook(path).versions == [2]
    assert client.playbook(above).version == 2


def test_the_newest_version_is_deleted_by_its_number(server: ServerProcess) -> None:
    """`latest` reads: it must not mean all versions, as nothing behind the path does."""
    server.client.register(GREET.replace("examples/greet", "shop/kept"))
    status, _, _ = send(f"{server.url}/api/catalog/shop/kept@latest", "DELETE", server.token)
    assert status == 404
    assert server.client.playbook("shop/kept").version == 1


def test_a_draft_is_registered_as_what_it_means(client: Client) -> None:
    from tests.cli.command_line import DRAFT

    draft = DRAFT.replace("examples/greet", "shop/draft")
    with pytest.raises(ServerError):
        client.register(draft)
    registered = client.register(draft, dialect="draft")
    assert registered.dialect == "draft"
    assert "eval" not in client.playbook("shop/draft").canonical
    assert client.wait(client.start(StartExecution(path="shop/draft")).execution_id).status == "completed"
