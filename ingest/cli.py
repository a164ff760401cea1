"""The command line: ``python -m ingest`` files, kafka, retry and status."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from botocore.exceptions import BotoCoreError

from cdc_lakehouse import log, metrics
from cdc_lakehouse.command import STYLE, run, stop_request, version
from cdc_lakehouse.errors import DONE, FAILED, TOO_MUCH_REJECTED, TransientError, UserError
from cdc_lakehouse.serving.manifest import valid_prefix
from cdc_lakehouse.spark.lock import exclusive_lock, only_one_anywhere
from cdc_lakehouse.spark.session import spark_session
from cdc_lakehouse.storage.folders import note_own, require_room
from cdc_lakehouse.storage.place import lake_root
from ingest import stream
from ingest.avro import Schemas
from ingest.batches import Batches
from ingest.bronze import Bronze
from ingest.build import Build, FollowUp
from ingest.failures import explained
from ingest.files import LEDGER, MEBIBYTE, FileReader, occasions
from ingest.kafka import (
    existing_topics,
    next_offsets,
    read_options,
    topic_ids,
    topic_state,
)
from ingest.registry import Registry
from ingest.retry import retry_rejected
from ingest.status import lake_status
from ingest.topics import TOPICS_FILE, Topics, read_topics

LOGGER = logging.getLogger("ingest")


@dataclass(frozen=True)
class Options:
    """What all commands that write bronze take.

    Attributes:
        topics: which topic goes to which table.
        continuous: whether it looks for more until it is stopped.
        interval: the seconds between two looks; None for the source's own.
        metrics_port: the address and the port where Prometheus can ask, or None.
        build: the dbt command after each batch that brought something, or None.
        max_rejected_share: of a batch; with more, the command ends with an exit code.
    """

    topics: Topics
    continuous: bool
    interval: float | None
    metrics_port: tuple[str, int] | None
    build: Build | None
    max_rejected_share: float


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    Returns:
        The exit code (``cdc_lakehouse.command.run``); 3 where everything readable is
        committed, but a file could not be read, or a batch held more rejected records than
        allowed.
    """
    return run(command, arguments)


@click.group("ingest", context_settings=STYLE)
@version
def command() -> None:
    """Bring Debezium change events into the bronze tables."""


def _one_topic(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> str | None:
    """The topic; click by itself takes the last of several."""
    if len(given) > 1:
        raise click.BadParameter("give one topic: it is of all records that name none")
    return given[0] if given else None


def _address(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[str, int] | None:
    """An address and a port."""
    if text is None:
        return None
    address, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise click.BadParameter("give a port from 1 to 65535, or ADDRESS:PORT")
    return address or "127.0.0.1", int(port)


_topic_of_records = click.option(
    "--topic",
    multiple=True,
    callback=_one_topic,
    help="the topic of records that do not name theirs",
)
_kafka_properties = click.option(
    "--options",
    "properties_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Kafka client properties, one `name=value` a line: TLS, SASL, IAM",
)
_registry = click.option(
    "--registry",
    "registry_url",
    metavar="URL",
    help="the schema registry of records in Avro (docs/sources.md); REGISTRY_USER and"
    " REGISTRY_PASSWORD, or REGISTRY_TOKEN, say who asks",
)


def _writes_bronze(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of ``Options``."""
    for option in (
        log.option,
        click.option(
            "--max-rejected-share",
            type=click.FloatRange(0, 1),
            default=0.5,
            help="of a batch; where more of it is no change event, the exit code is 3",
        ),
        click.option(
            "--topics",
            type=click.Path(path_type=Path),
            default=TOPICS_FILE,
            help="which topic goes to which table",
        ),
        click.option(
            "--then-build",
            is_flag=False,
            flag_value="build",
            metavar="[COMMAND]",
            help="run dbt in this process after each batch that brought something: `build`,"
            " or the command given here",
        ),
        click.option(
            "--then-glue",
            metavar="PREFIX",
            callback=valid_prefix,
            help="after each build, register what is new in AWS Glue, in databases that"
            " begin with this: as `cdc-lakehouse glue` does",
        ),
    ):
        function = option(function)
    return function


def _repeats(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--interval",
            type=click.FloatRange(min=0.1),
            metavar="SECONDS",
            help="how often --continuous looks for more; 0.2 s for Kafka, 1 s for paths and"
            " 10 s for URLs where nothing is said. A change below a local folder is seen at"
            " once",
        ),
        click.option(
            "--metrics-port",
            callback=_address,
            metavar="[ADDRESS:]PORT",
            help="answer Prometheus at this port, of 127.0.0.1 where no address is given",
        ),
        click.option(
            "--continuous/--once",
            default=False,
            help="look for more until stopped (Ctrl-C, SIGTERM), or read what is there",
        ),
    ):
        function = option(function)
    return function


@command.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@_topic_of_records
@click.option(
    "--max-bytes",
    type=click.IntRange(min=1),
    default=256 * MEBIBYTE,
    help="how much of the files a batch reads; a compressed file counts ten times",
)
@_repeats
@_writes_bronze
def files(paths: tuple[str, ...], topic: str | None, max_bytes: int, **common: Any) -> int:
    """Read JSON-lines (plain or gzip), Avro or Parquet files of an S3 sink.

    PATH is a file, a folder (with what is below it) or a glob; any URL. A file is read
    again when it has changed, and what bronze has of it is not written twice.
    """
    options = _options(**common)
    if _is_first_load(paths, max_bytes):
        # Longer than the optimising compiler takes.
        os.environ.setdefault("LAKE_JIT_LEVEL", "4")
    seconds = options.interval or (10 if any("://" in path for path in paths) else 1)
    with _batches(options) as batches, stop_request() as stop:
        reader = FileReader(batches, list(paths), topic, max_bytes)
        follow_up = FollowUp(
            batches, options.build, continuous=options.continuous, stop=stop
        )
        is_done = reader.read_new(stop, follow_up.build_if_due)
        if options.continuous and not stop:
            for _ in occasions(paths, seconds, stop):
                if stop:
                    break
                is_done = reader.read_new(stop, follow_up.build_if_due) or is_done
        # What goes on and on has done its work with the first batch.
        is_done = is_done or (options.continuous and batches.tally.read > 0)
        code = _code(batches, follow_up, options)
        if code == DONE and reader.unreadable:
            code = TOO_MUCH_REJECTED
        return code if is_done or code != DONE else stop.exit_code


def _is_first_load(paths: tuple[str, ...], batch: int) -> bool:
    """Whether a lake that has read no files is given more than a batch of bytes.

    Only files and folders of this machine are looked at.
    """
    if Path(lake_root(), LEDGER).exists():
        return False
    given = [Path(path) for path in paths]
    try:
        found = [below for path in given for below in (path, *path.rglob("*"))]
        return sum(path.stat().st_size for path in found if path.is_file()) > batch
    except OSError:  # a sink has just renamed one
        return False


@command.command()
@click.option(
    "--bootstrap-servers", required=True, metavar="HOST:PORT", help="comma-separated"
)
@click.option(
    "--topic",
    "names",
    multiple=True,
    help="a topic to read; without it, all of the topics file that Kafka has",
)
@click.argument("more_names", nargs=-1, metavar="[TOPIC…]")
@_kafka_properties
@_registry
@click.option(
    "--from-earliest",
    is_flag=True,
    help="start with what Kafka has, wherever bronze is: after offsets vanished",
)
@click.option(
    "--max-records",
    type=click.IntRange(min=1),
    default=250_000,
    help="how many a batch reads",
)
@_repeats
@_writes_bronze
def kafka(
    bootstrap_servers: str,
    names: tuple[str, ...],
    more_names: tuple[str, ...],
    properties_file: Path | None,
    registry_url: str | None,
    from_earliest: bool,
    max_records: int,
    **common: Any,
) -> int:
    """Read Kafka topics, straight; `--topic A B` names two."""
    options = _options(**common)
    topics = sorted({*names, *more_names} or options.topics.tables)
    unknown = sorted(set(topics) - options.topics.tables.keys())
    if unknown:
        raise UserError(f"{common['topics']} does not list the topic '{unknown[0]}'")
    registry = None if registry_url is None else Registry(registry_url)
    with ExitStack() as opened:
        batches = opened.enter_context(_batches(options))
        stop = opened.enter_context(stop_request())
        spark = batches.bronze.spark
        properties = read_options(spark, properties_file) if properties_file else {}
        if not (names or more_names):
            topics = _topics_there(spark, bootstrap_servers, topics, properties)
        checkpoint, starts = _kafka_start(
            batches, bootstrap_servers, topics, properties, from_earliest=from_earliest
        )
        batches.ask_topic_ids = opened.enter_context(
            topic_ids(spark, bootstrap_servers, topics, properties)
        )
        records = stream.kafka_records(
            spark, bootstrap_servers, starts, properties, max_records
        )
        seconds = (options.interval or 0.2) if options.continuous else None
        follow_up = FollowUp(
            batches, options.build, continuous=options.continuous, stop=stop
        )
        schemas = None if registry is None else Schemas(spark, registry)
        query = stream.start(
            records, batches, schemas, stop, checkpoint, seconds, follow_up.wait_for_build
        )

        def follow() -> None:
            table_of = options.topics.tables
            progress = query.lastProgress
            if progress:
                waiting = set(topics) - stream.complete_topics(progress)
                lacking = {table_of[topic] for topic in waiting}
                complete = {table_of[topic] for topic in topics} - lacking
                metrics.note_complete(complete, stream.last_batch(progress))
            # Not before the first batch. Spark reports its progress after its build.
            if progress or batches.has_ended():
                follow_up.build_if_due()

        is_done = stream.wait(query, stop, follow)
        # What goes on and on has done its work with the first batch.
        is_done = is_done or (options.continuous and query.lastProgress is not None)
        follow_up.build_if_due()
        code = _code(batches, follow_up, options)
        return code if is_done or code != DONE else stop.exit_code


def _topics_there(
    spark: Any, bootstrap_servers: str, topics: list[str], properties: dict[str, str]
) -> list[str]:
    """The topics that Kafka has; the others are warned of.

    Raises:
        TransientError: it has none of them.
    """
    found = existing_topics(spark, bootstrap_servers, topics, properties)
    if not found:
        raise TransientError(
            f"Kafka at {bootstrap_servers} has no topic that the topics file lists:"
            f" {', '.join(topics)}"
        )
    if missing := sorted({*topics} - {*found}):
        LOGGER.warning("not in Kafka yet, and not read: %s", ", ".join(missing))
    return found


def _kafka_start(
    batches: Batches,
    bootstrap_servers: str,
    topics: list[str],
    properties: dict[str, str],
    *,
    from_earliest: bool,
) -> tuple[str, dict[str, dict[int, int]]]:
    """The query's checkpoint, and where to start if it is not there.

    A checkpoint is of one set of topics: with another set, or without it, reading goes
    on at the offsets that bronze itself has in its commits. Both say nothing about a
    topic that was recreated since: it is read from its start.
    """
    bronze = batches.bronze
    digest = hashlib.sha256("\n".join(topics).encode()).hexdigest()[:12]
    folder = f"{lake_root()}/checkpoints/kafka"
    state = topic_state(bronze.spark, bootstrap_servers, topics, properties)
    bronze.topic_ids = state.ids
    is_anew = any(batches.is_recreated(topic) for topic in topics)
    known = [] if from_earliest or is_anew else [digest]
    has_checkpoint = stream.keep_only(bronze.spark, folder, known)
    read_to: dict[str, int] = {}
    for topic in topics if not has_checkpoint and not from_earliest else []:
        for mark in batches.marks_of(topic):
            if mark.topic_ids.get(topic, state.ids[topic]) == state.ids[topic]:
                for place, offset in mark.read_to.items():
                    if place.rpartition("/")[0] == topic:
                        read_to[place] = max(offset, read_to.get(place, 0))
    return f"{folder}/{digest}", next_offsets(state, read_to)


@command.command("retry")
@_topic_of_records
@_registry
@_writes_bronze
def retry(topic: str | None, registry_url: str | None, **common: Any) -> int:
    """Read the quarantine again, after a correction of the configuration.

    What is a change event now goes to its table and leaves bronze.rejected_events.
    """
    options = _options(continuous=False, interval=None, metrics_port=None, **common)
    registry = None if registry_url is None else Registry(registry_url)
    with _batches(options) as batches:
        schemas = None if registry is None else Schemas(batches.bronze.spark, registry)
        retry_rejected(batches.bronze, batches, topic, schemas)
        follow_up = FollowUp(batches, options.build, continuous=False)
        follow_up.build_if_due()
        return _code(batches, follow_up, options)


@command.command()
@click.option("--json", "as_json", is_flag=True, help="as one JSON object")
@click.option(
    "--bootstrap-servers", metavar="HOST:PORT", help="ask Kafka how many records wait there"
)
@_kafka_properties
def status(
    as_json: bool, bootstrap_servers: str | None, properties_file: Path | None
) -> None:
    """Say how far the lake has come; without --bootstrap-servers, in a second."""
    try:
        found = lake_status(lake_root())
    except PermissionError:
        raise
    except (OSError, BotoCoreError) as error:
        raise TransientError(f"cannot read {lake_root()}: {error}") from error
    if bootstrap_servers is not None:
        with explained():
            spark = spark_session(has_catalogue=False)
            properties = read_options(spark, properties_file) if properties_file else {}
            topics = existing_topics(spark, bootstrap_servers, found.topics, properties)
            found.note_lag(topic_state(spark, bootstrap_servers, topics, properties))
    print(found.as_json() if as_json else "\n".join(map(log.quoted, found.lines())))


def _options(
    topics: Path,
    then_build: str | None,
    then_glue: str | None,
    *,
    continuous: bool,
    **options: Any,
) -> Options:
    if then_glue is not None and then_build is None:
        raise click.UsageError("--then-glue follows a build: give --then-build, too")
    glue = None
    if then_glue is not None:
        # Not above: it imports boto3, which takes a third of a second.
        from ingest.glue import Glue

        glue = Glue(then_glue)
    build = None if then_build is None else Build(then_build, retries=continuous, glue=glue)
    return Options(
        topics=read_topics(topics), build=build, continuous=continuous, **options
    )


@contextmanager
def _batches(options: Options) -> Iterator[Batches]:
    """What writes the lake's bronze tables, which are there then; the only one."""
    if options.continuous:
        # A process that stays has the time that the optimising compiler takes.
        os.environ.setdefault("LAKE_JIT_LEVEL", "4")
    if options.metrics_port is not None:
        metrics.serve(*options.metrics_port)
    lake = lake_root()
    require_room(lake)
    with exclusive_lock(lake, "ingest"), explained():
        note_own(lake, "warehouse", "checkpoints")
        if options.build is not None:
            options.build.parse_ahead()
        # By itself it needs no metastore, so that it runs while another process builds.
        with log.step(LOGGER, "starting Spark"):
            spark = spark_session(has_catalogue=options.build is not None)
        if options.build is not None:
            options.build.open_ahead(spark)
        bronze = Bronze(spark, f"{lake}/warehouse")
        batches = Batches(bronze, options.topics, LOGGER, continuous=options.continuous)
        with only_one_anywhere(spark, lake, "ingest"):
            with log.step(LOGGER, "creating the bronze tables that are missing"):
                batches.create_missing()
            yield batches


def _code(batches: Batches, follow_up: FollowUp, options: Options) -> int:
    """Say what was done; the exit code of it."""
    tally = batches.tally
    for _, found in sorted(tally.reasons.items()):
        batches.log.warning(
            "rejected %d: %s", found.count, found, extra={"records": found.count}
        )
    print(
        f"read {tally.read} records, wrote {tally.written} events, "
        f"rejected {tally.rejected}, skipped {tally.skipped}",
        flush=True,
    )
    if batches.refused:
        return FAILED
    if follow_up.code != DONE:
        return follow_up.code
    if tally.worst_share > options.max_rejected_share:
        batches.log.error(
            "%s of a batch was rejected, more than the %s allowed; the good records are"
            " committed, the others are in bronze.rejected_events",
            f"{tally.worst_share:.0%}",
            f"{options.max_rejected_share:.0%}",
        )
        return TOO_MUCH_REJECTED
    return DONE
