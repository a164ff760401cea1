"""Takes crash images of work that runs in this process and in its JVM.

The JVM is stopped and the lake's folder copied at every point at which the disk may have
changed:

- before each operation of Hadoop's file system that changes something (create, rename,
  delete, make a folder), and after each create, when the file is there and empty. Hudi
  and Spark write by them;
- before each SQL statement of dbt, and when the work is done.

Derby writes past Hadoop; its own recovery is not looked at.
"""

import hashlib
import os
import pkgutil
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dbt.adapters.spark.session import Cursor
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from cdc_lakehouse.spark.session import spark_session
from tests.support.crash_images import END, Image

# What says nothing about the work: logs, and locks that the kernel frees.
IGNORED = ("derby.log", "ingest.lock", "dbt build.lock")
_LEADING_COMMENTS = re.compile(r"^(\s*(/\*.*?\*/|--[^\n]*\n))*", re.DOTALL)
# A file that changed this short before it was read may change again with the same time.
RACY_NS = 50_000_000


class Recorder:
    """Takes the images of work that runs in this process and its JVM.

    Args:
        place: the lake's folder.
        folder: keeps the images.
    """

    def __init__(self, place: Path, folder: Path) -> None:
        self.place = place
        self.folder = folder
        self.points: list[tuple[str, int]] = []
        self.images: list[Image] = []
        self._known: dict[str, tuple[tuple[int, int, int], str]] = {}
        self._java_pid = 0
        self._lock = threading.Lock()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Take an image at every point of the block, and one after it."""
        (self.folder / "contents").mkdir(parents=True, exist_ok=True)
        with self._watched_statements(), self._watched_file_system():
            yield
        self.point(END)

    def point(self, name: str) -> None:
        """Take an image, unless the last one is the same; one at the end always."""
        with self._lock:
            with _stopped(self._java_pid):
                files = self._files()
            if name == END or not self.images or self.images[-1].files != files:
                self.images.append(Image(name, files))
            self.points.append((name, len(self.images) - 1))

    def _files(self) -> dict[str, str]:
        files: dict[str, str] = {}
        folders = [self.place]
        while folders:
            for entry in os.scandir(folders.pop()):
                path = os.path.relpath(entry.path, self.place)
                if path in IGNORED:
                    continue
                if entry.is_dir():
                    files[path + "/"] = ""
                    folders.append(Path(entry.path))
                else:
                    files[path] = self._digest(path, entry)
        return files

    def _digest(self, path: str, entry: os.DirEntry[str]) -> str:
        status = entry.stat()
        identity = (status.st_ino, status.st_size, status.st_mtime_ns)
        known = self._known.get(path)
        if known and known[0] == identity:
            return known[1]
        content = Path(entry.path).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        copy = self.folder / "contents" / digest
        if not copy.exists():
            copy.write_bytes(content)
        if time.time_ns() - status.st_mtime_ns > RACY_NS:
            self._known[path] = (identity, digest)
        return digest

    @contextmanager
    def _watched_statements(self) -> Iterator[None]:
        execute = Cursor.execute

        def watched(cursor: Cursor, sql: str, *parameters: Any) -> None:
            statement = _LEADING_COMMENTS.sub("", sql)
            self.point("sql " + " ".join(statement.split())[:120])
            execute(cursor, sql, *parameters)

        # dbt-spark has no hook for a statement, so that its method is replaced for a while.
        Cursor.execute = watched  # type: ignore[method-assign, assignment]  # a patch
        try:
            yield
        finally:
            Cursor.execute = execute  # type: ignore[method-assign]  # as above

    @contextmanager
    def _watched_file_system(self) -> Iterator[None]:
        """Have the JVM's file system name each of its operations before it."""
        session = SparkSession.getActiveSession()
        context = SparkContext._active_spark_context
        assert session is not None
        assert context is not None
        gateway: Any = SparkContext._gateway
        # PySpark declares no types for it.
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # py4j
        jvm = gateway.jvm
        self._java_pid = jvm.java.lang.ProcessHandle.current().pid()
        settings = context._jsc.hadoopConfiguration()
        # Spark carries Janino, a compiler.
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cookFile(str(Path(__file__).with_name("WatchedFileSystem.java")))
        watched = compiler.getClassLoader().loadClass("tests.WatchedFileSystem")
        # Hudi wraps the file system, and keeps the wrapper: that takes a new one, too.
        hudi_wrapper = "HoodieWrapperFileSystem"
        hudi = getattr(jvm.org.apache.hudi.hadoop.fs, hudi_wrapper)
        new = {
            "file:///": lambda: watched.getConstructor(
                gateway.new_array(jvm.java.lang.Class, 0)
            ).newInstance(gateway.new_array(jvm.java.lang.Object, 0)),
            "hoodie-file:///": hudi,
        }
        settings.set("fs.hoodie-file.impl", "org.apache.hudi.hadoop.fs." + hudi_wrapper)
        listener = watched.getField("listener")
        listener.set(None, _Listener(self))
        usual = {}
        hadoop = jvm.org.apache.hadoop.fs.FileSystem
        for url, make in new.items():
            root = jvm.java.net.URI.create(url)
            system = make()
            usual[url] = hadoop.get(root, settings)
            system.initialize(root, settings)
            _put_in_cache(gateway, root, settings, system)
        # A stream's checkpoint is written by another interface of Hadoop's, FileContext,
        # that this does not watch; this manager takes the same steps by a file system.
        manager = "spark.sql.streaming.checkpointFileManagerClass"
        streaming = "org.apache.spark.sql.execution.streaming"
        session.conf.set(manager, f"{streaming}.FileSystemBasedCheckpointFileManager")
        try:
            yield
        finally:
            session.conf.unset(manager)
            listener.set(None, None)
            for url, system in usual.items():
                _put_in_cache(gateway, jvm.java.net.URI.create(url), settings, system)


class _Listener:
    """A ``java.util.function.Consumer`` of operations."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.prefix = f"{recorder.place}/"

    def accept(self, operation: str) -> None:
        name, _, path = operation.partition(" ")
        if path.startswith(self.prefix):
            self.recorder.point(f"{name} {path.removeprefix(self.prefix)}")

    class Java:
        implements = ("java.util.function.Consumer",)


def _put_in_cache(gateway: Any, root: Any, settings: Any, system: Any) -> None:
    """Have every later ``FileSystem.get`` of a local path return this one."""
    java = gateway.jvm.java.lang
    hadoop = java.Class.forName("org.apache.hadoop.fs.FileSystem")
    for method in hadoop.getDeclaredMethods():
        if method.getName() == "addFileSystemForTesting":
            method.setAccessible(True)
            arguments = gateway.new_array(java.Object, 3)
            arguments[0], arguments[1], arguments[2] = root, settings, system
            method.invoke(None, arguments)


@contextmanager
def _stopped(pid: int) -> Iterator[None]:
    """Have a process stand still: each of its threads, which may be in a system call."""
    os.kill(pid, signal.SIGSTOP)
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            while _state(thread) not in "TX":
                time.sleep(0.0005)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _state(thread: Path) -> str:
    """A thread's state as the kernel names it: T is stopped, X is gone."""
    try:
        status = (thread / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "X"
    return status.rpartition(") ")[2][0]


def record(folder: str, name: str, *arguments: Any) -> tuple[Any, tuple[Any, list[Image]]]:
    """Call a function and keep in a folder what a kill would leave at each point.

    Returns:
        What the function returns; the points and the images.
    """
    spark_session()
    recorder = Recorder(Path(os.environ["LAKE_ROOT"]), Path(folder))
    with recorder.recording():
        answer = pkgutil.resolve_name(f"tests.support.{name}")(*arguments)
    return answer, (recorder.points, recorder.images)
