"""The example of ``docs/models.md``, as it stands there, in a copy of the project."""

import re
from pathlib import Path
from textwrap import dedent, indent

import pytest

from tests.support.lake import Lake
from tests.support.project import PROJECT, copy_project, replace_once
from tests.support.records import Record, flattened, record


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project, with the steps of "By hand" done."""
    copy = copy_project(tmp_path / "project")
    page = (PROJECT / "docs/models.md").read_text(encoding="utf-8")
    section = page.partition("\n## By hand\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```(?:toml|yaml|sql)\n(.*?)```", section, re.DOTALL)
    topic, source, staging, silver = (dedent(block) for block in blocks)
    models = copy / "models"
    for file, line, added in (
        (copy / "topics.toml", "[topics]\n", topic),
        # The table is an item of a list there, deeper than the step is here.
        (models / "staging/_sources.yml", "    tables:\n", indent(source, 6 * " ")),
        (
            models / "silver/rejected_rows.sql",
            "    ref('stg_orders'),\n",
            "    ref('stg_vendors'),\n",
        ),
    ):
        replace_once(file, line, line + added)
    (models / "staging/stg_vendors.sql").write_text(staging)
    (models / "silver/vendors.sql").write_text(silver)
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
    value = flattened(op, row, lsn, table="vendors")
    return record({"vendor_id": key}, value, lsn, topic="shop.public.vendors")


def column(lake: Lake, name: str) -> dict[int, object]:
    return {row["vendor_id"]: row[name] for row in lake.rows("silver.vendors")}


def test_worked_example(project: Path, lake: Lake) -> None:
    """A table of one's own in silver; then one more column, which a full refresh fills."""
    topics = ("--topics", str(project / "topics.toml"))
    lake.land(
        [
            vendor("c", 1, 10, phone="1"),
            vendor("c", 2, 20, phone="2"),
            vendor("u", 1, 30, credit_limit="99.90", phone="3"),
            vendor("d", 2, 40),
        ]
    )
    ingested = lake.ingest(str(lake.landing), *topics)
    assert ingested.code == 0
    # All that reads vendors, and the views that the quarantine reads.
    models = ("-s", "path:models/staging", "vendors", "rejected_rows")
    warnings = lake.dbt("build", *models, project=project)["said"]
    assert any(
        "model 'stg_vendors' does not list the field 'phone'" in warning
        for warning in warnings
    )
    assert column(lake, "is_deleted") == {1: False, 2: True}
    names = ("company_name", "country", "credit_limit", "since")
    first = [str(column(lake, name)[1]) for name in names]
    assert first == ["Exotic Liquids", "UK", "99.90", "1989-03-02"]

    staging = project / "models/staging/stg_vendors.sql"
    replace_once(staging, "'since': 'date',", "'since': 'date', 'phone': 'string',")
    lake.land([vendor("c", 3, 50, phone="5")])
    assert lake.ingest(str(lake.landing), *topics).code == 0
    lake.dbt("build", "-s", "stg_vendors+", project=project)
    assert column(lake, "phone") == {1: None, 2: None, 3: "5"}
    lake.dbt("build", "--full-refresh", "-s", "stg_vendors+", project=project)
    assert column(lake, "phone") == {1: "3", 2: None, 3: "5"}
    replace_once(project / "models/silver/vendors.sql", "='vendor_id'", "='country'")
    answer = lake.try_dbt("build", "-s", "vendors", project=project)
    assert not answer["success"]
    message = answer["nodes"]["vendors"]["message"]
    assert "model 'vendors': setting 'unique_key' is 'country'" in message
