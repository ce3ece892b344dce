"""Objects in Google Cloud Storage: the kind `s3` at `gs://` addresses, on a stand-in for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import noetl
from noetl.tools.s3.tool import S3Tool
from tests.dialects.dialect_execution import MEMORY
from tests.dsl.in_use.spelling_rows import HEADER
from tests.tools.gcs_stand_in import TOKEN, GcsStandIn, gcs_stand_in
from tests.tools.object_calls import ObjectCalls


@pytest.fixture
def store() -> Iterator[GcsStandIn]:
    with gcs_stand_in("team", "other") as store:
        yield store


@pytest.fixture
def calls(tmp_path: Path) -> ObjectCalls:
    return ObjectCalls(S3Tool, tmp_path, "s3")


def test_what_is_put_can_be_got(calls: ObjectCalls, store: GcsStandIn) -> None:
    put = calls.ok(action="put", url="gs://team/a/n.json", content={"n": 1}, auth=store.auth)
    assert (put["url"], put["size"], store.buckets["team"]) == (
        "gs://team/a/n.json",
        7,
        {"a/n.json": b'{"n":1}'},
    )
    assert calls.ok(action="get", url="gs://team/a/n.json", format="json", auth=store.auth) == {"n": 1}
    assert calls.data(calls.ok(action="get", url="gs://team/a/n.json", auth=store.auth)) == b'{"n":1}'


def test_objects_are_listed_copied_and_deleted(calls: ObjectCalls, store: GcsStandIn) -> None:
    store.buckets["team"] = {"a/1.txt": b"one", "a/2.txt": b"two", "b.txt": b"three"}
    listed = calls.ok(action="list", url="gs://team/a/", auth=store.auth)
    assert [(item["url"], item["size"]) for item in listed] == [
        ("gs://team/a/1.txt", 3),
        ("gs://team/a/2.txt", 3),
    ]
    for target in ("gs://team/c.txt", "gs://other/c.txt"):
        copied = calls.ok(action="copy", url="gs://team/a/1.txt", to=target, auth=store.auth)
        assert (copied["url"], copied["size"]) == (target, 3)
    assert store.buckets["team"]["c.txt"] == store.buckets["other"]["c.txt"] == b"one"
    assert calls.ok(action="delete", url="gs://team/c.txt", auth=store.auth)["deleted"] is True
    assert calls.ok(action="delete", url="gs://team/c.txt", auth=store.auth)["deleted"] is False


@pytest.mark.parametrize(
    ("url", "auth", "says"),
    [
        ("gs://team/none.txt", {}, ("not_found", "there is no gs://team/none.txt")),
        ("gs://nobody/a.txt", {}, ("not_found", "there is no bucket `nobody`")),
        (
            "gs://team/b.txt",
            {"access_token": "wrong"},
            ("permission", "does not allow this on gs://team/b.txt"),
        ),
        ("gs://team/b.txt", {"access_token": "a b"}, ("credential", "there is a space or a line break")),
        ("gs://team/b.txt", {"access_token": "", "key": "{}"}, ("credential", "no key of a service account")),
        ("gs://team", {}, ("input", "names no object: s3://BUCKET/NAME or gs://BUCKET/NAME")),
    ],
)
def test_what_cannot_be_had_is_told(
    calls: ObjectCalls, store: GcsStandIn, url: str, auth: dict[str, str], says: tuple[str, str]
) -> None:
    kind, message = calls.error(action="get", url=url, auth={**store.auth, **auth})
    assert (kind, says[1] in message) == (says[0], True), message


def test_an_object_is_not_copied_from_one_to_the_other(calls: ObjectCalls, store: GcsStandIn) -> None:
    error = calls.error(action="copy", url="gs://team/b.txt", to="s3://team/b.txt", auth=store.auth)
    assert error == (
        "input",
        "`gs://team/b.txt` cannot be copied to `s3://team/b.txt`: `get` it, then `put` it",
    )


@pytest.mark.parametrize(
    "script",
    [
        "{uri: gs://team/q.sql, source: {type: gcs, auth: {access_token: TOKEN, endpoint: 'URL'}}}",
        "{uri: q.sql, source: {type: gcs, bucket: team, endpoint: 'URL', auth: {access_token: TOKEN}}}",
    ],
)
def test_sql_in_use_is_read_from_google(store: GcsStandIn, script: str) -> None:
    store.buckets["team"]["q.sql"] = b"SELECT 7 AS n"
    script = script.replace("URL", store.url).replace("TOKEN", TOKEN)
    text = f"{HEADER}workflow:\n- {{step: s, tool: {{kind: duckdb, input: {{}}, script: {script}}}}}\n"
    execution = noetl.run(text, store=MEMORY)
    assert execution.result is not None, execution.error
    assert execution.result["rows"] == [{"n": 7}]
