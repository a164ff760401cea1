"""One lake's process: an ingest and dbt that share a Spark session.

Spark takes its lake from the environment when its session starts, so a lake is a
process. ``conftest.Lake`` starts it, writes a line ``[command, arguments]``, and reads
the answer.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from dbt.cli.main import dbtRunner
from dbt_common.events.base_types import EventMsg
from dbt_common.events.event_manager_client import cleanup_event_logger

import ingest.cli
from ingest.session import spark_session


def run_ingest(lake: str, arguments: list[str]) -> dict[str, Any]:
    """Run the ingest's command line, for this lake or any other."""
    before = os.environ["LAKE_ROOT"]
    os.environ["LAKE_ROOT"] = lake
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = ingest.cli.main(arguments)
    finally:
        os.environ["LAKE_ROOT"] = before
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def run_dbt(arguments: list[str]) -> dict[str, Any]:
    """Run dbt; what each node came to, and what dbt warned of."""
    said: list[str] = []

    def hear(event: EventMsg) -> None:
        info: Any = event.info  # a protobuf message, whose fields have no types
        if info.level in ("warn", "error"):
            said.append(str(info.msg))

    place = os.environ["LAKE_ROOT"]
    result = dbtRunner(callbacks=[hear]).invoke(
        [
            "--quiet",
            *arguments,
            "--profiles-dir",
            "profiles",
            "--target-path",
            f"{place}/target",
            "--log-path",
            f"{place}/logs",
        ]
    )
    cleanup_event_logger()
    nodes = getattr(result.result, "results", None) or []
    return {
        "success": result.success,
        "error": None if result.exception is None else str(result.exception),
        "said": said,
        "nodes": {
            node.node.name: {
                "status": str(node.status),
                "message": node.message,
                "seconds": node.execution_time,
                "kind": str(node.node.resource_type),
            }
            for node in nodes
            if hasattr(node, "node")  # an operation has none
        },
    }


def run_sql(statement: str) -> list[list[Any]]:
    """Run a statement in the shared session."""
    return [
        [str(value) for value in row] for row in spark_session().sql(statement).collect()
    ]


COMMANDS: dict[str, Callable[..., Any]] = {
    "ingest": run_ingest,
    "dbt": run_dbt,
    "sql": run_sql,
}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # With the metastore from the start: an ingest by itself would go without.
    spark_session()
    for line in sys.stdin:
        command, arguments = json.loads(line)
        answers.write(json.dumps(COMMANDS[command](*arguments)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
