"""Every setting of a sink is one that somebody reads; no connector's file has a secret."""

import json
import re
import tomllib

import pytest

from ingest.topics import read_topics
from lab.stack.northwind import CONNECTORS
from tests.support.project import PROJECT

FOLDER = PROJECT / "connectors"
SINKS = {"sink-s3-lenses": "lenses", "sink-s3-confluent": "confluent"}
MARIADB = "source-mariadb"
# What each file has in Avro, beside it in the folder.
AVRO = {name: f"{name}-avro" for name in (*CONNECTORS, MARIADB, *SINKS)}
CONVERTER_SETTING = re.compile(r"(key|value)\.converter\.apicurio\.registry\.[a-z-]+")


def configuration(name: str) -> dict[str, str]:
    content: dict[str, str] = json.loads((FOLDER / f"{name}.json").read_text())
    return content


@pytest.mark.parametrize("name", [*SINKS, *(AVRO[name] for name in SINKS)])
def test_every_setting_of_a_sink_is_on_its_list(name: str) -> None:
    kind = SINKS[name.removesuffix("-avro")]
    known = tomllib.loads((PROJECT / "tests/support/sink_settings.toml").read_text())
    config = configuration(name)
    unknown = config.keys() - {*known["connect"], *known[kind]}
    assert {key for key in unknown if not CONVERTER_SETTING.fullmatch(key)} == set()
    kcql = config.get("connect.s3.kcql", "")
    properties = set(re.findall(r"'([a-z.]+)'=", kcql))
    assert properties - set(known["lenses_properties"]) == set()
    assert "partitionby" not in kcql.lower()


@pytest.mark.parametrize("name", [*CONNECTORS, MARIADB, *SINKS, *AVRO.values()])
def test_a_file_is_sorted_and_holds_no_secret(name: str) -> None:
    config = configuration(name)
    assert list(config) == sorted(config)
    for key, value in config.items():
        if re.search("password|secret|access.key|user|host", key):
            assert re.fullmatch(r"\$\{file:[^:]+:\w+\}", value), key


def test_the_topics_are_those_that_the_stack_ingests() -> None:
    captured = {
        f"{config['topic.prefix']}.{table}"
        for config in map(configuration, CONNECTORS)
        for table in config["table.include.list"].split(",")
    }
    assert captured == read_topics().tables.keys()
    for sink in SINKS:
        pattern = configuration(sink)["topics.regex"]
        assert all(re.fullmatch(pattern, topic) for topic in captured)
        assert not re.fullmatch(pattern, "__debezium-heartbeat.demo")
