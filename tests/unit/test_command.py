"""A command of ours: how it is stopped."""

import logging
import signal
import time
import weakref

import click
import pytest

from cdc_lakehouse import log
from cdc_lakehouse.command import run


class Node:
    """What a weak reference can be to."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signal_that_comes_in_a_callback_stops_the_command(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """Python drops what is raised there: a start of Spark once ran on, silently."""

    @click.command(name="waiting")
    def waiting() -> None:
        node = Node()
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
