"""What stores do with registered playbooks, tokens and the audit."""

from msgspec.structs import replace

from noetl.ports.catalog import ApiToken, AuditEntry, CatalogEntry
from noetl.ports.store import Committed, Conflict, Effects, KeyTaken, Store
from noetl.testing.store.store_fixtures import begin_execution, commit_accepted, new_append, store_test


def _entry(path: str, content_hash: str = "h1", at: int = 7) -> CatalogEntry:
    return CatalogEntry(
        path=path,
        hash=content_hash,
        label="1.2",
        dialect="",
        source=f"source of {content_hash}",
        canonical=f"canonical {content_hash}",
        created_at=at,
        created_by="ada",
    )


def _token(name: str, token_hash: str, *, at: int = 5, expires_at: int = 0) -> ApiToken:
    return ApiToken(name, token_hash, "viewer", at, "ada", expires_at, 0)


class CatalogCases:
    """Registered playbooks, tokens and the audit."""

    @store_test
    async def test_versions_count_from_1_and_what_is_unchanged_makes_none(self, store: Store) -> None:
        first = await store.put_catalog_entry(_entry("a/b"))
        assert first == replace(_entry("a/b"), version=1)
        assert await store.put_catalog_entry(_entry("a/b", at=9)) == first
        second = await store.put_catalog_entry(_entry("a/b", "h2"))
        again = await store.put_catalog_entry(_entry("a/b", "h1"))
        assert [second.version, again.version] == [2, 3]
        assert await store.catalog_entry("a/b") == again
        assert await store.catalog_entry("a/b", 2) == second
        assert await store.catalog_entry("a/b", 4) is None
        assert await store.catalog_entry("a") is None
        assert await store.catalog_versions("a/b") == [again, second, first]

    @store_test
    async def test_the_list_has_the_newest_of_each_path_a_page_at_a_time(self, store: Store) -> None:
        for path, content in [("b", "h1"), ("a/x", "h1"), ("a/y", "h1"), ("b", "h2"), ("a", "h1")]:
            await store.put_catalog_entry(_entry(path, content))
        page = await store.catalog_entries(limit=3)
        assert [(entry.path, entry.version) for entry in page.entries] == [("a", 1), ("a/x", 1), ("a/y", 1)]
        rest = await store.catalog_entries(after=page.next, limit=3)
        assert [(entry.path, entry.version, entry.source) for entry in rest.entries] == [
            ("b", 2, "source of h2")
        ]
        assert rest.next == ""
        below = await store.catalog_entries(prefix="a/")
        assert [entry.path for entry in below.entries] == ["a/x", "a/y"]

    @store_test
    async def test_a_number_that_was_deleted_does_not_come_again(self, store: Store) -> None:
        await store.put_catalog_entry(_entry("a", "h1"))
        await store.put_catalog_entry(_entry("a", "h2"))
        assert await store.delete_catalog_entries("a", 2) == []
        newest = await store.catalog_entry("a")
        assert newest is not None
        assert newest.version == 1
        assert (await store.put_catalog_entry(_entry("a", "h2"))).version == 3
        assert await store.delete_catalog_entries("a") == []
        assert await store.catalog_versions("a") == []
        assert await store.delete_catalog_entries("a") == []
        assert (await store.put_catalog_entry(_entry("a", "h2"))).version == 4

    @store_test
    async def test_versions_may_be_kept_under_the_numbers_that_they_had(self, store: Store) -> None:
        second, fourth = (replace(_entry("a", f"h{number}"), version=number) for number in (2, 4))
        await store.keep_catalog_entries("a", 5, [second, fourth])
        await store.keep_catalog_entries("b", 3, [])
        assert await store.catalog_versions("a") == [fourth, second]
        assert await store.catalog_numbers() == {"a": 5, "b": 3}
        await store.keep_catalog_entries("a", 1, [replace(second, hash="other")])
        assert await store.catalog_versions("a") == [fourth, second]
        assert await store.catalog_numbers() == {"a": 5, "b": 3}
        assert (await store.put_catalog_entry(_entry("a", "h6"))).version == 6
        assert (await store.put_catalog_entry(_entry("b"))).version == 4

    @store_test
    async def test_the_key_of_a_start_and_the_hashes_of_documents_can_be_read(self, store: Store) -> None:
        await commit_accepted(store, new_append("x", 0, start_key="key"), new_append("y", 0))
        assert [await store.start_key(name) for name in ("x", "y", "z")] == ["key", "", ""]
        await store.put_playbook("h2", b"2")
        await store.put_playbook("h1", b"1")
        assert await store.playbooks() == ["h1", "h2"]

    @store_test
    async def test_what_an_execution_runs_is_not_deleted(self, store: Store) -> None:
        await store.put_playbook("h1", b"1")
        await store.put_catalog_entry(_entry("a", "h1"))
        await store.put_catalog_entry(_entry("a", "h2"))
        await begin_execution(store, "x", Effects(path="a", playbook="h1", status="running"))
        assert await store.delete_catalog_entries("a", 1) == ["x"]
        assert await store.delete_catalog_entries("a") == ["x"]
        assert len(await store.catalog_versions("a")) == 2
        assert await store.delete_catalog_entries("a", 2) == []
        await commit_accepted(store, new_append("x", 1, Effects(status="completed", ended_at=9)))
        assert await store.delete_catalog_entries("a", 1) == []
        assert await store.catalog_versions("a") == []

    @store_test
    async def test_tokens_are_looked_up_by_their_hash(self, store: Store) -> None:
        token = _token("ci", "t1")
        assert await store.put_api_token(token)
        assert await store.api_token("t1") == token
        assert await store.api_token("t2") is None
        assert not await store.put_api_token(_token("ci", "t2"))
        assert await store.api_token("t2") is None

    @store_test
    async def test_the_name_of_a_token_is_free_when_that_is_not_valid(self, store: Store) -> None:
        revoked = _token("ci", "t1")
        await store.put_api_token(revoked)
        assert await store.revoke_api_token("ci", 8)
        assert not await store.revoke_api_token("ci", 9)
        assert await store.api_token("t1") == revoked._replace(revoked_at=8)
        short = _token("ci", "t2", at=10, expires_at=20)
        assert await store.put_api_token(short)
        assert not await store.put_api_token(_token("ci", "t3", at=19))
        late = _token("ci", "t3", at=20)
        assert await store.put_api_token(late)
        assert await store.put_api_token(_token("a", "t4"))
        assert await store.api_tokens() == [_token("a", "t4"), late]
        history = [_token("a", "t4"), revoked._replace(revoked_at=8), short, late]
        assert sorted(await store.api_token_history(), key=lambda token: token.hash) == sorted(
            history, key=lambda token: token.hash
        )
        assert [token.created_at for token in await store.api_token_history()] == [5, 5, 10, 20]

    @store_test
    async def test_what_an_append_brings_for_the_audit_is_written_with_it_or_not_at_all(
        self, store: Store
    ) -> None:
        first, second, third = (AuditEntry(at, "ada", "admin", "start", "", "", 201) for at in range(3))
        verdicts = await store.commit(
            [
                new_append("a", 0, start_key="key", audit=(first,)),
                new_append("b", 0, start_key="key", audit=(second,)),
                new_append("a", 7, audit=(second,)),
                new_append("c", 0, audit=(third,)),
            ]
        )
        assert verdicts == [Committed(1), KeyTaken("a"), Conflict(1), Committed(1)]
        assert [entry._replace(id=0) for entry in await store.audit()] == [third, first]

    @store_test
    async def test_the_audit_tells_the_newest_first(self, store: Store) -> None:
        entries = [AuditEntry(at, "ada", "admin", "cancel", f"x{at}", "127.0.0.1", 200) for at in range(3)]
        await store.put_audit(entries[:2])
        await store.put_audit(entries[2:])
        listed = await store.audit()
        assert [entry._replace(id=0) for entry in listed] == entries[::-1]
        assert await store.audit(limit=1) == listed[:1]
        assert await store.audit(before=listed[0].id, limit=1) == listed[1:2]
