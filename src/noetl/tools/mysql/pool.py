"""The connections that a worker keeps to one MySQL or MariaDB server."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import asyncmy
from asyncmy.errors import MySQLError

from noetl.tools.mysql.auth import MysqlTarget
from noetl.tools.sql.column import DriverRow

CONNECT_SECONDS = 10
_KILL_SECONDS = 2
"""Seconds for a server to hear that a query is to end."""
_RESET_CONNECTION = 0x1F
_SESSION = "SET NAMES utf8mb4, autocommit = 1"


class MysqlConnection:
    """A connection, with the insides of the driver that are used here; `test_mysql_driver` pins them.

    `busy` says that it was cut off, or is closed, while the server works for it: nobody knows what comes
    next.
    """

    def __init__(self, connection: Any, database: str | None) -> None:
        self.busy = False
        self.selected = database
        self._connection = connection

    @property
    def thread_id(self) -> int:
        """What the server knows it by."""
        return int(self._connection.thread_id())

    @property
    def is_open(self) -> bool:
        return bool(self._connection.connected and not self._connection._stream_broken)

    async def stream(self, text: str) -> AsyncGenerator[tuple[Any, Sequence[DriverRow]]]:
        """Runs SQL text and gives each result, first without rows and then with those that have come."""
        # The driver's cursor would do the same, but it writes the server's warnings, with values in them,
        # into the log of the process.
        with self._at_work():
            await self._connection.query(text, unbuffered=True)
            while True:
                result = self._connection._result
                yield result, ()
                while (row := await result._read_rowdata_packet_unbuffered()) is not None:
                    yield result, [row, *result._take_pending_rows()]
                if not result.has_next:
                    break
                await self._connection.next_result(unbuffered=True)

    async def rows(self, text: str) -> Sequence[DriverRow]:
        """The rows of a query that gives few."""
        with self._at_work():
            await self._connection.query(text)
        rows: Sequence[DriverRow] = self._connection._result.rows or ()
        return rows

    async def prepare(self, text: str) -> Any:
        """A statement that takes values apart from its text, for `execute`."""
        with self._at_work():
            return await self._connection.prepare(text)

    async def execute(self, prepared: Any, values: DriverRow) -> int:
        """Runs a prepared statement, and says how many rows it changed."""
        with self._at_work():
            return int((await prepared.execute(tuple(values))).affected_rows)

    async def warnings(self) -> Sequence[DriverRow]:
        """Level, code and message of what the server warned of in the last statement."""
        with self._at_work():
            rows: Sequence[DriverRow] = await self._connection.show_warnings() or ()
            return rows

    async def in_transaction(self) -> bool:
        if not self._connection.get_transaction_status():
            return False
        with self._at_work():
            await self._connection.ping(reconnect=False)  # the driver notes only some ends of transactions
        return bool(self._connection.get_transaction_status())

    async def commit(self) -> None:
        with self._at_work():
            await self._connection.commit()

    async def reset(self) -> None:
        """Rolls back, and forgets settings, temporary tables, locks and all else that a session keeps."""
        with self._at_work():
            await self._connection._execute_command(_RESET_CONNECTION, b"")
            await self._connection._read_ok_packet()
            await self._connection.query(_SESSION)
            if self.selected is not None:
                await self._connection.select_db(self.selected)

    def drop(self) -> None:
        """Closes it without a word to the server."""
        self._connection.close()

    async def end(self) -> None:
        await self._connection.ensure_closed()

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        self.busy = True
        try:
            yield
        except (MySQLError, ValueError):  # what the server says, or what the driver does not send
            self.busy = False
            raise
        self.busy = False


class MysqlDriver:
    """How a pool makes, cleans and closes connections, which commit each statement."""

    def __init__(self, target: MysqlTarget) -> None:
        self._target = target
        self._tls = target.tls()

    async def connect(self) -> MysqlConnection:
        target = self._target
        connection = await asyncmy.connect(
            host=target.host,
            port=target.port,
            unix_socket=target.unix_socket,
            user=target.user,
            password=target.password.encode(),  # text would be sent in Latin-1
            database=target.database,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            conv={},  # values come as the server writes them: it knows dates that Python does not
            program_name="noetl",
            ssl=self._tls,
        )
        return MysqlConnection(connection, target.database)

    def is_open(self, connection: MysqlConnection) -> bool:
        return connection.is_open

    async def clean(self, connection: MysqlConnection) -> bool:
        if connection.busy or not connection.is_open:
            return False
        try:
            await connection.reset()
            # A reset does not leave a database that the SQL chose, and without a name nothing does.
            return connection.selected is not None or await connection.rows("SELECT DATABASE()") == ((None,),)
        except (MySQLError, OSError):
            return False

    async def close(self, connection: MysqlConnection) -> None:
        if connection.busy:
            connection.drop()
            await self._kill(connection.thread_id)
            return
        with suppress(MySQLError, OSError):
            await connection.end()

    async def _kill(self, thread_id: int) -> None:
        """Ends what runs for a connection that was cut: the server notices only when it has rows to send."""
        with suppress(MySQLError, OSError):
            async with asyncio.timeout(_KILL_SECONDS):
                other = await self.connect()
                try:
                    await other.rows(f"KILL {thread_id}")
                finally:
                    other.drop()
