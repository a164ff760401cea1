"""The one command, ``cdc-lakehouse``: each of its words is a command of its own.

What a word needs is imported when it is asked for: a dashboard needs no Spark.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from cdc_lakehouse.command import STYLE, run, version

PROGRAM = "cdc-lakehouse"
COMMANDS = {
    "add": "cdc_lakehouse.sources.commands:add",
    "api": "cdc_lakehouse.serving.api.command:command",
    "athena": "cdc_lakehouse.serving.athena:command",
    "dashboard": "cdc_lakehouse.serving.dashboard.command:command",
    "diff": "cdc_lakehouse.sources.commands:diff",
    "glue": "cdc_lakehouse.serving.glue:command",
    "ingest": "ingest.cli:command",
    "init": "cdc_lakehouse.starter.command:command",
    "quicksight": "cdc_lakehouse.serving.quicksight.command:command",
    "resync": "cdc_lakehouse.sources.commands:resync",
    "setup": "cdc_lakehouse.spark.jars:command",
    "settings": "cdc_lakehouse.spark.settings:command",
}
# What to say of one that was stopped, where that is more than that it was.
STOPPED = {
    "athena": "stopped, and the query with it",
    "quicksight": "stopped; run it again to complete the rest",
}


class _Commands(click.Group):
    """A group whose commands are imported one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        return _command(cmd_name) if cmd_name in COMMANDS else None


@click.command(PROGRAM, cls=_Commands, context_settings=STYLE)
@version
def command() -> None:
    """Debezium change streams to tables that analysts can trust."""


def _command(name: str) -> click.Command:
    module, _, attribute = COMMANDS[name].partition(":")
    found: click.Command = getattr(importlib.import_module(module), attribute)
    return found


def entry_point() -> None:
    """What the script ``cdc-lakehouse`` calls."""
    sys.exit(main())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the first word names; its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in COMMANDS:
        name, *rest = words
        said = STOPPED.get(name, "stopped")
        program = f"{PROGRAM} {name}"
        return run(_command(name), rest, program=program, on_stop=lambda: said)
    return run(command, words, program=PROGRAM)
