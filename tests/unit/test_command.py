"""A command of ours: how it and its JVM are stopped, and what is said of that."""

import logging
import os
import signal
import time
import traceback
import weakref
from types import SimpleNamespace
from unittest.mock import MagicMock

import click
import pytest

from cdc_lakehouse import log
from cdc_lakehouse.command import delayed_signals, run
from cdc_lakehouse.errors import TransientError, UserError
from cdc_lakehouse.spark import java
from ingest.failures import explanation


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signal_that_comes_in_a_callback_stops_the_command(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """Python drops what is raised there: a start of Spark once ran on, silently."""

    @click.command(name="waiting")
    def waiting() -> None:
        node: set[int] = set()
        dropped = weakref.ref(node, lambda _: signal.raise_signal(number))
        del node
        assert dropped() is None
        time.sleep(10)

    # A background process may have inherited SIG_IGN.
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    before = signal.signal(number, usual)
    try:
        assert run(waiting, []) == 128 + number
    finally:
        signal.signal(number, before)
    assert capfd.readouterr().err.strip() == "waiting: stopped"


def test_what_takes_long_is_spoken_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(log, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(log, "SECONDS", 0.01)
    log.start("long", "text")
    try:
        with log.step(logging.getLogger("long"), "starting Spark"):
            time.sleep(0.3)
    finally:
        log.stop("long")
    said = capsys.readouterr().err.splitlines()
    assert len(said) >= 2
    assert said[0].endswith(" long: starting Spark, for 0 s now")


def test_signal_waits_for_the_end_of_a_block() -> None:
    """And is not lost with an error."""
    done = []
    # Where the tests run in the background, Ctrl-C is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), delayed_signals():
            signal.raise_signal(signal.SIGINT)
            done.append("the rest")
            raise ValueError
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == ["the rest"]


STOPPED = "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext."
SHUT_DOWN = (
    "org.apache.spark.SparkException: Job 3 cancelled because SparkContext was shut down"
)


def test_spark_that_was_stopped_has_not_run_out_of_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for text, is_ending, code, message in [
        (STOPPED, True, 143, "Spark was stopped; run this again"),
        (SHUT_DOWN, True, 143, "Spark was stopped; run this again"),
        # By itself Spark stops where its memory is full.
        (STOPPED, False, 75, "Spark ran out of memory"),
        ("java.lang.OutOfMemoryError: Java heap space", True, 75, "memory"),
    ]:
        monkeypatch.setattr("ingest.failures.is_ending", lambda found=is_ending: found)
        error = explanation(RuntimeError(text))
        assert (error.exit_code, message in str(error)) == (code, True)


def test_error_of_ours_that_a_batch_raises_is_itself() -> None:
    """Spark hands its trace on as text."""
    for raised in (TransientError("a topic was recreated"), UserError("no such field")):
        trace = "".join(traceback.format_exception(raised))
        error = explanation(RuntimeError(f"An exception was raised by Python:\n{trace}"))
        assert (error.exit_code, str(error)) == (raised.exit_code, str(raised))


def test_user_or_folder_that_java_cannot_use_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A container's user that is a number; a folder of which Java can load no library."""
    flags = SimpleNamespace(f_flag=os.ST_NOEXEC)
    with monkeypatch.context() as patch:
        patch.setattr("cdc_lakehouse.spark.java.os.statvfs", lambda folder: flags)
        with pytest.raises(UserError, match=r"mounted noexec.*set TMPDIR"):
            java._require_user()
    unknown = MagicMock(side_effect=KeyError)
    monkeypatch.setattr("cdc_lakehouse.spark.java.pwd.getpwuid", unknown)
    with pytest.raises(UserError, match="has no entry in /etc/passwd"):
        java._require_user()
