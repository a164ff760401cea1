"""What Spark's errors mean to the user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from cdc_lakehouse.errors import StoppedError, TransientError, UserError
from cdc_lakehouse.spark.java import is_ending
from ingest.kafka import recreated, vanished

# What an operation may raise that Spark carries out.
SPARK_ERRORS = (PySparkException, Py4JError, ConnectionError)
# Spark stops by itself where its memory is full, and where its JVM ends.
_STOPPED = ("stopped SparkContext", "SparkContext was shut down")
# A broker, a store or a host that does not answer now.
_TRANSIENT = re.compile(
    r"\b(ConnectException|ConnectTimeoutException|SocketTimeoutException|"
    r"UnknownHostException|NoRouteToHostException|SdkClientException|TimeoutException|"
    r"AWSServiceIOException|AWSServiceThrottledException|AWSStatus500Exception|SlowDown|"
    r"DisconnectException|SocketException|NoHttpResponseException|InterruptedIOException)\b"
)
# An error of ours that a batch of a stream raised: Spark hands its trace on as text.
_RAISED = re.compile(
    rf"^{re.escape(UserError.__module__)}"
    rf"\.({TransientError.__name__}|{UserError.__name__}): (.+)$",
    re.MULTILINE,
)


@contextmanager
def explained() -> Iterator[None]:
    """Turn Spark's errors in the block to one sentence.

    Raises:
        UserError: what failed; a ``TransientError`` where it may pass.
    """
    try:
        yield
    except SPARK_ERRORS as error:
        raise explanation(error) from error


def explanation(error: Exception) -> UserError:
    """What an error of Spark's means."""
    text = str(error)
    is_full = "OutOfMemoryError" in text
    has_stopped = any(words in text for words in _STOPPED)
    if has_stopped and not is_full and is_ending():
        return StoppedError("Spark was stopped; run this again to go on")
    if has_stopped or is_full:
        return TransientError(
            "Spark ran out of memory: give it more (SPARK_DRIVER_MEMORY=4g), or smaller"
            " batches (--max-bytes, --max-records)"
        )
    raised = _RAISED.search(text)
    if raised:
        kind = TransientError if raised[1] == TransientError.__name__ else UserError
        return kind(raised[2])
    if isinstance(error, (Py4JNetworkError, ConnectionError)):
        return TransientError("Spark's Java process ended; run this again to go on")
    moved = re.search(r"(\S+)-(\d+)'s offset was changed from (\d+) to (\d+)", text)
    if moved and int(moved[4]) < int(moved[3]):
        return TransientError(recreated(moved[1]))
    if moved:
        return UserError(vanished(moved[1], int(moved[2]), int(moved[3]), int(moved[4])))
    gone = re.search(r"fetch offset (\d+) \(.*?TopicPartition: (\S+)-(\d+)\)", text)
    if gone:
        return UserError(vanished(gone[2], int(gone[3]), int(gone[1]), None))
    said = f"the ingest stopped: {reason(text)}"
    return TransientError(said) if _TRANSIENT.search(text) else UserError(said)


def reason(text: str) -> str:
    """The innermost cause that a Java trace names."""
    causes = re.findall(r"Caused by: [\w.$]*?(\w+): (.+)", text)
    if causes:
        return f"{causes[-1][1].strip()} ({causes[-1][0]})"
    trace, _, _ = text.partition("\n\tat ")
    lines = [line for line in trace.splitlines() if line.strip()]
    if not lines:
        return "no reason was given"
    return re.sub(r"^: [\w.$]*?(\w+): (.+)", r"\2 (\1)", lines[-1])
