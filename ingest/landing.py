"""Files of records: which are there, which bronze has, and batches of the others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, KeysView
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

from cdc_lakehouse.errors import TransientError, UserError
from ingest import avro_files, parquet_files
from ingest.avro import UnusableSchemaError
from ingest.avro_files import BrokenFileError, row_schema
from ingest.events import records_from_lines
from ingest.failures import explanation, reason
from ingest.local import files_at, matches

T = TypeVar("T")
# A batch lists its files for Spark, which looks at each of them once more.
FILES_A_BATCH = 1_000
# From so many on, the ledger's own files are made one.
LEDGER_FILES = 20
# Spark holds a line many times over: a driver of 2 GB bears lines of this length.
LONGEST_LINE = 8 << 20
# Bytes that no line has: a mark of byte order, an end of line that is missing.
SLACK = 4
AVRO, PARQUET = ".avro", ".parquet"
# A store answers each after a while.
FILES_AT_A_TIME = 8
# How Hadoop's file system for one machine reads names with a colon: without its checksums,
# whose files have names that it cannot make then.
LOCALLY = {
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
LOCAL = "file:"
# How Hadoop knows what it decodes.
COMPRESSED = (".gz", ".bz2", ".deflate", ".snappy", ".lz4", ".zst")

# Change events as JSON repeat their names: a compressed file, and one of Parquet, is longer
# as a rule.
DECODED_TIMES = 10


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
        max_bytes: how much a batch reads, compressed files by what they may decode to; a
            larger file is one by itself.

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
        self._configuration = _configuration(spark)
        qualified = [_qualified(spark, path) for path in paths]
        self._paths = [path for path in qualified if not path.startswith(LOCAL)]
        patterns = _patterns(spark, qualified)
        self._local = [names for first, *names in patterns if first == LOCAL]
        self._is_named = _matcher(patterns)
        self._ledger = ledger
        self._max_bytes = max_bytes
        self.unreadable: dict[File, str] = {}
        self.waiting: set[File] = set()
        # Of the Avro and Parquet files that `readable` has found to be readable; and what a
        # schema in Avro's header is read with.
        self._schemas: dict[File, str] = {}
        self._row_schemas: dict[str, str | UnusableSchemaError] = {}

    def new_files(self) -> list[File]:
        """The files, or versions of them, that bronze lacks; the oldest first."""
        listed = self._listed()
        found = {file.path: file for file in listed}
        there = set(found.values())
        known = {file: why for file, why in self.unreadable.items() if file in there}
        self.waiting &= there
        self._ledger.forget_all_but(found.keys(), self._is_named)
        new = [
            file
            for file in found.values()
            if self._ledger.lacks(file) and file not in known and file not in self.waiting
        ]
        self.unreadable = known | {file: why for file, why in listed.items() if why}
        return sorted(new, key=lambda file: (file.modified, file.path))

    def batches(self, files: list[File]) -> Iterator[list[File]]:
        """The files in their order, so many at a time as a batch may read."""
        batch: list[File] = []
        size = 0
        for file in files:
            is_packed = _is_compressed(file) or _form(file) == PARQUET
            length = file.length * (DECODED_TIMES if is_packed else 1)
            is_full = size + length > self._max_bytes or len(batch) == FILES_A_BATCH
            if batch and is_full:
                yield batch
                batch, size = [], 0
            batch.append(file)
            size += length
        if batch:
            yield batch

    def records(self, files: list[File], topic: str | None) -> DataFrame:
        """The records of files, in the columns of ``RECORD``.

        Args:
            files: what ``readable`` gave: JSON lines, plain or compressed, Avro or
                Parquet, by the name.
            topic: the topic of records that do not name theirs.
        """
        of_schema: dict[tuple[str, str], list[str]] = {}
        for file in files:
            if form := _form(file):
                paths = of_schema.setdefault((form, self._schemas[file]), [])
                paths.append(_literal(file.path))
        found = [
            _rows(_reader(self._spark, form, schema), paths)
            for (form, schema), paths in of_schema.items()
        ]
        if of_text := [file for file in files if not _form(file)]:
            found.append(_lines(self._spark, of_text))
        return records_from_lines(reduce(DataFrame.unionAll, found), topic)

    def readable(self, files: list[File]) -> list[File]:
        """The files without those that cannot be decoded, or have a line that is too long.

        Raises:
            UserError: the store does not answer, or refuses to.
        """
        files = [file for file in files if file not in self.unreadable]
        self._read_schemas(files)
        self._find_long_lines([file for file in files if not _form(file)])
        return [file for file in files if file not in self.unreadable]

    def _read_schemas(self, files: list[File]) -> None:
        """Read what the records of Avro and Parquet files were written with."""

        def read(form: str, schema_of: Callable[..., str]) -> dict[File, str]:
            return self._of_each(
                [file for file in files if _form(file) == form],
                lambda path: schema_of(self._spark, self._configuration, path),
            )

        self._schemas = read(PARQUET, parquet_files.schema_of_file)
        found = read(AVRO, avro_files.schema_of_file)
        for text in set(found.values()) - self._row_schemas.keys():
            try:
                self._row_schemas[text] = row_schema(self._spark, text)
            except UnusableSchemaError as error:
                self._row_schemas[text] = error
        for file, header in found.items():
            if isinstance(schema := self._row_schemas[header], str):
                self._schemas[file] = schema
            else:
                self.unreadable[file] = f"its schema cannot be used: {schema}"

    def _of_each(self, files: list[File], function: Callable[[str], T]) -> dict[File, T]:
        """What a function gives for each file; those that it cannot read are noted.

        Raises:
            TransientError: the store does not answer.
        """

        def read(file: File) -> T | Exception:
            try:
                return function(file.path)
            except (BrokenFileError, Py4JJavaError) as error:
                return error

        with ThreadPoolExecutor(FILES_AT_A_TIME) as pool:
            found = dict(zip(files, pool.map(read, files), strict=True))
        results: dict[File, T] = {}
        for file, result in found.items():
            if isinstance(result, BrokenFileError):
                self.unreadable[file] = str(result)
            elif isinstance(result, Exception):
                meaning = explanation(result)
                # Decoding takes little: what is no such file may claim to be a large block.
                is_large = "OutOfMemoryError" in str(result)
                if isinstance(meaning, TransientError) and not is_large:
                    raise meaning from result
                self.unreadable[file] = reason(str(result))
            else:
                results[file] = result
        return results

    def _find_long_lines(self, files: list[File]) -> None:
        """Note the files that have a line that is longer than can be read.

        Hadoop's reader leaves such a line out without a word: it shows in the bytes that
        the other lines lack. How many a compressed file has, only decoding it tells.
        """
        lengths = {file: file.length for file in files if not _is_compressed(file)}
        lengths |= self._of_each(
            # What is empty has no header yet, and is read once it has grown.
            [file for file in files if _is_compressed(file) and file.length],
            lambda path: decoded_length(self._spark, self._configuration, path),
        )
        long = {file.path: file for file in lengths if lengths[file] >= LONGEST_LINE}
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
            missing = lengths[long[path]] - row["bytes"] - row["lines"]
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

    def _listed(self) -> dict[File, str | None]:
        """What is there, and why it cannot be read where that shows.

        A path that went away has nothing until it is back.
        """
        listed: dict[File, str | None] = {}
        starts = (Path(path) for names in self._local for path in matches(names))
        for found, status, problem in files_at(starts):
            modified = status.st_mtime_ns // 1_000_000 if status else 0
            length = status.st_size if status else 0
            listed[File(f"{LOCAL}{found}", modified, length)] = problem
        if self._paths:
            files = self._list(self._paths)
            if files is None:
                each = (self._list([path]) for path in self._paths)
                files = [file for found in each if found is not None for file in found]
            listed |= dict.fromkeys(files)
        return listed

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


def _reader(spark: SparkSession, form: str, schema: str) -> DataFrameReader:
    """Reads files of rows that have a schema."""
    if form == AVRO:
        return spark.read.format("avro").option("avroSchema", schema)
    checked = spark.read.option("parquet.page.verify-checksum.enabled", "true")
    return checked.format("parquet").schema(schema)


def _rows(reader: DataFrameReader, paths: list[str]) -> DataFrame:
    """The rows of files as lines of JSON, each with its ``source_file``."""
    line = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
    return (
        reader.options(**LOCALLY)
        .load(paths)
        .select(line.alias("value"), F.input_file_name().alias("source_file"))
    )


def _lines(spark: SparkSession, files: list[File]) -> DataFrame:
    """The lines of files as ``value``, each with its ``source_file``.

    A line that is too long is left out without a word, so that Spark never holds it.
    """
    longest = "mapreduce.input.linerecordreader.line.maxlength"
    return (
        spark.read.schema("value string")
        .options(**LOCALLY, **{longest: str(LONGEST_LINE)})
        .text([_literal(file.path) for file in files])
        .withColumn("source_file", F.input_file_name())
    )


def decoded_length(spark: SparkSession, configuration: Any, path: str) -> int:
    """The bytes in a compressed file, which is decoded piece by piece.

    Raises:
        Py4JJavaError: it cannot be read.
    """
    jvm: Any = spark._jvm
    hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
    compress = jvm.org.apache.hadoop.io.compress
    codec = compress.CompressionCodecFactory(configuration).getCodec(hadoop_path)
    file = hadoop_path.getFileSystem(configuration).open(hadoop_path)
    try:
        return int(jvm.org.apache.commons.io.IOUtils.consume(codec.createInputStream(file)))
    finally:
        file.close()


def _form(file: File) -> str:
    """How a file keeps rows of a schema, by its name; empty where it is text."""
    return next((form for form in (AVRO, PARQUET) if file.path.endswith(form)), "")


def _is_compressed(file: File) -> bool:
    return file.path.endswith(COMPRESSED)


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


def _patterns(spark: SparkSession, paths: list[str]) -> list[list[re.Pattern[str] | str]]:
    """Hadoop's patterns name by name, as an asterisk matches within one name only."""
    jvm: Any = spark._jvm
    hadoop = jvm.org.apache.hadoop.fs

    def part(name: str) -> re.Pattern[str] | str:
        if not re.search(r"[*?\[{\\]", name):
            return name
        return re.compile(hadoop.GlobPattern(name).compiled().pattern(), re.DOTALL)

    return [
        [part(name) for name in path.split("/")]
        for pattern in paths
        for path in (hadoop.GlobExpander.expand(pattern) if "{" in pattern else [pattern])
    ]


def _matcher(patterns: list[list[re.Pattern[str] | str]]) -> Callable[[str], bool]:
    """Whether a path matches one of the patterns, or is below a path that does."""

    def is_named(path: str) -> bool:
        names = path.split("/")
        return any(
            len(pattern) <= len(names)
            and all(
                name == part if isinstance(part, str) else part.fullmatch(name)
                for part, name in zip(pattern, names, strict=False)
            )
            for pattern in patterns
        )

    return is_named


def _configuration(spark: SparkSession) -> Any:
    """Hadoop's, as the files are read with it."""
    jvm: Any = spark._jvm
    configuration = jvm.org.apache.hadoop.conf.Configuration(
        spark._jsc.hadoopConfiguration()
    )
    for name, value in LOCALLY.items():
        configuration.set(name, value)
    return configuration
