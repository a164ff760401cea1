"""Files of records: which are there, which bronze has, and batches of the others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, KeysView
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import reduce
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.avro import UnusableSchemaError
from ingest.avro_files import BrokenFileError, lines_of_files, row_schema, schema_of_file
from ingest.events import records_from_lines
from ingest.failures import explanation, reason
from lake.errors import TransientError, UserError

# A batch lists its files for Spark, which looks at each of them once more.
FILES_A_BATCH = 1_000
# From so many on, the ledger's own files are made one.
LEDGER_FILES = 20
# Spark holds a line many times over: a driver of 2 GB bears lines of this length.
LONGEST_LINE = 8 << 20
# Bytes that no line has: a mark of byte order, an end of line that is missing.
SLACK = 4
AVRO = ".avro"
# Their headers, of so many files at a time: a store answers each after a while.
HEADERS_AT_A_TIME = 8
# How Hadoop knows what it decodes.
COMPRESSED = (".gz", ".bz2", ".deflate", ".snappy", ".lz4", ".zst")


@dataclass(frozen=True)
class File:
    """One version of a file: a sink may write its key again, with more records.

    Attributes:
        path: as Hadoop names it, not encoded: ``file:/landing/a b.json``.
        modified: when it was written, in milliseconds of Unix time.
        length: its bytes, as they are stored.
    """

    path: str
    modified: int
    length: int


class Ledger:
    """The files that bronze has, in a folder of JSON lines.

    It is written after bronze. What it lacks is read again, and adds nothing, as every
    record has its id; so a lost ledger costs time only.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        jvm: Any = spark._jvm
        self._new_path = jvm.org.apache.hadoop.fs.Path
        self._folder = self._new_path(folder)
        self._files = self._folder.getFileSystem(spark._jsc.hadoopConfiguration())
        self._names: list[str] = []
        if self._files.exists(self._folder):
            listed = [
                each.getPath().getName() for each in self._files.listStatus(self._folder)
            ]
            self._names = sorted(name for name in listed if name.endswith(".json"))
        self._known = {file.path: file for file in self._read(spark)}

    def lacks(self, file: File) -> bool:
        """Whether this version of a file has not been read."""
        return self._known.get(file.path) != file

    def add(self, files: list[File]) -> None:
        """Remember files that have been read."""
        self._known |= {file.path: file for file in files}
        replaced = [*self._names] if len(self._names) >= LEDGER_FILES else []
        self._write(self._known.values() if replaced else files)
        for name in replaced:
            self._files.delete(self._new_path(self._folder, name), False)
        self._names = self._names[len(replaced) :]

    def forget_all_but(self, there: KeysView[str], is_named: Callable[[str], bool]) -> None:
        """Forget what was named and is gone; the next rewrite leaves it out."""
        for path in [path for path in self._known.keys() - there if is_named(path)]:
            del self._known[path]

    def _read(self, spark: SparkSession) -> Iterator[File]:
        """What the ledger's files say, the newest last."""
        if not self._names:
            return
        paths = [f"{self._folder.toString()}/{name}" for name in self._names]
        rows = spark.read.text(paths).withColumn("name", F.input_file_name()).collect()
        for row in sorted(rows, key=lambda row: row["name"]):
            # What a power cut left of a line costs a second reading, too.
            with suppress(ValueError, TypeError):
                yield File(**json.loads(row["value"]))

    def _write(self, files: Iterable[File]) -> None:
        """Write a file of the ledger; it has its name only when it is whole."""
        last = int(self._names[-1].partition(".")[0]) if self._names else 0
        name = f"{last + 1:08d}.json"
        part = self._new_path(self._folder, f"{name}.part")
        text = "".join(json.dumps(asdict(file)) + "\n" for file in files)
        stream = self._files.create(part, True)
        stream.write(text.encode())
        stream.close()
        self._files.rename(part, self._new_path(self._folder, name))
        self._names.append(name)


class Landing:
    """What is at some paths.

    Args:
        spark: the session.
        paths: files, folders (with what is below them) and globs, local or any URL that
            Hadoop can read. Names that begin with ``_`` or ``.`` are left out.
        ledger: what bronze has.
        max_bytes: how much a batch reads, as it is stored; a larger file is one by itself.

    Attributes:
        unreadable: what was found to be no readable file, with the reason; such a file is
            tried again once it has changed, or by the next command.
        waiting: what holds records that were left out; it is tried again like that.

    Raises:
        UserError: nothing is at one of the paths.
    """

    def __init__(
        self, spark: SparkSession, paths: list[str], ledger: Ledger, max_bytes: int
    ) -> None:
        self._spark = spark
        self._paths = [_qualified(spark, path) for path in paths]
        self._is_named = _matcher(spark, self._paths)
        self._ledger = ledger
        self._max_bytes = max_bytes
        self.unreadable: dict[File, str] = {}
        self.waiting: set[File] = set()
        # Of the Avro files that `readable` has found to be readable; and what a schema in
        # a header is read with.
        self._schemas: dict[File, str] = {}
        self._row_schemas: dict[str, str | UnusableSchemaError] = {}

    def new_files(self) -> list[File]:
        """The files, or versions of them, that bronze lacks; the oldest first."""
        found = {file.path: file for file in self._listed()}
        there = set(found.values())
        self.unreadable = {
            file: reason for file, reason in self.unreadable.items() if file in there
        }
        self.waiting &= there
        self._ledger.forget_all_but(found.keys(), self._is_named)
        new = [
            file
            for file in found.values()
            if self._ledger.lacks(file)
            and file not in self.unreadable
            and file not in self.waiting
        ]
        return sorted(new, key=lambda file: (file.modified, file.path))

    def batches(self, files: list[File]) -> Iterator[list[File]]:
        """The files in their order, so many at a time as a batch may read."""
        batch: list[File] = []
        size = 0
        for file in files:
            is_full = size + file.length > self._max_bytes or len(batch) == FILES_A_BATCH
            if batch and is_full:
                yield batch
                batch, size = [], 0
            batch.append(file)
            size += file.length
        if batch:
            yield batch

    def records(self, files: list[File], topic: str | None) -> DataFrame:
        """The records of files, in the columns of ``RECORD``.

        Args:
            files: what ``readable`` gave: JSON lines, plain or compressed, or Avro, by the
                name.
            topic: the topic of records that do not name theirs.
        """
        of_schema: dict[str, list[str]] = {}
        for file in files:
            if _is_avro(file):
                paths = of_schema.setdefault(self._schemas[file], [])
                paths.append(_literal(file.path))
        found = [
            lines_of_files(self._spark, paths, schema)
            for schema, paths in of_schema.items()
        ]
        if of_text := [file for file in files if not _is_avro(file)]:
            found.append(_lines(self._spark, of_text))
        return records_from_lines(reduce(DataFrame.unionAll, found), topic)

    def readable(self, files: list[File]) -> list[File]:
        """The files without those that are no Avro, or have a line that is too long.

        Raises:
            UserError: the store does not answer, or refuses to.
        """
        self._read_schemas([file for file in files if _is_avro(file)])
        self._find_long_lines([file for file in files if not _is_avro(file)])
        return [file for file in files if file not in self.unreadable]

    def _read_schemas(self, files: list[File]) -> None:
        """Read the headers of Avro files: what their records were written with."""
        self._schemas = {}

        def read(file: File) -> str | Exception:
            try:
                return schema_of_file(self._spark, file.path)
            except (BrokenFileError, Py4JJavaError) as error:
                return error

        with ThreadPoolExecutor(HEADERS_AT_A_TIME) as pool:
            found = dict(zip(files, pool.map(read, files), strict=True))
        texts = {text for text in found.values() if isinstance(text, str)}
        for text in texts - self._row_schemas.keys():
            try:
                self._row_schemas[text] = row_schema(self._spark, text)
            except UnusableSchemaError as error:
                self._row_schemas[text] = error
        for file, header in found.items():
            if isinstance(header, BrokenFileError):
                self.unreadable[file] = str(header)
            elif isinstance(header, Exception):
                meaning = explanation(header)
                if isinstance(meaning, TransientError):
                    raise meaning from header
                self.unreadable[file] = reason(str(header))
            elif isinstance(schema := self._row_schemas[header], str):
                self._schemas[file] = schema
            else:
                self.unreadable[file] = f"its schema cannot be used: {schema}"

    def _find_long_lines(self, files: list[File]) -> None:
        """Note the files that have a line that is longer than can be read.

        Hadoop's reader leaves such a line out without a word: it shows in the bytes that
        the other lines lack.
        """
        long = {file.path: file for file in files if _may_have_long_line(file)}
        if not long:
            return
        length = F.octet_length("value")
        read = (
            _lines(self._spark, list(long.values()))
            .groupBy("source_file")
            .agg(
                F.count("*").alias("lines"),
                F.sum(length).alias("bytes"),
                F.max(length).alias("longest"),
            )
            .collect()
        )
        for row in read:
            path = _path_of(row["source_file"])
            # An end of line is one byte or two, the same in a whole file as a rule.
            missing = long[path].length - row["bytes"] - row["lines"]
            is_left_out = (
                missing >= LONGEST_LINE - 1 and abs(missing - row["lines"]) > SLACK
            )
            # One that begins near the end of what a task reads is cut, and not left out.
            if not is_left_out and row["longest"] < LONGEST_LINE:
                del long[path]
        for file in long.values():
            self.unreadable[file] = f"a line is longer than {LONGEST_LINE >> 20} MiB"

    def note_waiting(self, files: list[File], source_files: frozenset[str]) -> None:
        """Note the files that are among those that Spark names."""
        paths = {_path_of(name) for name in source_files}
        self.waiting |= {file for file in files if file.path in paths}

    def set_aside(self, files: list[File], error: Exception) -> list[File]:
        """Note which of the files an error is about.

        Returns:
            The others.
        """
        text = str(error)
        named = [file for file in files if _names(text, file)]
        for file in named:
            self.unreadable[file] = reason(text)
        return [file for file in files if file not in named]

    def _listed(self) -> list[File]:
        """What is there; a path that went away has nothing until it is back."""
        listed = self._list(self._paths)
        if listed is not None:
            return listed
        each = (self._list([path]) for path in self._paths)
        return [file for files in each if files is not None for file in files]

    def _list(self, paths: list[str]) -> list[File] | None:
        """The files at some paths; None where one of the paths is not there."""
        try:
            rows = (
                self._spark.read.format("binaryFile")
                .option("recursiveFileLookup", "true")
                # One that goes away meanwhile.
                .option("ignoreMissingFiles", "true")
                .load(paths)
                .select("path", F.unix_millis("modificationTime").alias("at"), "length")
                .collect()
            )
        except AnalysisException as error:
            if "PATH_NOT_FOUND" not in str(error):
                raise
            return None
        return [File(row["path"], row["at"], row["length"]) for row in rows]


def _lines(spark: SparkSession, files: list[File]) -> DataFrame:
    """The lines of files as ``value``, each with its ``source_file``."""
    longest = "mapreduce.input.linerecordreader.line.maxlength"
    kinds = [
        (
            {longest: str(LONGEST_LINE)},
            [file for file in files if not _is_compressed(file)],
        ),
        ({}, [file for file in files if _is_compressed(file)]),
    ]
    found = [
        spark.read.schema("value string")
        .options(**options)
        .text([_literal(file.path) for file in of_kind])
        .withColumn("source_file", F.input_file_name())
        for options, of_kind in kinds
        if of_kind
    ]
    return found[0] if len(found) == 1 else found[0].unionAll(found[1])


def _is_avro(file: File) -> bool:
    return file.path.endswith(AVRO)


def _is_compressed(file: File) -> bool:
    return file.path.endswith(COMPRESSED)


def _may_have_long_line(file: File) -> bool:
    # What a compressed file holds, nothing says without reading it.
    return file.length >= LONGEST_LINE and not _is_compressed(file)


def _path_of(source_file: str) -> str:
    """The path of a file that Spark names: encoded, and with an empty host."""
    return re.sub(r"^file:/+", "file:/", unquote(source_file))


def _names(text: str, file: File) -> bool:
    """Whether an error is about a file; Hadoop and Java write its path in several ways."""
    path = re.sub(r"^\w+:/*", "/", file.path)
    name = re.escape(path) + r"(?!\.?[\w-])"  # not the beginning of another name
    return bool(re.search(name, text) or re.search(name, unquote(text)))


def _literal(path: str) -> str:
    """A path that is no pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def _qualified(spark: SparkSession, path: str) -> str:
    """The path with its scheme, after a look that something is there."""
    jvm: Any = spark._jvm
    hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
    file_system = hadoop_path.getFileSystem(spark._jsc.hadoopConfiguration())
    matches = file_system.globStatus(hadoop_path)
    if matches is None or len(matches) == 0:
        raise UserError(
            f"nothing is at {path}: no file, folder or match of the pattern, or no right"
            " to see it"
        )
    return str(file_system.makeQualified(hadoop_path).toString())


def _matcher(spark: SparkSession, patterns: list[str]) -> Callable[[str], bool]:
    """Whether a path matches one of Hadoop's patterns, or is below a path that does."""
    jvm: Any = spark._jvm
    hadoop = jvm.org.apache.hadoop.fs

    def regex(name: str) -> re.Pattern[str]:
        is_literal = not re.search(r"[*?\[{\\]", name)
        pattern = (
            re.escape(name) if is_literal else hadoop.GlobPattern(name).compiled().pattern()
        )
        return re.compile(pattern, re.DOTALL)

    # Name by name, as an asterisk matches within one name only.
    named = [
        [regex(name) for name in path.split("/")]
        for pattern in patterns
        for path in (hadoop.GlobExpander.expand(pattern) if "{" in pattern else [pattern])
    ]

    def is_named(path: str) -> bool:
        names = path.split("/")
        return any(
            len(each) <= len(names)
            and all(known.fullmatch(name) for known, name in zip(each, names, strict=False))
            for each in named
        )

    return is_named
