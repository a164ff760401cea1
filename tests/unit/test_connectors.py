"""Every setting of the connectors is one that somebody reads, and the README says why."""

from __future__ import annotations

import json
import re
import tomllib

import pytest

from connectors.postgres.load import PUBLICATION
from connectors.stack.stack import CONNECTORS
from ingest.topics import read_topics
from tests.support.project import PROJECT

FOLDER = PROJECT / "connectors"
SINKS = {"sink-s3-lenses": "lenses", "sink-s3-confluent": "confluent"}
BOTH_SOURCES = "Both sources"
MARIADB = "source-mariadb"

# Connect reads these itself; validate does not list them.
TOPIC_CREATION = "topic.creation.default."
PRODUCER = "producer.override."


def configuration(name: str) -> dict[str, str]:
    content: dict[str, str] = json.loads((FOLDER / f"{name}.json").read_text())
    return content


@pytest.mark.parametrize(("name", "kind"), SINKS.items())
def test_every_setting_of_a_sink_is_on_its_list(name: str, kind: str) -> None:
    known = tomllib.loads((PROJECT / "tests/support/sink_settings.toml").read_text())
    config = configuration(name)
    assert config.keys() - {*known["connect"], *known[kind]} == set()
    kcql = config.get("connect.s3.kcql", "")
    properties = set(re.findall(r"'([a-z.]+)'=", kcql))
    assert properties - set(known["lenses_properties"]) == set()
    assert "partitionby" not in kcql.lower()


@pytest.mark.parametrize("name", [*CONNECTORS, MARIADB, *SINKS])
def test_the_readme_says_why_of_every_setting(name: str) -> None:
    readme = (FOLDER / "README.md").read_text()
    heading = BOTH_SOURCES if name in CONNECTORS else f"`{name}.json`"
    section = readme.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
    explained = [key for row in rows for key in re.findall(r"`([^`]+)`", row[0])]
    assert sorted(explained) == sorted(configuration(name))
    assert all(len(row[1]) > 3 for row in rows)


@pytest.mark.parametrize("name", [*CONNECTORS, MARIADB, *SINKS])
def test_a_file_is_sorted_and_holds_no_secret(name: str) -> None:
    config = configuration(name)
    assert list(config) == sorted(config)
    for key, value in config.items():
        if re.search("password|secret|access.key|user|host", key):
            assert re.fullmatch(r"\$\{file:[^:]+:\w+\}", value), key


def test_the_sources_share_what_they_should() -> None:
    outbox, tables = map(configuration, CONNECTORS)
    differ = {key for key in outbox | tables if outbox.get(key) != tables.get(key)}
    assert differ == {"custom.metric.tags", "slot.name", "table.include.list"}
    assert outbox["publication.name"] == PUBLICATION


def test_the_topics_are_those_that_the_stack_ingests() -> None:
    captured = {
        f"{config['topic.prefix']}.{table}"
        for config in map(configuration, CONNECTORS)
        for table in config["table.include.list"].split(",")
    }
    assert captured == read_topics(FOLDER / "stack" / "topics.toml").tables.keys()
    assert read_topics().tables.keys() <= captured
    for sink in SINKS:
        pattern = configuration(sink)["topics.regex"]
        assert all(re.fullmatch(pattern, topic) for topic in captured)
        assert not re.fullmatch(pattern, "__debezium-heartbeat.demo")
