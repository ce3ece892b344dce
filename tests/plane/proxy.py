"""A proxy between workers and their server that does what networks do: refuses, cuts, delays, resets."""

import socket
import struct
import threading
from contextlib import suppress

_PIECE = 1 << 16


class Proxy:
    """In front of a port of this machine. A context manager.

    `refuse_upgrade` answers 403 to whoever wants a WebSocket, as proxies do that know none. `lose_answers`
    drops what the server says, and then the connection.
    """

    def __init__(self, port: int, *, refuse_upgrade: bool = False) -> None:
        self._target = port
        self.refuse_upgrade = refuse_upgrade
        self.lose_answers = False
        self.refused = 0
        self._gate = threading.Event()
        self._gate.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._resets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *_: object) -> None:
        self.resume()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def hold(self) -> None:
        """Passes nothing on until `resume`."""
        self._gate.clear()

    def resume(self) -> None:
        self._gate.set()

    def cut(self, *, reset: bool = False) -> int:
        """Ends all connections, in the middle of whatever they say; how many there were."""
        with self._lock:
            connections, self._open = self._open, set()
        for connection in connections:
            if reset:
                # Whoever closes it then sends a reset, and no end; unless it has been closed meanwhile.
                with suppress(OSError):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self._resets.add(connection)
            _shut(connection, socket.SHUT_RD if reset else socket.SHUT_RDWR)
        return len(connections)

    def _start(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]  # a method
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        head = b""
        try:
            while b"\r\n\r\n" not in head and (piece := client.recv(_PIECE)):
                head += piece
        except OSError:
            head = b""
        if not head:
            client.close()
            return
        if self.refuse_upgrade and b"upgrade: websocket" in head.lower():
            self.refused += 1
            client.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            client.close()
            return
        try:
            server = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            client.close()
            return
        with self._lock:
            self._open |= {client, server}
        self._start(self._pass_on, server, client, True)
        self._gate.wait()
        try:
            server.sendall(head)
        except OSError:
            _shut(server)
        self._pass_on(client, server, False)

    def _pass_on(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        try:
            while piece := source.recv(_PIECE):
                self._gate.wait()
                if answers and self.lose_answers:
                    break
                target.sendall(piece)
        except OSError:
            pass
        for connection in {source, target} - self._resets:
            _shut(connection)
        with self._lock:
            self._open -= {source, target}
        if answers:
            source.close()
            target.close()


def _shut(connection: socket.socket, how: int = socket.SHUT_RDWR) -> None:
    with suppress(OSError):
        connection.shutdown(how)
