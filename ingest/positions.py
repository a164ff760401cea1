"""An event's position in its source's log, by connector: text that sorts as the log does.

A connector says what it is (``source.connector``), and which fields of ``source`` make a
position is known here only. One more connector is one more function, in ``CONNECTORS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

# What a flattened event is of that names no connector: the first one that was read here.
DEFAULT_CONNECTOR = "postgresql"


@dataclass(frozen=True)
class Log:
    """How the events of a connector stand in its source's log.

    Attributes:
        fields: of Debezium's ``source``, that make a position. A streamed event has all;
            a snapshot read that lacks the first has no position.
        position: the position that these fields make, each given as text; null where they
            are not of the documented form.
        term: what a position is called, with its article, for a reason of rejection.
        form: what is right, for the same.
    """

    fields: tuple[str, ...]
    position: Callable[..., Column]
    term: str
    form: str


def number(text: Column, kind: str = "bigint") -> Column:
    """A text as a number from 0; null where it is none, or too large for its type."""
    return F.when(text.rlike(r"^\d+$"), text.cast(kind))


def lsn_position(lsn: Column) -> Column:
    """PostgreSQL's LSN as 16 hexadecimal digits."""
    return F.lower(F.lpad(F.hex(number(lsn)), 16, "0"))


def binlog_position(file: Column, pos: Column, row: Column) -> Column:
    """MySQL's and MariaDB's place in the binary log: file number, position and row.

    The file number follows the last dot of the file's name (``binlog.000042``) and has 31
    bits, the position 32, as in an event's header; the row counts from 0 within an event.
    Ten digits each: ``0000000042/0000001234/0000000000``. Snapshot reads have row 0.
    """
    parts = (
        number(F.regexp_extract(file, r"\.(\d+)$", 1), "int"),
        F.when(number(pos) < 2**32, number(pos)),
        number(row, "int"),
    )
    digits = [F.lpad(part.cast("string"), 10, "0") for part in parts]
    return F.concat(digits[0], F.lit("/"), digits[1], F.lit("/"), digits[2])


def transaction_log_position(
    commit_lsn: Column, change_lsn: Column, serial: Column
) -> Column:
    """SQL Server's commit LSN, change LSN and the event's serial number at that change.

    An LSN is three hexadecimal numbers of 8, 8 and 4 digits; the serial number gets ten
    digits: ``00000027:00000ac0:0007/00000027:00000ac0:0002/0000000002``. The reads of a
    snapshot have a commit LSN only, and zeros stand for the rest: the snapshot was taken
    behind that transaction, so that its events, if they come once more, change nothing.
    """
    changed = F.coalesce(change_lsn, F.lit("00000000:00000000:0000"))
    event = F.coalesce(number(serial, "int"), F.when(serial.isNull(), F.lit(0)))
    is_lsn = r"^[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8}:[0-9A-Fa-f]{4}$"
    position = F.concat(
        F.lower(commit_lsn),
        F.lit("/"),
        F.lower(changed),
        F.lit("/"),
        F.lpad(event.cast("string"), 10, "0"),
    )
    return F.when(commit_lsn.rlike(is_lsn) & changed.rlike(is_lsn), position)


BINLOG = Log(
    fields=("file", "pos", "row"),
    position=binlog_position,
    term="a binlog position",
    form="a file name that ends with its number, a position of 32 bits and a row",
)

# By what a connector says of itself.
CONNECTORS: dict[str, Log] = {
    "postgresql": Log(
        fields=("lsn",),
        position=lsn_position,
        term="an LSN",
        form="a number of 63 bits",
    ),
    "mysql": BINLOG,
    "mariadb": BINLOG,
    "sqlserver": Log(
        fields=("commit_lsn", "change_lsn", "event_serial_no"),
        position=transaction_log_position,
        term="a commit LSN",
        form="commit LSN, change LSN and serial number",
    ),
}
FIELDS = tuple(dict.fromkeys(name for log in CONNECTORS.values() for name in log.fields))
