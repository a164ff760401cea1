"""How far the last whole build came, kept in the lake: the next builds what came since.

Each command of dbt's that writes removes it first, so that it is there only where nothing
was written since.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Built(NamedTuple):
    """What a build that succeeded had before it.

    Attributes:
        project: a checksum of the dbt project and of the command.
        day: in UTC, as an answer may depend on it.
        batches: the last ``ingest_batch`` of each bronze table, 0 of one without any.
    """

    project: str
    day: str
    batches: dict[str, int]

    def lacks(self, now: Built) -> set[str] | None:
        """The bronze tables that brought something since; None where all is to be built."""
        if (now.project, now.day) != (self.project, self.day):
            return None
        return {
            table
            for table, batch in now.batches.items()
            if self.batches.get(table, 0) != batch
        }


def read(spark: Any, lake: str) -> Built | None:
    """What is kept in a lake, if anything is that can be read."""
    file, files = _file(spark, lake)
    if not files.exists(file):
        return None
    stream = files.open(file)
    try:
        text = spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        return Built(**json.loads(text))
    except (ValueError, TypeError):  # a kill while it was written
        return None
    finally:
        stream.close()


def keep(spark: Any, lake: str, built: Built) -> None:
    """Keep it for the next process."""
    file, files = _file(spark, lake)
    stream = files.create(file, True)
    stream.write(json.dumps(built._asdict()).encode())
    stream.close()


def forget(spark: Any, lake: str) -> None:
    """Have the next process build everything."""
    file, files = _file(spark, lake)
    files.delete(file, False)


def _file(spark: Any, lake: str) -> tuple[Any, Any]:
    file: Any = spark._jvm.org.apache.hadoop.fs.Path(f"{lake}/checkpoints/built.json")
    return file, file.getFileSystem(spark._jsc.hadoopConfiguration())
