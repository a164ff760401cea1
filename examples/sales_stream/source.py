"""A made shop, whose changes are events as Debezium writes them, in Avro in Kafka."""

from __future__ import annotations

import itertools
import json
import random
import signal
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import click
import requests
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro

from cdc_lakehouse.command import STYLE, run, version
from cdc_lakehouse.errors import UserError
from cdc_lakehouse.spark.session import spark_session
from cdc_lakehouse.storage.place import lake_folder
from examples.sales_stream.stream import ANSWERS, SALES
from lab.stack import jars
from lab.stack.broker import Broker
from lab.stack.processes import HOST, Part, run_java
from lab.stack.registry import SchemaRegistry
from lab.stack.stack import Stack

Row = dict[str, Any]

REGIONS = "demo.shop.regions"
COLUMNS = {
    SALES: "sale_id int, customer_id int, amount string, sold_at bigint, country string",
    REGIONS: "country string, region string",
}
PLACE = "connector string, schema string, `table` string, lsn bigint, ts_ms bigint"
COUNTRIES = {"Chile": "Americas", "France": "Europe", "Peru": "Americas", "Spain": "Europe"}
WITHOUT_REGION, WITHOUT_SALES = "Malta", "Japan"
FIRST_HOUR = datetime(2026, 1, 5, 10)


class Shop:
    """The source: its sales, and the events that made them so; always the same."""

    def __init__(self) -> None:
        self._random = random.Random(2026)
        self._lsn = 0
        self._ids = itertools.count(1)
        self.sales: dict[int, Row] = {}

    def regions(self) -> list[Row]:
        """The events of all countries that have a region."""
        regions = {**COUNTRIES, WITHOUT_SALES: "Asia"}
        rows = [{"country": name, "region": regions[name]} for name in regions]
        return [self._event(REGIONS, None, row) for row in rows]

    def hour(self, number: int) -> list[Row]:
        """The events of an hour, counted from 0; the last ten are delivered twice.

        Each ten minutes a sale arrives 20 minutes late, and in all hours but the first two
        come 90 minutes late.
        """
        events = []
        for minute in range(60):
            now = FIRST_HOUR + timedelta(hours=number, minutes=minute)
            events.append(self._change(None, self._sale(now)))
            if minute % 10 == 9:
                events.append(self._change(None, self._sale(now - timedelta(minutes=20))))
            if minute % 6 == 5:  # corrected
                events.append(self._change(self._recent(now), self._sale(now)))
            if minute % 15 == 14:  # deleted
                events.append(self._change(self._recent(now), None))
            if minute == 35:  # the only one of its region, and deleted at once
                sale = {**self._sale(now), "country": WITHOUT_SALES}
                events += [self._change(None, sale), self._change(sale["sale_id"], None)]
            if number and minute in (30, 40):
                events.append(self._change(None, self._sale(now - timedelta(minutes=90))))
        return events + events[-10:]

    def _recent(self, now: datetime) -> int:
        """A sale of the last 15 minutes."""
        oldest = _microseconds(now - timedelta(minutes=15))
        recent = [key for key in self.sales if self.sales[key]["sold_at"] >= oldest]
        return self._random.choice(recent)

    def _sale(self, at: datetime) -> Row:
        return {
            "sale_id": next(self._ids),
            "customer_id": self._random.randint(1, 50),
            "amount": f"{self._random.randint(100, 99_999) / 100:.2f}",
            "sold_at": _microseconds(at + timedelta(seconds=self._random.randrange(60))),
            "country": self._random.choice([*COUNTRIES, WITHOUT_REGION]),
        }

    def _change(self, key: int | None, new: Row | None) -> Row:
        """A sale that is made, corrected or deleted."""
        old = self.sales.pop(key) if key else None
        if new is not None:
            new = {**new, "sale_id": key or new["sale_id"]}
            self.sales[new["sale_id"]] = new
        return self._event(SALES, old, new)

    def _event(self, topic: str, before: Row | None, after: Row | None) -> Row:
        """An event of a table with ``REPLICA IDENTITY FULL``."""
        self._lsn += 1
        _, schema, table = topic.split(".")
        op = "c" if before is None else "d" if after is None else "u"
        source: Row = {"connector": "postgresql", "schema": schema, "table": table}
        written = FIRST_HOUR + timedelta(seconds=self._lsn)
        source |= {"lsn": self._lsn, "ts_ms": _microseconds(written) // 1000}
        return {"before": before, "after": after, "source": source, "op": op}


def _microseconds(time: datetime) -> int:
    return (time - datetime(1970, 1, 1)) // timedelta(microseconds=1)


class ShopStack(Stack):
    """A broker with the topics, and a schema registry; each start begins anew."""

    NAME = "sales_stream"
    COMMAND = "python -m examples.sales_stream.source"
    PORTS: ClassVar = {"kafka": "broker", "controller": "broker", "registry": "registry"}
    PASSWORDS = ()

    def _make_parts(self) -> list[Part]:
        self.broker = Broker(self.folder, self.ports["kafka"], self.ports["controller"])
        self.registry = SchemaRegistry(self.folder, self.ports["registry"])
        return [self.broker, self.registry]

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka's clients begin."""
        return f"{HOST}:{self.broker.port}"

    def require_programs(self) -> None:
        """Fetch the jars."""
        jars.find_java()
        jars.fetch("kafka", "registry")

    def _start_parts(self) -> None:
        for part in self.parts.values():
            part.start()
        self.wait_until_ready()
        for topic, policy in ((SALES, "delete"), (REGIONS, "delete"), (ANSWERS, "compact")):
            answer = run_java(
                "org.apache.kafka.tools.TopicCommand",
                *("--bootstrap-server", self.bootstrap_servers, "--create"),
                *("--topic", topic, "--config", f"cleanup.policy={policy}"),
            )
            if answer.returncode != 0:
                raise UserError(f"the topic {topic} cannot be made: {answer.stdout}")


def send(spark: SparkSession, stack: ShopStack, topic: str, events: list[Row]) -> None:
    """Write events to a topic as a converter does: the schema's id, then Avro."""
    row = f"struct<{COLUMNS[topic]}>"
    envelope = f"before {row}, after {row}, source struct<{PLACE}>, op string"
    key = COLUMNS[topic].split()[0]
    texts = [
        (json.dumps({key: (event["after"] or event["before"])[key]}), json.dumps(event))
        for event in events
    ]
    frame = (
        spark.createDataFrame(texts, "key string, event string")
        .coalesce(1)  # so that Kafka has them in this order
        .select("key", F.from_json("event", envelope).alias("event"))
    )
    jvm: Any = spark._jvm
    kind = frame._jdf.schema().apply("event").dataType()
    converters = jvm.org.apache.spark.sql.avro.SchemaConverters
    schema = converters.toAvroType(kind, False, "Envelope", topic).toString()
    answer = requests.post(
        f"{stack.registry.confluent_url}/subjects/{topic}-value/versions",
        json={"schema": schema},
        timeout=30,
    )
    answer.raise_for_status()
    head = F.lit(b"\0" + int(answer.json()["id"]).to_bytes(4, "big"))
    (
        frame.select("key", F.concat(head, to_avro("event", schema)).alias("value"))
        .write.format("kafka")
        .option("kafka.bootstrap.servers", stack.bootstrap_servers)
        .option("topic", topic)
        .save()
    )


@click.command("examples.sales_stream.source", context_settings=STYLE)
@version
def command() -> None:
    """Run Kafka and a schema registry with an hour of a shop's sales, until Ctrl-C.

    Another hour is sent each time that Enter is pressed. Everything of it is below
    LAKE_ROOT/sales_stream, and is removed in the end.
    """
    lake = lake_folder("Kafka needs a folder").absolute()
    click.echo("starting Kafka and a schema registry")
    with ShopStack(lake).anew() as stack:
        spark, shop = spark_session(has_catalogue=False), Shop()
        send(spark, stack, REGIONS, shop.regions())
        servers = f"--bootstrap-servers {stack.bootstrap_servers}"
        servers += f" --registry {stack.registry.confluent_url}"
        for hour, _ in enumerate(itertools.chain([""], sys.stdin)):
            events = shop.hour(hour)
            send(spark, stack, SALES, events)
            click.echo(f"Kafka has {len(events)} events of hour {hour + 1}")
            if hour == 0:
                click.echo(f"\n  export LAKE_ROOT={lake}\n  cd {Path(__file__).parent}")
                click.echo(f"  python -m ingest kafka {servers}\n  dbt build")
                click.echo(f"  python -m examples.sales_stream.stream {servers}\n")
        signal.pause()


def main(arguments: list[str] | None = None) -> int:
    """Run the servers until they are stopped."""
    return run(command, arguments, on_stop=lambda: "stopped; every server was ended")


if __name__ == "__main__":
    sys.exit(main())
