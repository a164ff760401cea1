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
IN_AVRO = "The same in Avro"
# What each file has in Avro, beside it in the folder.
AVRO = {name: f"{name}-avro" for name in (*CONNECTORS, MARIADB, *SINKS)}
CONVERTER_SETTING = re.compile(r"(key|value)\.converter\.apicurio\.registry\.[a-z-]+")

# Connect reads these itself; validate does not list them.
TOPIC_CREATION = "topic.creation.default."
PRODUCER = "producer.override."


def configuration(name: str) -> dict[str, str]:
    content: dict[str, str] = json.loads((FOLDER / f"{name}.json").read_text())
    return content


@pytest.mark.parametrize(
    ("name", "kind"),
    [*SINKS.items(), *((AVRO[name], kind) for name, kind in SINKS.items())],
)
def test_every_setting_of_a_sink_is_on_its_list(name: str, kind: str) -> None:
    known = tomllib.loads((PROJECT / "tests/support/sink_settings.toml").read_text())
    config = configuration(name)
    unknown = config.keys() - {*known["connect"], *known[kind]}
    assert {key for key in unknown if not CONVERTER_SETTING.fullmatch(key)} == set()
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


def different(name: str) -> set[str]:
    """The settings that a connector's file in Avro has otherwise, or has besides."""
    plain, avro = configuration(name), configuration(AVRO[name])
    return {key for key in plain | avro if plain.get(key) != avro.get(key)}


def test_the_readme_says_why_of_every_setting_in_avro() -> None:
    readme = (FOLDER / "README.md").read_text()
    section = readme.split(f"\n## {IN_AVRO}\n")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
    explained = {key for row in rows for key in re.findall(r"`([^`]+)`", row[0])}
    changed = {key for name in AVRO for key in different(name)}
    files = {f"{name}.json" for name in AVRO.values()}
    assert explained - files == {key for key in changed if "schemas.enable" not in key}


@pytest.mark.parametrize("name", AVRO)
def test_an_avro_variant_differs_in_how_records_are_written_only(name: str) -> None:
    meant = (
        r"(key|value)\.converter.*|.*\.adjustment\.mode|format\.class|.*co(dec|mpression).*"
    )
    assert all(re.fullmatch(f"{meant}|connect\\.s3\\.kcql", key) for key in different(name))


@pytest.mark.parametrize("name", [*CONNECTORS, MARIADB, *SINKS, *AVRO.values()])
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
