"""Servers that must be given a port, and find it taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from connectors.stack.stack import free_ports
from lake.errors import UserError

Server = TypeVar("Server")

ATTEMPTS = 3
# As many as the servers of a stack need, at most.
PORTS = 6
# PostgreSQL; Java; the stack, before it starts anything.
SIGNS_OF_A_TAKEN_PORT = ("could not bind", "Address already in use", "is in use")


def start_on_free_ports(start: Callable[[Callable[[], int]], Server]) -> Server:
    """Start a server; try again with other ports where another program took one of them.

    Args:
        start: starts the server with ports from the function that it is given.

    Raises:
        UserError: the server did not start, for another reason or in any attempt.
    """
    for attempt in range(1, ATTEMPTS + 1):
        with free_ports() as free_port:
            # Released only when all are chosen, so that they differ.
            ports = [free_port() for _ in range(PORTS)]
        try:
            return start(iter(ports).__next__)
        except UserError as error:
            is_taken = any(sign in str(error) for sign in SIGNS_OF_A_TAKEN_PORT)
            if attempt == ATTEMPTS or not is_taken:
                raise
    raise AssertionError("unreachable")
