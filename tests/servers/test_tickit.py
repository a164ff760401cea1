"""TICKIT: three databases, each through Debezium, Avro and Kafka, joined in one lake."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import requests

from examples.tickit.gold import KEYS as GOLD
from examples.tickit.source.generator import Tickit
from examples.tickit.source.stack import PROJECT, TOPICS, TickitStack, running
from ingest.registry import IdKind, Registry
from lab.stack.processes import java_command
from tests.conftest import NewLake
from tests.support import avro
from tests.support.aws import Aws
from tests.support.lake import Ingested, Lake
from tests.support.records import Row
from tests.support.required import required
from tests.support.tickit import (
    SILVER,
    answers,
    differences,
    lake_rows,
    source_rows,
    source_tables,
)
from tests.support.trino_server import Trino

pytestmark = pytest.mark.timeout(900)

SALES = "tickit.ecomm.sale"
SCALE = 0.01
# What happens at the sources after the first build; the sale is the walk-through's.
UPDATED_SALE, DELETED_SALE, EARLY, NEW = 7, 8, 100_000, 100_001
UPDATE = f"update sale set qtysold = 2, pricepaid = 1234.56 where salesid = {UPDATED_SALE}"
CHANGES = [
    ("ecomm", UPDATE),
    ("ecomm", f"delete from sale where salesid = {DELETED_SALE}"),
    ("ecomm", "insert into listing select 100000, 1, 2, 3, 5, 10, 50, '2025-01-03'"),
    ("ecomm", "update sale set buyerid = 3 where salesid between 20 and 40"),
    # Neither the event nor the buyer is there yet.
    (
        "ecomm",
        f"insert into sale select {EARLY}, 1, 1, {NEW}, {NEW}, 3, 1, 9, 1, now()",
    ),
    ("ems", "update ems.event set catid = 1 + catid % 11 where eventid <= 10"),
    (
        "ems",
        "update ems.venue set venuecity = 'Cañon City' where venueid = 1",
    ),
    ("crm", "update crm.user set lastname = 'Ng-Díaz', likejazz = null where userid <= 5"),
]


@dataclass
class Joined:
    """The three sources, and the lake that they are joined in.

    Attributes:
        kept: differences between the lake and the sources, by stage and table.
        ends: of the topics before the changes.
    """

    stack: TickitStack
    lake: Lake
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    before: dict[str, dict[Any, Row]] = field(default_factory=dict)
    manifest: Path = Path()

    def ingest(self) -> Ingested:
        done = self.lake.ingest_kafka(
            *("--bootstrap-servers", self.stack.bootstrap_servers),
            *("--registry", self.stack.registry.url),
            *("--topics", str(PROJECT / "topics.toml"), "--topic", *TOPICS),
        )
        assert (done.code, done.counts[2]) == (0, 0), done.err
        return done

    def build(self) -> list[str]:
        """Build the project with its tests; what dbt warned of."""
        answer = self.lake.dbt("build", project=PROJECT)
        self.manifest = Path(answer["target"]) / "manifest.json"
        said: list[str] = answer["said"]
        return said

    def silver(self, table: str) -> dict[Any, Row]:
        name, key = SILVER[table]
        return lake_rows(self.lake.rows(f"silver.{name}"), key)

    def gold(self, table: str) -> dict[Any, Row]:
        return lake_rows(self.lake.rows(f"gold.{table}"), GOLD[table])

    def compare(self, stage: str) -> None:
        """Keep how silver differs from the sources, and gold from their answers."""
        found = {
            table: differences(source_rows(self.stack, name, table), self.silver(table))
            for name, table in source_tables()
        }
        asked = answers(self.stack)
        found |= {table: differences(asked[table], self.gold(table)) for table in GOLD}
        self.kept[stage] = {table: rows[:3] for table, rows in found.items() if rows}


@pytest.fixture(scope="module")
def stack() -> Iterator[TickitStack]:
    """Skips where the machine lacks what it needs; in CI that is a failure."""
    root = Path(tempfile.mkdtemp(prefix="cdc-lakehouse-"))
    root.chmod(0o755)  # the databases' own users must enter it
    with required():
        TickitStack(root, Tickit(SCALE)).require_programs()
    with running(root, Tickit(SCALE)) as stack:
        yield stack
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def joined(stack: TickitStack, new_lake: NewLake) -> Joined:
    """After the snapshots with a build, and the changes with another."""
    joined = Joined(stack, new_lake())
    joined.ingest()
    joined.kept["warnings"] = {"snapshot": joined.build()}
    joined.compare("snapshot")
    joined.before = {table: joined.gold(table) for table in GOLD}
    joined.ends = stack.broker.end_offsets(r"tickit\..*")
    changed = dict.fromkeys(joined.ends, 0)
    for name, statement in CHANGES:
        stack.execute(name, statement)
    changed |= {f"{SALES}/0": 24, "tickit.ecomm.listing/0": 1, "tickit.ems.event/0": 10}
    changed |= {"tickit.ems.venue/0": 1, "tickit.crm.user/0": 5}
    stack.wait_until_topics_hold(
        {
            place.removesuffix("/0"): joined.ends[place] + count
            for place, count in changed.items()
        }
    )
    assert joined.ingest().counts[1] == sum(changed.values())
    joined.kept["warnings"]["changes"] = joined.build()
    joined.compare("changes")
    return joined


def test_silver_and_gold_are_the_three_sources(joined: Joined) -> None:
    assert joined.kept["snapshot"] == {}
    assert joined.kept["changes"] == {}
    assert joined.lake.rows("bronze.rejected_events") == []


def test_a_sale_before_its_event_counts_and_is_warned_of(joined: Joined) -> None:
    assert joined.kept["warnings"]["snapshot"] == []
    said = " ".join(joined.kept["warnings"]["changes"])
    assert "relationships_tickit_sales_buyerid" in said
    assert "relationships_tickit_sales_eventid" in said
    early = joined.gold("sales_by_event")[NEW]
    assert (early["event_name"], early["revenue"], early["category_id"]) == (None, 9, 0)
    assert joined.gold("best_buyers")[NEW]["user_name"] is None
    assert joined.gold("sales_by_category")[0]["count_sales"] == 1
    assert joined.gold("sales_by_city")["unknown"]["count_venues"] == 0


def test_an_updated_sale_is_followed_to_gold(joined: Joined) -> None:
    """As its README does: Avro in Kafka, bronze, the version in silver, gold."""
    offset = joined.ends[f"{SALES}/0"]
    sent = consume(joined.stack, offset)
    assert b"apicurio.value.globalId" in sent
    assert b"1234.56" in sent
    assert b"pricepaid" not in sent  # the names of columns are in the schema

    [event] = [
        row
        for row in joined.lake.rows("bronze.tickit_sale")
        if row["kafka_offset"] == offset
    ]
    value = json.loads(event["value"])
    row = value["after"]
    assert (row["salesid"], row["pricepaid"], value["op"]) == (7, "1234.56", "u")
    schema = requests.get(
        f"{joined.stack.registry.url}/ids/globalIds/{event['schema_id']}", timeout=30
    ).json()
    assert [each["name"] for each in schema["fields"]][:2] == ["before", "after"]

    sale = joined.silver("sale")[UPDATED_SALE]
    assert (sale["pricepaid"], sale["qtysold"], sale["op"]) == (Decimal("1234.56"), 2, "u")
    assert sale["source_position"] == event["source_position"]
    assert event["source_position"].startswith("0000000001/")
    age = datetime.now(UTC).replace(tzinfo=None) - sale["changed_at"]
    assert timedelta() < age < timedelta(minutes=15)

    before, after = joined.before["sales_by_event"], joined.gold("sales_by_event")
    assert before[sale["eventid"]]["revenue"] != after[sale["eventid"]]["revenue"]


def test_the_history_of_a_sale_has_each_version(joined: Joined) -> None:
    versions = joined.lake.rows("silver.tickit_sales_history")
    before, after = sorted(
        (row for row in versions if row["salesid"] == UPDATED_SALE),
        key=lambda row: row["version_number"],
    )
    sale = joined.silver("sale")[UPDATED_SALE]
    assert (before["op"], before["is_current"]) == ("r", False)
    assert before["pricepaid"] != after["pricepaid"] == sale["pricepaid"]
    assert before["valid_to"] == after["valid_from"]
    assert (after["op"], after["is_current"], after["valid_to"]) == ("u", True, None)
    [deleted] = [row for row in versions if row["salesid"] == DELETED_SALE]
    assert not deleted["is_current"]
    assert deleted["valid_to"] is not None
    live = {row["salesid"] for row in versions if row["is_current"]}
    assert live == joined.silver("sale").keys()


def test_the_new_version_has_a_commit_of_its_own(joined: Joined) -> None:
    [[updated, update_batch], [untouched, first_batch]] = joined.lake.sql(
        "select _hoodie_commit_time, ingest_batch from silver.tickit_sales"
        f" where salesid in ({UPDATED_SALE}, {DELETED_SALE + 1}) order by salesid"
    )
    assert updated > untouched
    assert update_batch > first_batch


def test_athenas_engine_sees_the_same(joined: Joined, aws: Aws, trino: Trino) -> None:
    aws.serve(joined.lake.tables, joined.manifest, "tickit")
    for database, table in source_tables():
        name, key = SILVER[table]
        found = lake_rows(trino.table(f"tickit_silver.{name}"), key)
        expected = source_rows(joined.stack, database, table)
        assert differences(expected, found) == [], name
    for name, key in GOLD.items():
        found = lake_rows(trino.table(f"tickit_gold.{name}"), key)
        assert differences(joined.gold(name), found) == [], name
    [sale] = trino.rows(
        "select pricepaid, op, changed_at from tickit_silver.tickit_sales"
        f" where salesid = {UPDATED_SALE}"
    )
    stored = joined.silver("sale")[UPDATED_SALE]
    assert sale == [Decimal("1234.56"), "u", stored["changed_at"]]


def test_a_deleted_sale_is_marked(joined: Joined) -> None:
    rows = {row["salesid"]: row for row in joined.lake.rows("silver.tickit_sales")}
    deleted = {key for key, row in rows.items() if row["is_deleted"]}
    assert deleted == {DELETED_SALE}


def test_the_record_in_a_landing_file_is_the_one_in_kafka(joined: Joined) -> None:
    """The file is as Lenses' sink writes it: its jar cannot be had, its format can."""
    [event] = [
        row
        for row in joined.lake.rows("bronze.tickit_sale")
        if row["kafka_offset"] == joined.ends[f"{SALES}/0"]
    ]
    registry = Registry(joined.stack.registry.url)
    value = json.loads(registry.schema(IdKind.GLOBAL, event["schema_id"]))
    key = avro.record("Key", salesid="int")
    place = avro.record(
        "Place", topic="string", partition="int", offset="long", timestamp="long"
    )
    envelope = avro.record("Envelope", key=key, value=value, metadata=place)
    landed = {
        "key": {"salesid": UPDATED_SALE},
        "value": json.loads(event["value"]),
        "metadata": {
            "topic": SALES,
            "partition": 0,
            "offset": event["kafka_offset"],
            "timestamp": round(event["kafka_timestamp"].timestamp() * 1000),
        },
    }
    file = joined.lake.landing / "sale.avro"
    file.write_bytes(avro.container(envelope, [landed]))
    done = joined.lake.ingest(str(file), "--topics", str(PROJECT / "topics.toml"))
    # Read, and known by its place in the topic.
    assert (done.code, done.counts) == (0, (1, 0, 0, 0)), done.err


def consume(stack: TickitStack, offset: int) -> bytes:
    """One record of the sales with its headers, as Kafka's own consumer prints it."""
    answer = subprocess.run(
        java_command(
            *("128m", "org.apache.kafka.tools.consumer.ConsoleConsumer"),
            *("--bootstrap-server", stack.bootstrap_servers),
            *("--topic", SALES, "--partition", "0", "--offset", str(offset)),
            *("--max-messages", "1", "--property", "print.headers=true"),
        ),
        capture_output=True,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout
