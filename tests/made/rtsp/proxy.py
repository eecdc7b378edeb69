"""A TCP proxy that can cut every connection."""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class Proxy:
    """Forwards a port of its own to `target`, both ways, inside `with`."""

    def __init__(self, target: int) -> None:
        self.target = target
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def cut(self) -> None:
        """Ends every connection; new ones are accepted."""
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                server = socket.create_connection(("127.0.0.1", self.target), timeout=5)
            except OSError:  # nobody is there: the client sees its connection end
                return
            server.settimeout(None)
            with server:
                self._open |= {client, server}
                back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
                back.start()
                self._pump(client, server)
                back.join()
                self._open -= {client, server}

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
