"""The command line: ``python -m connectors``."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click
import yaml

from connectors.declare.catalogue import (
    Catalogue,
    Table,
    quoted,
    read_mariadb,
    read_postgresql,
)
from connectors.declare.connector import Connector
from connectors.declare.difference import (
    CHANGEABLE,
    Difference,
    Modelled,
    differences,
    holds,
    modelled_tables,
    undecided,
)
from connectors.declare.edits import change_model
from connectors.declare.project import Project
from connectors.declare.publication import unsent
from connectors.declare.resync import request
from connectors.declare.resync import resync as read_again
from lake.command import STYLE, run, version
from lake.errors import DONE, UserError

DIFFERENT = 3
UNAVAILABLE = "cdc_lakehouse_unavailable_value"
CONNECTOR = "connectors/source-tables.json"


@click.group("connectors", context_settings=STYLE)
@version
def command() -> None:
    """Declare a source's tables, as its own catalogue describes them.

    PostgreSQL is asked where PGHOST, PGPORT, PGDATABASE, PGUSER and PGPASSWORD say, MariaDB
    and MySQL where MYSQL_HOST, MYSQL_TCP_PORT, MYSQL_USER and MYSQL_PWD say.
    """


connector_option = click.option(
    "--connector",
    "connector_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    default=Path(CONNECTOR),
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


@command.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@connector_option
@project_option
@topics_option
@click.option("--as", "name", metavar="NAME", help="What one table is called here.")
@click.option("--dry-run", is_flag=True, help="Print a diff; write nothing.")
def add(
    tables: tuple[str, ...],
    connector_file: Path,
    project_dir: Path,
    topics: Path | None,
    name: str | None,
    dry_run: bool,
) -> None:
    """Declare tables: topic, dbt source, models, rejected rows, the connector's list.

    TABLE is public.vendors, a pattern such as 'public.*', or a schema. Names that the
    project has are kept: a second run changes nothing.
    """
    project = Project(project_dir, topics)
    connector = Connector(connector_file)
    connector.require_placeholder(project.variable(UNAVAILABLE))
    catalogue = read_catalogue(connector)
    found = [
        table
        for table in catalogue.matching(tables)
        if not connector.is_auxiliary(str(table))
    ]
    if not found:
        raise UserError(f"{', '.join(tables)}: tables of resync only, which are no data")
    if name is not None and len(found) > 1:
        raise UserError(f"--as names one table, and {', '.join(tables)} are {len(found)}")
    wrong: list[str] = []
    for table in found:
        try:
            project.add(connector.declaration(table, name), connector.topic(str(table)))
            connector.capture(project, str(table))
            connector.require_own_topic(table, catalogue)
        except UserError as error:
            wrong.append(str(error))
    if wrong:
        raise UserError("\n".join([*wrong, "nothing was written"]))
    if dry_run:
        click.echo(project.diff(), nl=False)
    else:
        for file in project.save():
            click.echo(f"wrote {file}")
    for statement in statements(connector, catalogue, found):
        click.echo(statement)


@command.command()
@click.option(
    "--connector",
    "connector_files",
    type=click.Path(path_type=Path),
    metavar="FILE",
    default=[Path(CONNECTOR)],
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
            " python -m connectors resync TABLE (docs/runbook.md)",
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
            change_model(project, model, own, connector.declaration(table), its_names)
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
    build = ["dbt build --profiles-dir profiles"]
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
            words = ["python -m connectors resync", shlex.quote(table), *options]
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


@command.command()
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


def read_catalogue(connector: Connector) -> Catalogue:
    """What the source of a connector has."""
    if connector.database == "postgresql":
        return read_postgresql()
    return read_mariadb()


def statements(
    connector: Connector, catalogue: Catalogue, tables: list[Table]
) -> list[str]:
    """What is to be run at the source, so that Debezium captures tables."""
    gaps = list(unsent(connector, catalogue, tables))
    found = [comment(str(gap)) for gap in gaps if not gap.remedy]
    if remedies := [gap.remedy for gap in gaps if gap.remedy]:
        found += ["-- as the tables' owner, on the source:", *remedies]
    publication = catalogue.publications.get(connector.publication or "")
    new = [
        each for each in tables if not publication or str(each) not in publication.tables
    ]
    if connector.publication and new:
        names = ", ".join(quoted(table.schema, table.name) for table in new)
        schemas = ", ".join(sorted({quoted(table.schema) for table in new}))
        found += [
            f"grant usage on schema {schemas} to {quoted(connector.user)};",
            f"grant select on {names} to {quoted(connector.user)};",
        ]
    for table in tables:
        declared = connector.declaration(table)
        carried = {declared.source_names.get(own, own) for own in declared.columns}
        carried -= set(table.key)
        kept = [
            each.name
            for each in table.columns
            if each.name in carried and table.leaves_out(each)
        ]
        if kept:
            found += [
                comment(f"{table}: an event lacks a long value that did not change, of"),
                comment(f"{', '.join(kept)}; silver keeps the one that it has."),
                "-- For events with the whole row:",
                *(
                    f"alter table {each.quoted_table} replica identity full;"
                    for each in table.identities
                    if each.kind != "f"
                ),
            ]
    return found


def comment(text: str) -> str:
    """A comment of SQL, which ends with its line."""
    return f"-- {' '.join(text.split())}"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; its exit code."""
    return run(command, arguments)


if __name__ == "__main__":
    sys.exit(main())
