"""What the failures of PostgreSQL mean."""

import asyncpg

from noetl.ports.store import StoreBusy, StoreError, StoreFull, StoreUnusable

# What asyncpg raises where a statement is not carried out. InternalClientError is neither of the others: it
# comes where a server that ends has said so and has not hung up yet.
DATABASE_ERRORS = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
DAMAGED_HINT = "restore the database from a copy; `noetl store check` says what else is wrong"
_REACH_HINT = "see whether PostgreSQL runs, and can be reached"
_LOST = (
    OSError,  # and with it TimeoutError: who gives no answer is not there
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # 57P0x: the server ends, or begins
    asyncpg.ReadOnlySQLTransactionError,  # 25006: what was the primary has become a standby
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
_AGAIN = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
_REFUSED: dict[type[Exception], str] = {
    asyncpg.InvalidPasswordError: "check user and password in the URL",
    asyncpg.InvalidAuthorizationSpecificationError: "check user and password in the URL, and pg_hba.conf",
    asyncpg.InvalidCatalogNameError: "`createdb NAME` makes it",
    asyncpg.InsufficientPrivilegeError: (
        "an administrator says CREATE SCHEMA NAME AUTHORIZATION USER, "
        "or GRANT CREATE ON DATABASE NAME TO USER"
    ),
}
POOLER = (
    "give the address of PostgreSQL itself, or of a pool with pool_mode = session: a store "
    "prepares statements and listens, which a connection that changes with each transaction cannot"
)


def is_lost(error: BaseException) -> bool:
    """Whether nothing more can be asked on this connection."""
    # A statement that was cancelled by its own time limit leaves the connection as it was.
    if isinstance(error, asyncpg.QueryCanceledError | asyncpg.DataError):
        return False
    return isinstance(error, _LOST)


def may_be_repeated(error: BaseException) -> bool:
    """Whether PostgreSQL took all back because of what others did at the same time."""
    return isinstance(error, _AGAIN)


def store_failure(label: str, error: BaseException, *, opening: bool = False) -> StoreError:
    """The error that callers hear of; `opening`: nothing was ever asked of this database."""
    if opening:
        for kind, hint in _REFUSED.items():
            if isinstance(error, kind):
                return StoreUnusable(f"{label}: {error}", hint)
        if isinstance(error, asyncpg.ProtocolViolationError) and "startup parameter" in str(error):
            return StoreUnusable(f"{label}: {error}", POOLER)
    match error:
        case asyncpg.TooManyConnectionsError():
            return StoreBusy(f"{label}: {error}", "raise max_connections, or end what uses them")
        case asyncpg.DiskFullError():
            return StoreFull(f"{label}: {error}", "free some space")
        case asyncpg.LockNotAvailableError():
            return StoreBusy(f"{label}: {error}", "try again when those who use the store are done")
        case TimeoutError():
            return StoreError(f"{label} gives no answer", _REACH_HINT)
    if isinstance(error, asyncpg.InternalClientError):
        # Its own words are about asyncpg's states.
        return StoreError(f"{label}: the connection was lost", _REACH_HINT)
    if is_lost(error):
        message = str(error) or type(error).__name__
        return StoreError(f"{label}: {message}", _REACH_HINT)
    return StoreError(f"{label}: {error}")
