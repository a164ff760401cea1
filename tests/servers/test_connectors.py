"""Every setting of the connectors is one that Connect or the connector reads."""

from typing import Any

import pytest

from lab.stack.connect import Connect
from lab.stack.northwind import CONNECTORS, NorthwindStack

# Connect reads these itself; validate does not list them.
TOPIC_CREATION = "topic.creation.default."
PRODUCER = "producer.override."


def validated(connect: Connect, name: str, config: dict[str, str]) -> dict[str, Any]:
    """Connect's answer on every setting that it and the connector read."""
    plugin = config["connector.class"]
    answer = connect.ask(
        "PUT", f"/connector-plugins/{plugin}/config/validate", {**config, "name": name}
    )
    return {entry["value"]["name"]: entry for entry in answer["configs"]}


def unread(connect: Connect, name: str, config: dict[str, str]) -> set[str]:
    listed = validated(connect, name, config).keys()
    return {
        key for key in config if key not in listed and not key.startswith(TOPIC_CREATION)
    }


@pytest.mark.parametrize("name", CONNECTORS)
def test_every_setting_of_a_source_is_read_and_needed(
    stack: NorthwindStack, name: str
) -> None:
    """Validate echoes any ``producer.override.``: the log has what the producer took.

    A ``topic.creation.`` setting that no broker knows fails the connector, which has
    created its topics here. A misspelt setting Debezium ignores silently.
    """
    config = stack.configuration(name)
    misspelt = {"skipped.operation": "none", "heartbeat.interval": "1000"}
    assert unread(stack.connect, name, config | misspelt) == misspelt.keys()
    entries = validated(stack.connect, name, config)
    assert [entry for entry in entries.values() if entry["value"]["errors"]] == []
    at_default = {
        key
        for key, value in config.items()
        if key in entries and entries[key]["definition"]["default_value"] == value
    }
    # Their default is the worker's, and this worker is not the only one.
    assert at_default <= {"key.converter", "value.converter"}
    log = stack.connect.log.read_text()
    for key, value in config.items():
        if key.startswith(PRODUCER):
            assert f"\t{key.removeprefix(PRODUCER)} = {value}\n" in log
    assert stack.connect.states()[name].is_running
