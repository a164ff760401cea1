"""Ingest and build in processes whose environment is another: time zone, locale, a link."""

import json
import subprocess
import sys
from pathlib import Path

from tests.support.lake import environment
from tests.support.records import START_MS, Row, flattened, record
from tests.support.small_project import COLUMNS, set_columns, small_project
from tests.support.tables import Tables

TYPED = COLUMNS | {
    "ordered_on": "date",
    "shipped_at": "timestamp(3)",
    "packed_at": "timestamp",
    "paid_at": "timestamptz",
}
# In New York the clock went from 2 to 3 that night, and had no whole hours before 1883.
SPRING_MS = 1_772_955_000_000  # 2026-03-08 07:30 in UTC
OF_EACH_RUN = {"ingested_at", "ingest_batch", "ingest_date"}


def land(folder: Path) -> None:
    """Write a file of some orders, and of a record that is none."""
    lines = []
    for number, milliseconds in enumerate(
        (-3_000_000_000_000, -1, 0, START_MS, SPRING_MS - 3_600_000, SPRING_MS)
    ):
        row = {
            "order_id": number,
            "customer_id": "Ærø ",
            "customer": '{"name": "Käse \\"1\\" 木"}',
            "ordered_on": milliseconds // 86_400_000,
            "shipped_at": milliseconds,
            "packed_at": milliseconds * 1_000 + 1,
            "paid_at": "2026-03-08T02:30:00.123456-05:00",
        }
        at = max(milliseconds, 0)
        value = flattened("c", row, 10 + number, at)
        lines.append(record({"order_id": number}, value, number, timestamp=at))
    texts = [json.dumps(line, ensure_ascii=False) for line in lines]
    folder.mkdir()
    file = folder / "März.json"
    file.write_text("\n".join([*texts, "kein JSON: ä"]), encoding="utf-8")


def tables(
    project: Path, landing: Path, root: Path, **variables: str
) -> dict[str, list[Row]]:
    """The rows of a new lake, without what differs between any two runs."""
    for command in (
        ["ingest", "files", str(landing), "--topic", "demo.datalake.cdc_events"],
        ["dbt.cli.main", "build", "--profiles-dir", "profiles"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=project,
            env=environment(root) | {"PYTHONPATH": str(project)} | variables,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    found = Tables(root)
    return {
        name: [
            {key: value for key, value in row.items() if key not in OF_EACH_RUN}
            for row in found.rows(name)
        ]
        for name in ("bronze.cdc_events", "bronze.rejected_events", "silver.orders")
    }


def test_environment_of_the_process_changes_no_row(tmp_path: Path) -> None:
    """Time zone and locale; nor does a link to the lake."""
    project, landing = small_project(tmp_path / "project"), tmp_path / "Käufe"
    set_columns(project, TYPED)
    land(landing)
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "folder")
    expected = tables(project, landing, tmp_path / "utc", TZ="UTC")
    assert [len(rows) for rows in expected.values()] == [6, 1, 6]
    new_york = {"TZ": "America/New_York"}
    assert tables(project, landing, tmp_path / "new_york", **new_york) == expected
    assert tables(project, landing, link, LANG="C", LC_ALL="C") == expected
    assert Tables(tmp_path / "folder").names() == Tables(link).names()
