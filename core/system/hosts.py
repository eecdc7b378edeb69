"""Host names that a server answers to, so that no website elsewhere can use it through a visitor's browser."""

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
"""Loopback names: only this machine can reach them."""


class AllowedHosts:
    """The host names that a server answers to, without ports.

    A server in a network may be known by names that only its users know. Numeric addresses are accepted, since no
    foreign name server can point them elsewhere (DNS rebinding). A name must be this machine's own, the address of
    `--share`, or given with `--allow-host`.
    """

    def __init__(self, local: bool, more: Iterable[str] = ()) -> None:
        self.local = local
        self._names = {*LOCAL_HOSTS, *(name.lower() for name in more)}
        if not local:
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    def add(self, address: str) -> None:
        """Adds the name of an address at which the page was published."""
        self._names |= {urlsplit(address).hostname or ""}

    def __contains__(self, host: str) -> bool:
        name = host_name(host)
        return name in self._names or (not self.local and is_numeric(name))


def host_name(host: str) -> str:
    """The name in a Host header without its port; empty if it is malformed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:  # for example of "["
        return ""


def is_numeric(name: str) -> bool:
    """True for a numeric IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
