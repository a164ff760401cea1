"""A live pipeline writes small batches for months: their files and ledger stay few.

It needs no server; it is in this tier for its minute.
"""

import json
from pathlib import Path

from cdc_lakehouse.storage.tables import open_table
from ingest.bronze import COMMITS_A_CLUSTERING
from ingest.landing import LEDGER_FILES
from tests.support.crash_rerun import BATCHES, event, record_ingest
from tests.support.lake import SparkProcess
from tests.support.small_project import TOPICS


def test_many_small_batches_leave_few_files(spark: SparkProcess, tmp_path: Path) -> None:
    """In table and ledger; a kill while files are made one loses and repeats nothing."""
    (tmp_path / "topics.toml").write_text(TOPICS)
    lake = spark.new_lake(tmp_path / "topics.toml")
    # With the one that created the table.
    files = [
        lake.land([event(100 + batch, "c", 100 + batch)])
        for batch in range(COMMITS_A_CLUSTERING - 2)
    ]
    assert lake.ingest(str(lake.landing), "--max-bytes", "1").code == 0
    lake.land(BATCHES[1])
    work = record_ingest(lake, tmp_path / "clustering")
    table = open_table(str(lake.tables.path("bronze.cdc_events")))
    assert len(table.get_file_slices()) < 3

    files[0].unlink()
    lake.land([event(200, "c", 200)])
    lake.land([event(201, "c", 201)])
    assert lake.ingest(str(lake.landing), "--max-bytes", "1").code == 0
    ledger = sorted((lake.root / "checkpoints" / "landing").glob("*.json"))
    assert len(ledger) < LEDGER_FILES
    remembered = {
        json.loads(text)["path"]
        for file in ledger
        for text in file.read_text().splitlines()
    }
    assert f"file:{files[1]}" in remembered
    assert f"file:{files[0]}" not in remembered
    assert lake.ingest(str(lake.landing)).counts == (0, 0, 0, 0)

    images = work.images.at(
        r"^create .*cdc_events/.hoodie/\d+\.replacecommit\.requested",
        r"^create .*cdc_events/.hoodie/\d+\.replacecommit\.inflight",
        r"^(create|rename) .*cdc_events/.hoodie/\d+\.replacecommit($|\.[^ri])",
    )
    failures = work.failures(images)
    lake.remove()
    assert not failures
