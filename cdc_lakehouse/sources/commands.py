"""Tables as the source's own catalogue describes them: ``add``, ``diff``, ``resync``."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click
import yaml

from cdc_lakehouse import log
from cdc_lakehouse.command import STYLE, complain, version
from cdc_lakehouse.dbt.package import profiles_option
from cdc_lakehouse.errors import DONE, UserError
from cdc_lakehouse.sources.catalogue import Table
from cdc_lakehouse.sources.connector import Connector, read_catalogue
from cdc_lakehouse.sources.difference import (
    CHANGEABLE,
    Difference,
    Modelled,
    differences,
    holds,
    modelled_tables,
    names_here,
    undecided,
)
from cdc_lakehouse.sources.edits import change_model
from cdc_lakehouse.sources.models import own_name
from cdc_lakehouse.sources.preparation import preparation
from cdc_lakehouse.sources.project import Project
from cdc_lakehouse.sources.publication import unsent
from cdc_lakehouse.sources.resync import request
from cdc_lakehouse.sources.resync import resync as read_again

DIFFERENT = 3
UNAVAILABLE = "cdc_lakehouse_unavailable_value"
CONNECTORS = (Path("connectors/source.json"), Path("connectors/source-tables.json"))
SOURCE = (
    "PostgreSQL is asked where PGHOST, PGPORT, PGDATABASE, PGUSER and PGPASSWORD say,"
    " MariaDB and MySQL where MYSQL_HOST, MYSQL_TCP_PORT, MYSQL_USER and MYSQL_PWD say."
)


def _connector_file(
    context: click.Context, option: click.Parameter, given: Path | None
) -> Path:
    """The file that is given; by default that of ``init``, or Northwind's tables'."""
    return given or next(filter(Path.exists, CONNECTORS), CONNECTORS[0])


connector_option = click.option(
    "--connector",
    "connector_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    callback=_connector_file,
    show_default=" or ".join(map(str, CONNECTORS)),
    help="The configuration of the connector that captures the tables.",
)
project_option = click.option(
    "--project-dir",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    default=Path(),
    help="The dbt project: this one, or one that uses it as a package.",
)


topics_option = click.option(
    "--topics",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The topics file, where it is not the project's own.",
)


@click.command("add", context_settings=STYLE, epilog=SOURCE)
@version
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@connector_option
@project_option
@topics_option
@click.option("--as", "name", metavar="NAME", help="What one table is called here.")
@click.option(
    "--prefix", metavar="TEXT", default="", help="What all names here begin with."
)
@click.option(
    "--exclude", metavar="TABLE", multiple=True, help="A table, or a pattern, to leave out."
)
@click.option(
    "--column",
    "column_names",
    metavar="COLUMN=NAME",
    multiple=True,
    help="What a column is called here, where that is not the source's name in lower case"
    " with _ for what is no letter of a to z, digit or underscore.",
)
@click.option("--dry-run", is_flag=True, help="Print a diff; write nothing.")
def add(
    tables: tuple[str, ...],
    connector_file: Path,
    project_dir: Path,
    topics: Path | None,
    name: str | None,
    prefix: str,
    exclude: tuple[str, ...],
    column_names: tuple[str, ...],
    dry_run: bool,
) -> int:
    """Declare tables: topic, dbt source, models, rejected rows, the connector's list.

    TABLE is public.vendors, a pattern such as 'public.*', or a schema. Names that the
    project has are kept: a second run changes nothing. A table that cannot be declared
    stops no other: it is named with the reason, and the exit code is 3, or 1 where there
    is no other.
    """
    project = Project(project_dir, topics)
    connector = Connector(connector_file)
    connector.require_placeholder(project.variable(UNAVAILABLE))
    catalogue = read_catalogue(connector)
    left_out = set(map(str, catalogue.matching(exclude)))
    found = [
        table
        for table in catalogue.matching(tables)
        if not connector.is_auxiliary(str(table)) and str(table) not in left_out
    ]
    if not found:
        raise UserError(f"{', '.join(tables)}: no tables but those of resync or --exclude")
    if name is not None and len(found) > 1:
        raise UserError(f"--as names one table, and {', '.join(tables)} are {len(found)}")
    names = _column_names(column_names, found)
    added: list[Table] = []
    wrong: list[str] = []
    for table in found:
        before = project.noted(), connector.noted()
        try:
            own = name or prefix + own_name(table.name)
            topic = connector.topic(str(table))
            if not project.has(topic):  # or its columns have names of their own
                project.add(connector.declaration(table, own, names), topic)
            connector.capture(project, str(table))
            connector.require_own_topic(table, catalogue)
        except UserError as error:
            project.restore(before[0])
            connector.restore(before[1])
            # A name of the source's may have lines of its own.
            wrong.append(log.quoted(str(error)))
        else:
            added.append(table)
    if not added:
        raise UserError("\n".join([*wrong, "nothing was written"]))
    if dry_run:
        click.echo(project.diff(), nl=False)
    else:
        for file in project.save():
            click.echo(f"wrote {file}", err=True)
    for statement in preparation(connector, catalogue, added):
        click.echo(statement)
    for reason in wrong:
        complain(reason)
    return DIFFERENT if wrong else DONE


def _column_names(given: Sequence[str], tables: Sequence[Table]) -> dict[str, str]:
    """The names that ``--column`` gives, by the source's.

    Raises:
        UserError: no table has such a column, or a name is none.
    """
    known = {each.name for table in tables for each in table.columns}
    names: dict[str, str] = {}
    for text in given:
        column, _, own = text.rpartition("=")
        if column not in known:
            raise UserError(f"--column {text}: the tables have no column {column!r}")
        if own_name(own) != own:
            raise UserError(
                f"--column {text}: a name here is lower-case letters of a to z, digits and"
                " underscores, and is not taken by a column of the package"
            )
        names[column] = own
    return names


@click.command("diff", context_settings=STYLE, epilog=SOURCE)
@version
@click.option(
    "--connector",
    "connector_files",
    type=click.Path(path_type=Path),
    metavar="FILE",
    callback=lambda context, option, given: (
        given or [_connector_file(context, option, None)]
    ),
    show_default=" or ".join(map(str, CONNECTORS)),
    multiple=True,
    help="A connector's configuration; several of one source may be given.",
)
@project_option
@topics_option
@click.option(
    "--vars", "variables", metavar="YAML", default="{}", help="dbt's, which enable models."
)
@click.option("--json", "as_json", is_flag=True, help="Print the differences as JSON.")
@click.option("--apply", "is_applied", is_flag=True, help="Change the models' columns.")
@click.option(
    "--renamed",
    metavar="TABLE.OLD=NEW",
    multiple=True,
    help="A column that was renamed at the source: NEW keeps the values of OLD.",
)
@click.option(
    "--dropped",
    metavar="TABLE.COLUMN",
    multiple=True,
    help="A column that was dropped at the source, beside new ones.",
)
def diff(
    connector_files: tuple[Path, ...],
    project_dir: Path,
    topics: Path | None,
    variables: str,
    as_json: bool,
    is_applied: bool,
    renamed: tuple[str, ...],
    dropped: tuple[str, ...],
) -> int:
    """Compare the models with the source's catalogue; exit code 3 where they differ.

    A model's column whose type holds more than the source's is no difference. TABLE.OLD is
    a column as the differences name it.
    """
    if (renamed or dropped) and not is_applied:
        raise click.UsageError("--renamed and --dropped are for --apply")
    project = Project(project_dir, topics)
    connectors = [Connector(file) for file in connector_files]
    if len({each.database for each in connectors}) > 1:
        raise UserError("the connectors read different databases: compare one at a time")
    given: dict[str, str] = yaml.safe_load(variables) or {}
    for connector in connectors:
        connector.require_placeholder(given.get(UNAVAILABLE, project.variable(UNAVAILABLE)))
    catalogue = read_catalogue(connectors[0])
    models = project.staging_models(variables)
    modelled = modelled_tables(models, project.tables(), connectors, catalogue)
    found = differences(modelled, connectors, catalogue)
    gaps: list[Difference] = []
    for connector in connectors:
        captured = [
            table
            for table in catalogue.tables
            if str(table) in modelled and connector.captures(str(table))
        ]
        gaps += unsent(connector, catalogue, captured)
    found += gaps
    if as_json:
        click.echo(json.dumps([asdict(each) for each in found], indent=2))
    else:
        for each in found:
            click.echo(str(each))
    if gaps:
        click.echo(
            "what was not sent is missing here until it is, and the table is read again:"
            " cdc-lakehouse resync TABLE (docs/runbook.md)",
            err=True,
        )
    new_names = renames(found, renamed, dropped)
    questions = undecided(found, new_names, dropped)
    for question in questions.values():
        click.echo(question, err=as_json)
    if not is_applied:
        return DIFFERENT if found else DONE
    changes: dict[str, list[Difference]] = {}
    for each in found:
        if each.kind in CHANGEABLE and each.table not in questions:
            changes.setdefault(each.table, []).append(each)
    for table in catalogue.tables:
        if own := changes.get(str(table)):
            model, connector = modelled[str(table)]
            its_names = {
                each.column: new_names[f"{table}.{each.column}"]
                for each in own
                if f"{table}.{each.column}" in new_names
            }
            names = names_here(table, model, connector)
            declared = connector.declaration(table, names=names)
            change_model(project, model, own, declared, its_names)
    for file in project.save():
        click.echo(f"wrote {file}", err=as_json)
    for line in rebuilds(changes, modelled, new_names, project_dir, topics):
        click.echo(line, err=as_json)
    return DONE if len(found) == sum(map(len, changes.values())) else DIFFERENT


def renames(
    found: Sequence[Difference], renamed: Sequence[str], dropped: Sequence[str]
) -> dict[str, str]:
    """The new name of each renamed column, ``schema.table.column``.

    Raises:
        UserError: a column that the user names is not one that was dropped, or is new.
    """
    gone = {
        f"{each.table}.{each.column}" for each in found if each.kind == "dropped column"
    }
    new = {f"{each.table}.{each.column}" for each in found if each.kind == "new column"}
    names: dict[str, str] = {}
    for text in (*renamed, *(f"{each}=" for each in dropped)):
        old, _, name = text.rpartition("=")
        table = next(
            (each.table for each in found if old == f"{each.table}.{each.column}"), ""
        )
        if old not in gone or (name and f"{table}.{name}" not in new):
            raise UserError(
                f"{text.rstrip('=')}: not a dropped column"
                + (" and a new one" if name else "")
                + f"; dropped: {', '.join(sorted(gone)) or 'none'}; new:"
                f" {', '.join(sorted(new)) or 'none'}"
            )
        if name in (its for each, its in names.items() if each.startswith(f"{table}.")):
            raise UserError(f"{text}: two columns would be called {name}")
        names |= {old: name} if name else {}
    return names


def rebuilds(
    changes: Mapping[str, Sequence[Difference]],
    modelled: Modelled,
    new_names: Mapping[str, str],
    project_dir: Path,
    topics: Path | None,
) -> list[str]:
    """What gives rows that have not changed since the values of the source."""
    place = [] if project_dir == Path() else ["--project-dir", str(project_dir)]
    build = ["dbt build"]
    if profiles_option(project_dir):  # a project of `init` has them beside its settings
        build.append("--profiles-dir profiles")
    found, models = [], {False: set[str](), True: set[str]()}
    for table, own in changes.items():
        model, connector = modelled[table]
        by_name = {each.column: each for each in own}
        renamed = {
            name: holds(by_name[name].source, by_name[old].declared)
            for old in by_name
            if (name := new_names.get(f"{table}.{old}")) is not None
        }
        changed = [
            each.column
            for each in own
            if (not renamed[each.column] if each.column in renamed else each.needs_resync)
        ]
        models[bool(changed)].add(f"{model.name}+")
        if not changed:
            continue
        found.append(
            f"# {table}: in rows that have not changed since, {', '.join(changed)} may have"
            " values that no event brought. Read the table again, ingest, then build:"
        )
        if connector.database == "postgresql":
            options = ["--connector", str(connector.file), *place]
            options += [] if topics is None else ["--topics", str(topics)]
            words = ["cdc-lakehouse resync", shlex.quote(table), *options]
            found.append(" ".join(words))
        else:
            found.append(
                "# by a snapshot that you name as complete (docs/runbook.md, A complete"
                " snapshot, named by hand)"
            )
    if models[True]:
        found.append(" ".join([*build, "--select", *sorted(models[True]), *place]))
    if models[False]:
        words = [*build, "--full-refresh --select", *sorted(models[False]), *place]
        found.append(" ".join(words))
    return found


@click.command("resync", context_settings=STYLE, epilog=SOURCE)
@version
@click.argument("table")
@connector_option
@project_option
@topics_option
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    default=120,
    help="How long to wait without a sign of Debezium.",
)
def resync(
    table: str,
    connector_file: Path,
    project_dir: Path,
    topics: Path | None,
    timeout: float,
) -> None:
    """Have Debezium read TABLE again; the next build deletes the rows that it lacks.

    Changes of the connector's tables wait in its slot meanwhile, and follow.
    """
    connector = Connector(connector_file)
    wanted = request(connector, Project(project_dir, topics), table)
    begin = time.monotonic()
    read_again(connector, wanted, timeout, lambda said: click.echo(said, err=True))
    click.echo(
        f"{table}: read in {time.monotonic() - begin:.0f} s; once bronze has it, a build"
        f" updates the models of bronze.{wanted.bronze}"
    )
