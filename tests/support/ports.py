"""Ports for the servers of the tests."""

from contextlib import ExitStack

from lab.stack.ports import reserved_ports

# Until this process ends: a server that a test kills finds its port free when it starts
# again.
_reserved = ExitStack()
free_port = _reserved.enter_context(reserved_ports())
