"""Where a server keeps registered playbooks, who may use it, and what they changed.

Times are microseconds since 1970, UTC; 0 stands for "never".
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct


class CatalogEntry(Struct, frozen=True, kw_only=True):
    """One version of a playbook. `version` is the catalog's number, 1, 2, 3 … for each path.

    `hash` is that of the canonical document, which `canonical` is as YAML; `source` is what its author wrote,
    and `label` the `metadata.version` in it.
    """

    path: str
    version: int = 0
    hash: str
    label: str
    dialect: str
    source: str
    canonical: str
    created_at: int
    created_by: str


class CatalogPage(NamedTuple):
    """Entries in the order of their paths. `next` is the cursor of the next page, empty on the last one."""

    entries: list[CatalogEntry]
    next: str


class CatalogStore(Protocol):
    """Playbooks by path and version. Writes are durable on return. A number is never given twice."""

    async def put_catalog_entry(self, entry: CatalogEntry) -> CatalogEntry:
        """Keeps it as the next version; gives the newest one if that has the same hash."""
        ...

    async def catalog_entry(
        self, path: str, version: int = 0, *, at: int | None = None
    ) -> CatalogEntry | None:
        """A version of a playbook; the newest for 0.

        With a time `at`, in microseconds since 1970, the newest that was there then; if there was none, the
        first that came after it.
        """
        ...

    async def catalog_entries(self, *, prefix: str = "", after: str = "", limit: int = 100) -> CatalogPage:
        """The newest version of each path that begins so, in order, above `after`, the cursor of a page."""
        ...

    async def catalog_versions(self, path: str) -> list[CatalogEntry]:
        """All versions, the newest first."""
        ...

    async def catalog_numbers(self) -> dict[str, int]:
        """The last number that each path has given, also where no version is left, in the order of paths."""
        ...

    async def keep_catalog_entries(self, path: str, number: int, entries: Sequence[CatalogEntry]) -> None:
        """Keeps versions of a path under the numbers that they have, but for numbers that are there.

        The next new one gets a number above `number`.
        """
        ...

    async def delete_catalog_entries(self, path: str, version: int = 0) -> list[str]:
        """Deletes a version, or all for 0. The executions that run one of them, if any: then nothing is.

        At most 100 of these are named. What does not exist is no fault.
        """
        ...


class ApiToken(NamedTuple):
    """Who may use a server, and as what. `hash` is the SHA-256 of the token, which nobody keeps."""

    name: str
    hash: str
    role: str
    created_at: int
    created_by: str
    expires_at: int
    revoked_at: int


class AuditEntry(NamedTuple):
    """Somebody changed something. `address` is where the request came from; `status` is how it was answered.

    `id` grows in the order of writing.
    """

    at: int
    by: str
    role: str
    action: str
    target: str
    address: str
    status: int
    id: int = 0


class AccessStore(Protocol):
    """Tokens and the audit. Writes are durable on return."""

    async def put_api_token(self, token: ApiToken) -> bool:
        """False, and nothing is written, if the name is taken by one that is valid at its `created_at`."""
        ...

    async def api_token(self, token_hash: str) -> ApiToken | None:
        """Also one that has expired or was revoked."""
        ...

    async def api_tokens(self) -> list[ApiToken]:
        """All, by name; of one name the newest."""
        ...

    async def api_token_history(self) -> list[ApiToken]:
        """Also those whose name another one has now, the oldest first."""
        ...

    async def revoke_api_token(self, name: str, at: int) -> bool:
        """From now on it is not valid. False if there is none of this name that was not revoked before."""
        ...

    async def put_audit(self, entries: Sequence[AuditEntry]) -> None: ...

    async def audit(self, *, before: int = 0, limit: int = 100) -> list[AuditEntry]:
        """The newest first, those with an `id` below `before`, if that is not 0."""
        ...
