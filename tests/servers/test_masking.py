"""Columns that Debezium leaves out or hashes, so that Kafka and bronze never have them."""

import json
from hashlib import sha256
from pathlib import Path

from lab.northwind.checks import REPLICATION_ROLE
from lab.stack.northwind import NorthwindStack
from tests.conftest import NewLake
from tests.support.records import UNAVAILABLE, Row
from tests.support.source_database import SourceDatabase

NAME = "masking"
SALT = "CzQMA0cB5K"
HASH = "column.mask.hash.v2.SHA-256.with.salt"
# More than a page has room for, so that PostgreSQL keeps it beside the row.
BIOGRAPHY = "a life " * 3_000
CREATE = f"""
    create schema app;
    create table app.people (
        person_id int primary key, email varchar(100), phone varchar(20),
        passport text, biography text, details jsonb
    );
    create table app.authors (author_id int primary key, biography text, rank int);
    create table app.logins (login text primary key, email text);
    alter table app.people alter column biography set storage external;
    alter table app.authors alter column biography set storage external;
    alter table app.authors replica identity full;
    create publication {NAME} for all tables;
    grant usage on schema app to {REPLICATION_ROLE};
    grant select on all tables in schema app to {REPLICATION_ROLE};
    insert into app.people values
        (1, 'a@example.org', '555-0100', 'X1', '{BIOGRAPHY}', '{{"a": 1}}');
    insert into app.authors values (1, '{BIOGRAPHY}', 1)
"""
CHANGES = """
    insert into app.people (person_id, email, passport) values (2, 'b@example.org', 'X2');
    update app.people set phone = '555-0199' where person_id = 1;
    update app.authors set rank = 2;
    insert into app.logins values ('ann', 'a@example.org')
"""
TOPICS = {f"{NAME}.app.{table}": table for table in ("people", "authors", "logins")}


def hashed(text: str, salt: str = SALT) -> str:
    return sha256((salt + text).encode()).hexdigest()


def test_columns_are_left_out_or_hashed(
    stack: NorthwindStack, new_lake: NewLake, tmp_path: Path
) -> None:
    """Three tables, changed while a connector masks their columns."""
    # A placeholder of Connect's FileConfigProvider.
    salt_in_a_file = f"${{file:{stack.connect.placeholders}:password}}"
    columns = "email|phone|biography|details"
    masks = {
        "column.exclude.list": r"app\.people\.passport",
        f"{HASH}.{SALT}": rf"app\.\w+\.({columns})",
        f"{HASH}.{salt_in_a_file}": r"app\.logins\.login",
    }
    source = SourceDatabase(stack, NAME)
    try:
        source.create()
        source.execute(CREATE)
        source.configure(NAME, source.configuration(NAME, r"app\..*") | masks)
        source.execute(CHANGES)
        source.wait_until_caught_up()
        # Connect shows the salt to whoever may ask it.
        assert f"{HASH}.{SALT}" in stack.connect.ask("GET", f"/connectors/{NAME}/config")
    finally:
        source.remove()
    topics = tmp_path / "topics.toml"
    lines = "".join(f'"{topic}" = "{table}"\n' for topic, table in TOPICS.items())
    topics.write_text(f"[topics]\n{lines}")
    lake = new_lake(topics)
    servers = ("--bootstrap-servers", stack.bootstrap_servers, "--topics", str(topics))
    ingested = lake.ingest_kafka(*servers, "--topic", *TOPICS)
    assert (ingested.code, ingested.counts) == (0, (6, 6, 0, 0)), ingested.err

    def rows(table: str) -> list[Row]:
        """What Kafka has of a table, in its order."""
        events = lake.rows(f"bronze.{table}")
        events.sort(key=lambda event: event["kafka_offset"])
        return [json.loads(event["value"])["after"] for event in events]

    read, inserted, updated = rows("people")
    assert not any("passport" in row for row in (read, inserted, updated))
    assert (read["email"], read["biography"]) == (
        *(hashed("a@example.org"), hashed(BIOGRAPHY)),
    )
    assert (inserted["email"], inserted["phone"]) == (hashed("b@example.org"), None)
    # It is cut to the length of the column.
    assert updated["phone"] == hashed("555-0199")[:20]
    # A column that is no text is not hashed, and Debezium says nothing of it.
    assert json.loads(read["details"]) == {"a": 1}
    # Nothing shows that a value was not sent, unless the replica identity is full.
    assert updated["biography"] == hashed(UNAVAILABLE)
    assert [row["biography"] for row in rows("authors")] == [hashed(BIOGRAPHY)] * 2
    # The placeholder is the salt itself, as it is in a setting's name. A key is not hashed.
    assert rows("logins")[0]["login"] == hashed("ann", salt_in_a_file)
    [login] = lake.rows("bronze.logins")
    assert json.loads(login["key"]) == {"login": "ann"}
