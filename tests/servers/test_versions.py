"""A live pipeline commits to its tables all day: what it leaves does not pile up."""

from lab.benchmarks.settings import table_properties
from tests.conftest import NewLake
from tests.support.scenario import order

GOLD = "gold.revenue_by_category"


def test_versions_and_commits_of_a_table_are_bounded(new_lake: NewLake) -> None:
    lake = new_lake()
    lake.build([order("c", 1, 100, 1)], "-s", f"+{GOLD.partition('.')[2]}")
    ours = table_properties()
    most = int(ours["hoodie.keep.max.commits"])
    for count in range(1, most + 15):
        lake.sql(
            f"insert overwrite table {GOLD} select 'Tea', {count}, 1.00, 1.0000, 1.0, 1"
        )
    table = lake.tables.path(GOLD)
    versions = sum(1 for _ in table.glob("*.parquet"))
    kept = int(ours["hoodie.clean.commits.retained"])
    assert kept <= versions <= kept + int(ours["hoodie.clean.trigger.max.commits"]) + 2
    commits = sum(1 for _ in (table / ".hoodie").glob("*.replacecommit"))
    assert commits <= most
    assert [(row["category_name"], row["count_products"]) for row in lake.rows(GOLD)] == [
        ("Tea", most + 14)
    ]
