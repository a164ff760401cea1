"""The README's worked example, as it stands there, in a copy of the project."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lake import Lake
from tests.support.project import PROJECT, copy_project
from tests.support.records import Record, flattened, record


def example() -> dict[str, str]:
    """The code blocks of "Your own topic and table", by their language, in order."""
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    section = text.partition("## Your own topic and table")[2].partition("\n## ")[0]
    blocks = re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)
    lines = [
        (language, "\n".join(line[3:] for line in block.splitlines()) + "\n")
        for language, block in blocks
    ]
    languages = [language for language, _ in lines]
    assert languages == ["toml", "yaml", "sql", "sql"]
    names = ["topic", "source", "staging", "silver"]
    return dict(zip(names, (block for _, block in lines), strict=True))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project, with the example's steps done."""
    copy = copy_project(tmp_path / "project")
    block = example()

    topics = copy / "ingest/topics.toml"
    text = topics.read_text()
    topics.write_text(text.replace("[topics]\n", "[topics]\n" + block["topic"]))
    sources = copy / "models/staging/_sources.yml"
    sources.write_text(
        sources.read_text().replace("    tables:\n", "    tables:\n" + block["source"])
    )
    (copy / "models/staging/stg_vendors.sql").write_text(block["staging"])
    (copy / "models/silver/vendors.sql").write_text(block["silver"])
    rejected = copy / "models/silver/rejected_rows.sql"
    rejected.write_text(
        rejected.read_text().replace(
            "'orders': ref('stg_orders'),",
            "'orders': ref('stg_orders'),\n    'vendors': ref('stg_vendors'),",
        )
    )
    return copy


def vendor(op: str, key: int, lsn: int, **columns: object) -> Record:
    """A change of a vendor."""
    row = {
        "vendor_id": key,
        "company_name": "Exotic Liquids",
        "country": "UK   ",
        "credit_limit": "1200.50",
        "since": 7000,
        **columns,
    }
    return record(
        {"vendor_id": key}, flattened(op, row, lsn), lsn, topic="shop.public.vendors"
    )


def run(project: Path, lake: Lake, *command: str) -> str:
    """Run a command of the example in the copy."""
    environment = lake.environment() | {"PYTHONPATH": str(project)}
    del environment["LAKE_ROOT"]  # the default, `.lake` in the project
    done = subprocess.run(
        command,
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_worked_example_of_the_readme(project: Path) -> None:
    """One's own table in silver; then a column more, which a full refresh fills."""
    lake = Lake(project / ".lake")
    ingest = (sys.executable, "-m", "ingest", "files")
    build = ("dbt", "build", "--profiles-dir", "profiles")
    lake.land(
        [
            vendor("c", 1, 10, phone="1"),
            vendor("c", 2, 20, phone="2"),
            vendor("u", 1, 30, credit_limit="99.90", phone="3"),
            vendor("d", 2, 40),
        ]
    )
    said = run(project, lake, *ingest, str(lake.landing))
    assert said.strip() == "read 4 records, wrote 4 events, rejected 0, skipped 0"
    said = run(project, lake, *build)
    assert "model 'stg_vendors' does not list the field 'phone'" in said
    rows = {row["vendor_id"]: row for row in lake.rows("silver.vendors")}
    first = rows[1]
    assert (first["company_name"], first["country"]) == ("Exotic Liquids", "UK")
    assert (str(first["credit_limit"]), str(first["since"])) == ("99.90", "1989-03-02")
    assert [rows[key]["is_deleted"] for key in (1, 2)] == [False, True]

    staging = project / "models/staging/stg_vendors.sql"
    staging.write_text(
        staging.read_text().replace(
            "'since': 'date',", "'since': 'date',\n        'phone': 'string',"
        )
    )
    lake.land([vendor("c", 3, 50, phone="5")])
    run(project, lake, *ingest, str(lake.landing))
    run(project, lake, *build, "-s", "stg_vendors+")
    phones = {row["vendor_id"]: row["phone"] for row in lake.rows("silver.vendors")}
    assert phones == {1: None, 2: None, 3: "5"}
    run(project, lake, *build, "--full-refresh", "-s", "stg_vendors+")
    phones = {row["vendor_id"]: row["phone"] for row in lake.rows("silver.vendors")}
    assert phones == {1: "3", 2: None, 3: "5"}

    silver = project / "models/silver/vendors.sql"
    silver.write_text(silver.read_text().replace("='vendor_id'", "='country'"))
    with pytest.raises(AssertionError) as failed:
        run(project, lake, *build, "-s", "vendors")
    assert "model 'vendors': setting 'unique_key' is 'country'" in str(failed.value)
