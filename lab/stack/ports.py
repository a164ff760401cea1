"""Ports on 127.0.0.1, reserved until their servers listen there."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def reserved_ports() -> Iterator[Callable[..., int]]:
    """Reserve ports for the length of the block, in which their servers start.

    Each port is bound by a socket that does not listen. While it is, Linux gives the port
    to no program that asks for any free one, and to no outgoing connection. A server can
    still listen there, because both sockets set SO_REUSEADDR, as servers do.

    Yields:
        A function that reserves a free port, or the port that it is given, and returns it.
        It raises OSError where a server listens there already.
    """
    with ExitStack() as sockets:

        def reserve(port: int = 0) -> int:
            holder = sockets.enter_context(socket.socket())
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind(("127.0.0.1", port))
            return int(holder.getsockname()[1])

        yield reserve
