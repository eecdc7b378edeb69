"""A TCP proxy that can hold everything back, or cut every connection: what a network does to a stream."""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class Proxy:
    """Forwards a port of its own to `target`, both ways, inside `with`."""

    def __init__(self, target: int) -> None:
        self.target = target
        self._flowing = threading.Event()
        self._flowing.set()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0

    def stall(self) -> None:
        """Stops forwarding; connections stay, and new ones are accepted."""
        self._flowing.clear()

    def flow(self) -> None:
        """Resumes forwarding, with what was held back."""
        self._flowing.set()

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
        self._flowing.set()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            self._flowing.wait()
            try:
                server = socket.create_connection(("127.0.0.1", self.target), timeout=5)
            except OSError:  # nobody is there: the client sees its connection end
                return
            server.settimeout(None)
            self.connections += 1
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
                self._flowing.wait()
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
