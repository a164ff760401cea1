"""Lands the recorded events as Lenses' S3 sink writes them (``store.envelope=true``)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EVENTS = Path(__file__).with_name("events")


def recorded(file: Path) -> Iterator[dict[str, Any]]:
    """The Kafka records of a capture: topic, partition, offset, timestamp, key, value."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def sink_envelope(record: dict[str, Any]) -> str:
    """One line as the sink writes it: key and value are JSON, not text with JSON in it."""
    return json.dumps(
        {
            "key": json.loads(record["key"] or "null"),
            "value": json.loads(record["value"] or "null"),
            "headers": {},
            "metadata": {
                "topic": record["topic"],
                "partition": record["partition"],
                "offset": record["offset"],
                "timestamp": record["timestamp"],
            },
        },
        ensure_ascii=False,
    )


def land(landing: Path) -> int:
    """Write the recorded events below a folder, ``<topic>/<partition>/<offset>.json.gz``.

    Files that are there already stay as they are.

    Returns:
        How many records the landing folder holds.
    """
    count = 0
    for capture in sorted(EVENTS.glob("*.jsonl.gz")):
        records = list(recorded(capture))
        last = records[-1]
        file = landing / last["topic"] / str(last["partition"])
        file /= f"{last['offset']:012d}.json.gz"
        count += len(records)
        if file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        with gzip.open(part, "wt", encoding="utf-8") as lines:
            lines.writelines(sink_envelope(record) + "\n" for record in records)
        part.rename(file)
    return count
