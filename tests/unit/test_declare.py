"""`cdc-lakehouse add` and `diff` on a copy of the project, without a server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from cdc_lakehouse.cli import main
from cdc_lakehouse.sources import commands as command
from cdc_lakehouse.sources.catalogue import (
    Catalogue,
    Column,
    Identity,
    Publication,
    Published,
    Table,
)
from cdc_lakehouse.sources.difference import holds
from cdc_lakehouse.sources.models import EVENT_COLUMNS, own_name, position_columns
from cdc_lakehouse.sources.project import Project
from tests.support.project import PROJECT, copy_project

CONNECTOR = "connectors/source-tables.json"
VENDORS = Table(
    "shop",
    "vendors",
    (
        Column("vendor_id", "integer", is_nullable=False),
        Column("company_name", "character varying(40)", is_nullable=False),
        Column("credit_limit", "numeric(12,2)", comment="In euros: at most."),
        Column("notes", "text", comment="'{{ x }}' # is no template", is_toasted=True),
        Column("Op", '"char"'),
        Column("topic", "text"),
        Column("total", "numeric(12,2)", is_computed=True),
    ),
    ("vendor_id",),
    "Who sells to us",
    has_full_identity=False,
    identities=(Identity("shop.vendors", "d", None, ("vendor_id",)),),
)
LINES = Table(
    "shop",
    "lines",
    (Column("order_id", "integer"), Column("product_id", "integer")),
    ("order_id", "product_id"),
)
ID = Column("id", "integer", is_nullable=False)
SUM = Column("sum", "integer", is_nullable=False, is_computed=True)
# Columns whose unchanged long values Debezium sends as null, but for the last.
ARRAYS = Table(
    "shop",
    "arrays",
    (
        Column("id", "integer"),
        Column("prices", "numeric(10,2)[]", is_toasted=True),
        Column("flags", "bit varying", is_toasted=True),
        Column("labels", "text[]", is_toasted=True, is_domain=True),
        Column("mask", "bit varying(12)"),
        Column("tags", "text[]", is_toasted=True),
    ),
    ("id",),
    has_full_identity=False,
)
Run = Callable[..., int]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy whose topics no sink takes, as where Kafka is read straight."""
    project = copy_project(tmp_path / "project")
    for sink in (project / "connectors").glob("sink*.json"):
        sink.unlink()
    return project


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """What the source is said to have, and to publish unless a test says what."""
    found = Catalogue([VENDORS, LINES])

    def read(connector: object) -> Catalogue:
        published = dict.fromkeys(map(str, found.tables), Published())
        whole = {"datalake": Publication(published)}
        return replace(found, publications=found.publications or whole)

    monkeypatch.setattr(command, "read_catalogue", read)
    return found


@pytest.fixture
def run(project: Path, catalogue: Catalogue) -> Run:
    def call(*arguments: str, folder: Path = project) -> int:
        connector = ("--connector", str(project / CONNECTOR))
        place = ("--project-dir", str(folder))
        return main([*arguments, *connector, *place])

    return call


def texts(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): file.read_text(encoding="utf-8")
        for file in sorted(folder.rglob("*"))
        if file.suffix in (".sql", ".yml", ".toml", ".json")
        and file.relative_to(folder).parts[0] != "target"
    }


def test_add_writes_what_a_table_needs(
    run: Run, project: Path, catalogue: Catalogue, capsys: pytest.CaptureFixture[str]
) -> None:
    before = texts(project)
    catalogue.publications["datalake"] = Publication({"shop.lines": Published()})
    assert run("add", "shop.vendors", "shop.lines") == 0
    said = capsys.readouterr().out
    after = texts(project)
    added = {
        f"models/{layer}{name}.{ending}"
        for layer in ("staging/stg_", "silver/")
        for name in ("vendors", "lines")
        for ending in ("sql", "yml")
    }
    assert after.keys() - before.keys() == added
    # Of what was there, lines are added, and the connector's list is longer.
    changed = {file for file in before if before[file] != after[file]}
    assert changed == {
        CONNECTOR,
        "topics.toml",
        "models/silver/rejected_rows.sql",
        "models/staging/_sources.yml",
    }
    for file in changed - {CONNECTOR}:
        kept = iter(after[file].splitlines())
        assert all(line in kept for line in before[file].splitlines()), file
    listed = json.loads(after[CONNECTOR])["table.include.list"]
    assert listed.endswith(
        "datalake.territories,shop.vendors,shop.lines,datalake.complete_snapshots"
    )
    assert (
        '"demo.shop.vendors" = "vendors"\n"demo.shop.lines" = "lines"\n\n'
        in after["topics.toml"]
    )
    assert (
        "\n    ref('stg_vendors'),\n    ref('stg_lines'),\n]"
        in after["models/silver/rejected_rows.sql"]
    )
    assert "alter publication datalake add table shop.vendors;\n" in said
    assert "grant select on shop.vendors to debezium;\n" in said
    assert "alter table shop.vendors replica identity full;\n" in said


def test_models_are_as_somebody_would_write_them(run: Run, project: Path) -> None:
    assert run("add", "shop") == 0
    models = project / "models"
    assert (
        (models / "staging/stg_vendors.sql").read_text()
        == """\
{{ config(meta={
    'key': 'vendor_id',
    'columns': {
        'vendor_id': 'int',
        'company_name': 'string',
        'credit_limit': 'decimal(12,2)',
        'notes': 'string',
        'source_op': 'string',
        'source_topic': 'string',
    },
    'source_names': {
        'source_op': 'Op',
        'source_topic': 'topic',
    },
    'ignored_fields': ['total'],
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'vendors')) }}
"""
    )
    assert (
        (models / "staging/stg_lines.sql")
        .read_text()
        .startswith(
            "{{ config(meta={\n    'key': 'lines_key',\n"
            "    'key_columns': ['order_id', 'product_id'],\n"
        )
    )
    assert (models / "silver/lines.sql").read_text() == (
        "{{ config(unique_key='lines_key') }}\n\n"
        "{{ cdc_lakehouse.current_rows(ref('stg_lines')) }}\n"
    )
    (described,) = yaml.safe_load((models / "silver/vendors.yml").read_text())["models"]
    columns = {each["name"]: each for each in described["columns"]}
    assert described["description"].startswith("Who sells to us. Current version")
    assert columns["vendor_id"]["data_tests"] == ["unique", "not_null"]
    assert columns["credit_limit"]["description"] == "In euros: at most."
    assert columns["notes"]["description"] == "'{ { x }}' # is no template"
    assert set(position_columns()) < set(columns)
    assert columns["untyped_columns"]["data_tests"] == ["cdc_lakehouse.no_untyped_values"]


def test_second_run_changes_nothing(
    run: Run, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("add", "shop.*") == 0
    before = texts(project)
    capsys.readouterr()
    assert run("add", "shop.*") == 0
    assert texts(project) == before
    assert "wrote" not in capsys.readouterr().out


def test_dry_run_prints_a_diff_and_writes_nothing(
    run: Run, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = texts(project)
    assert run("add", "shop.vendors", "--dry-run") == 0
    said = capsys.readouterr().out
    assert texts(project) == before
    patched = subprocess.run(
        ["git", "apply", "--check", "-"],
        cwd=project,
        input=said.partition("-- shop.vendors")[0],
        text=True,
        capture_output=True,
    )
    assert (patched.returncode, patched.stderr) == (0, "")
    assert '+"demo.shop.vendors" = "vendors"' in said


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (replace(VENDORS, key=()), "shop.vendors has no primary key"),
        (replace(VENDORS, name="products"), "the name products is taken in models/silver"),
        (replace(VENDORS, name="Lines"), "the name lines is taken in models/silver"),
        (replace(VENDORS, name="rejected_events"), "the name rejected_events is reserved"),
        (
            replace(VENDORS, name="Línes"),
            "shop.Lïnes: shop.Línes has the same topic demo.shop.L_nes",
        ),
        (
            replace(VENDORS, columns=(*VENDORS.columns, Column("found", "tsquery"))),
            "found (tsquery): no type to declare for 'tsquery'",
        ),
        (
            replace(VENDORS, columns=(*VENDORS.columns, Column("b", "box"))),
            "b (box): type 'box' is not in cdc_lakehouse/sources/types/postgresql.toml",
        ),
        (
            replace(LINES, name="sums", key=("id", "sum"), columns=(ID, SUM)),
            "shop.sums: sum, which is of its key, is generated",
        ),
        (
            replace(VENDORS, columns=(*VENDORS.columns, Column("NOTES", "text"))),
            "two columns would be called notes",
        ),
        (
            ARRAYS,
            "prices (numeric(10,2)[]), flags (bit varying), labels (text[]): alter table",
        ),
    ],
)
def test_table_that_cannot_be_declared_stops_no_other(
    run: Run,
    project: Path,
    catalogue: Catalogue,
    capsys: pytest.CaptureFixture[str],
    table: Table,
    message: str,
) -> None:
    """It is named with the reason, and changes nothing, by itself or beside others."""
    before = texts(project)
    catalogue.tables[:] = [LINES, replace(LINES, schema="other"), table]
    catalogue.tables += [replace(LINES, name="Lïnes")] if table.name == "Línes" else []
    if table.name not in ("Lines", "Línes"):  # which need another table
        assert run("add", str(table)) == 1
        said = capsys.readouterr().err
        assert message in said and said.endswith("nothing was written\n")
        assert texts(project) == before
    assert run("add", "shop") == 3
    said = capsys.readouterr().err
    assert message in said and "nothing was written" not in said
    beside = texts(project)
    assert "models/silver/lines.sql" in beside
    assert run("add", "shop.lines") == 0
    assert texts(project) == beside


@pytest.mark.parametrize("name", ["q); --", "../x", "a b", "{{ 1 }}", "Ü", "__"])
def test_name_that_is_none_is_refused(
    name: str, run: Run, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = texts(project)
    assert run("add", "shop.vendors", "--as", name) == 1
    assert "is no name of a table here" in capsys.readouterr().err
    assert texts(project) == before


def test_topic_that_no_sink_takes_is_named(
    run: Run, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = project / "connectors/sink.json"
    sink.write_text(json.dumps({"topics": "demo.shop.lines, demo.other"}))
    assert run("add", "shop") == 0
    said = "shop.vendors: topic in no sink (source demo.shop.vendors)"
    assert f"-- {said}\n" in capsys.readouterr().out
    assert run("diff") == 3
    assert f"{said}\n" in capsys.readouterr().out
    sink.write_text(json.dumps({"topics.regex": r"demo\.shop\..*"}))
    assert run("diff") == 3 and said not in capsys.readouterr().out
    sink.write_text('{"topics.regex": "("}')
    assert run("diff") == 1
    assert "cannot read the sink" in capsys.readouterr().err


ODD = [
    Table("shop", name, (ID, *(Column(each, "text") for each in columns)), key)
    for name, columns, key in [
        ("switches", ("no", "on"), ("id",)),
        ("null", (), ("id",)),
        ("api", ("api_key", "api_key_key"), ("id", "api_key")),
        ("Kunden.Übersicht, alle", ("Größe",), ("id",)),
        ('l{{ env_var("HOME") }}', ('c{{ env_var("HOME") }}', "# no: [comment"), ("id",)),
    ]
]


def test_nothing_of_a_catalogue_is_taken_for_code(
    run: Run, project: Path, catalogue: Catalogue
) -> None:
    """Words of YAML, Jinja, names that are no names here; what is written is parsed."""
    catalogue.tables[:] = [
        replace(each, comment='{{ env_var("HOME") }}: \x07\'#') for each in ODD
    ]
    file = project / CONNECTOR
    config = json.loads(file.read_text()) | {"table.include.list": "shop.Vögel"}
    file.write_text(json.dumps(config, indent=2, ensure_ascii=False), encoding="utf-8")
    topics = project / "topics.toml"
    topics.write_bytes(b"[topics] # of the source\r\n\r\n[epochs]\r\n")
    assert run("add", "shop") == 0
    listed = json.loads(file.read_text(encoding="utf-8"))["table.include.list"]
    assert listed.startswith(r"shop.Vögel,shop.switches,shop.null,shop.api,shop.Kunden.Üb")
    assert topics.read_bytes().startswith(
        b'[topics] # of the source\r\n"demo.shop.switches" = "switches"\r\n'
    )
    assert (
        '"demo.shop.Kunden._bersicht__alle" = "kunden__bersicht__alle"'
        in topics.read_text()
    )
    assert (
        "'key': 'api_key_key_key'," in (project / "models/staging/stg_api.sql").read_text()
    )
    before = texts(project)
    assert (run("add", "shop"), texts(project)) == (0, before)
    assert run("diff") == 0
    target = project / "target"
    parsed = dbt_parse(project)
    assert parsed.returncode == 0, parsed.stdout + parsed.stderr
    assert str(Path.home()) not in (target / "manifest.json").read_text()
    nodes = json.loads((target / "manifest.json").read_text())["nodes"]
    columns = nodes["model.cdc_lakehouse.switches"]["columns"]
    assert {"no", "on"} < columns.keys()


@pytest.mark.parametrize("tables", ["", " []", " [ ]  # none yet", " ~"])
@pytest.mark.parametrize(
    "topics", ["[ topics ]", "[topics]# c", "[epochs]\n[topics] # c\n# d"]
)
def test_list_that_is_empty_is_added_to(
    run: Run, project: Path, tables: str, topics: str
) -> None:
    sources = project / "models/staging/_sources.yml"
    text = f"sources:\n  - name: bronze\n    tables:{tables}\n    schema: bronze\n"
    sources.write_text(text)
    (project / "topics.toml").write_text(topics)
    assert run("add", "shop.lines") == 0
    (source,) = yaml.safe_load(sources.read_text())["sources"]
    assert source["schema"] == "bronze"
    assert [table["name"] for table in source["tables"]] == ["lines"]
    said = tomllib.loads((project / "topics.toml").read_text())
    assert said["topics"] == {"demo.shop.lines": "lines"}


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("topics.toml", 'topics = {"a" = "b"}', "add this line to its section"),
        ("topics.toml", "[topics", "cannot read"),
        (
            "models/staging/_sources.yml",
            "sources:\n  - name: bronze\n    tables: [{name: a}]\n",
            "add lines by hand; ",
        ),
        ("models/staging/_sources.yml", "sources:\n  - name: bronze\n", "has no tables"),
        ("models/staging/_sources.yml", "sources: [", "cannot read"),
        (
            "models/silver/rejected_rows.sql",
            "{{ cdc_lakehouse.rejected_rows(all) }}",
            "add ref('stg_lines')",
        ),
        (
            CONNECTOR,
            '"table.include.list": "a","table.include.list": "b"',
            "change its lists",
        ),
        (
            CONNECTOR,
            '"schema.include.list": "s","table.include.list": "b"',
            "change its lists",
        ),
        (
            CONNECTOR,
            r'"table.include.list": "\\Qa\\E"',
            "cannot read the regular expressions",
        ),
    ],
)
def test_edit_that_finds_no_place_is_an_error(
    run: Run,
    project: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    text: str,
    message: str,
) -> None:
    if file == CONNECTOR:
        config = json.loads((project / file).read_text())
        del config["table.include.list"]
        text = json.dumps(config)[:-1] + f", {text}}}"
    (project / file).write_text(text)
    before = texts(project)
    assert run("add", "shop.lines") == 1
    assert message in capsys.readouterr().err
    assert texts(project) == before


def dbt_parse(project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "dbt.cli.main", "--warn-error", "parse"),
            *("--profiles-dir", "profiles", "--quiet", "--no-partial-parse"),
        ],
        cwd=project,
        capture_output=True,
        text=True,
    )


def test_column_whose_unchanged_value_is_null_needs_the_full_identity(
    run: Run, project: Path, catalogue: Catalogue, capsys: pytest.CaptureFixture[str]
) -> None:
    full = replace(ARRAYS, has_full_identity=True)
    catalogue.tables[:] = [full]
    assert run("add", "shop") == 0
    model = project / "models/staging/stg_arrays.sql"
    written = model.read_text()
    for column, declared in {
        **{"prices": "json full", "flags": "string full", "labels": "json full"},
        **{"mask": "string", "tags": "json"},
    }.items():
        assert f"'{column}': '{declared}'," in written
    capsys.readouterr()
    # The identity is taken back; a model by hand; an array that has a placeholder.
    texts_only = replace(
        ARRAYS, columns=(*ARRAYS.columns[:1], Column("prices", "text[]", is_toasted=True))
    )
    for table, text, expected in (
        (full, written, ""),
        (ARRAYS, written, "shop.arrays: unusable"),
        (full, written.replace("json full", "json"), "prices: type (declared json, source"),
        (texts_only, written, "prices: type (declared json full, source json)"),
        (replace(texts_only, has_full_identity=True), written, ""),
    ):
        catalogue.tables[:] = [table]
        model.write_text(text)
        run("diff")
        lines = capsys.readouterr().out.splitlines()
        said = [line for line in lines if "unusable" in line or "prices" in line]
        assert (len(said), expected in "".join(said)) == (bool(expected), True)


def test_unknown_table_is_an_error(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("add", "public.vendors") == 1
    assert "no table public.vendors; it has shop.vendors" in capsys.readouterr().err


def test_another_name(run: Run, project: Path, catalogue: Catalogue) -> None:
    catalogue.tables[:] = [replace(VENDORS, name="products")]
    assert run("add", "shop.products", "--as", "shop_products") == 0
    assert '"demo.shop.products" = "shop_products"' in (project / "topics.toml").read_text()
    assert (project / "models/silver/shop_products.sql").exists()


def test_column_that_the_connector_leaves_out_is_not_declared(
    run: Run, project: Path
) -> None:
    file = project / CONNECTOR
    config = json.loads(file.read_text()) | {"column.exclude.list": r"shop\.vendors\.notes"}
    file.write_text(json.dumps(config, indent=2))
    assert run("add", "shop.vendors") == 0
    assert "notes" not in (project / "models/staging/stg_vendors.sql").read_text()


NULLS = "value.converter.replace.null.with.default"
MASK = "column.mask.with.12.chars"
ROWS = "snapshot.select.statement.overrides"
TYPED = Table(
    "shop",
    "typed",
    (
        ID,
        *(
            Column(type_.split()[0].split("(")[0], type_)
            for type_ in (
                *("date", "timestamp(3) without time zone", "interval", "bytea", "hstore"),
                *("numeric(12,2)", "money", "text"),
            )
        ),
        Column("n", "integer", has_default=True),
        Column("long", "text", is_toasted=True),
    ),
    ("id",),
    has_full_identity=False,
)
UNFIT: list[tuple[dict[str, str | None], str]] = [
    ({"time.precision.mode": "connect"}, "date (date) with time.precision.mode=connect; t"),
    ({"time.precision.mode": "isostring"}, "timestamp (timestamp(3) without time zone) w"),
    ({"interval.handling.mode": "string"}, "interval (interval) with interval.handling.mo"),
    ({"binary.handling.mode": "hex"}, "bytea (bytea) with binary.handling.mode=hex"),
    ({"money.fraction.digits": "3"}, "money (money) with money.fraction.digits=3"),
    ({"decimal.handling.mode": "double"}, "set decimal.handling.mode=string"),
    (
        {"decimal.handling.mode": None, "value.converter.decimal.format": "NUMERIC"},
        "numeric (numeric(12,2)) with value.converter.decimal.format=NUMERIC",
    ),
    ({NULLS: None}, f"n, where null is sent as the column's default, without {NULLS}=fal"),
    (
        {
            "transforms": "unwrap",
            "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        },
        "without transforms.unwrap.replace.null.with.default=false",
    ),
    (
        {"value.converter": "io.apicurio.registry.utils.converter.AvroConverter"},
        "without value.converter=org.apache.kafka.connect.json.JsonConverter",
    ),
    (
        {"value.converter": "x.StringConverter"},
        "sends: value.converter=x.StringConverter; ",
    ),
    ({"key.converter": "x.StringConverter"}, "sends: key.converter=x.StringConverter ("),
    (
        {"transforms": "a", "transforms.a.type": "org.apache.kafka.connect.RegexRouter"},
        "transforms.a.type=org.apache.kafka.connect.RegexRouter",
    ),
    ({"topic.delimiter": "-"}, "sends: topic.delimiter=- ("),
    ({"topic.naming.strategy": "x"}, "sends: topic.naming.strategy=x ("),
    ({"converters": "isbn"}, "sends: converters=isbn ("),
    ({MASK: r"shop\.typed\.id"}, f"id, which is of the key, with {MASK}"),
    (
        {MASK: ".*long"},
        f"long, of which a value that was not sent is changed, too, by {MASK}",
    ),
    (
        {"column.truncate.to.9.chars": ".*long"},
        "a value that was not sent is changed, too, by column.truncate.to.9.chars",
    ),
    (
        {"message.key.columns": "shop.typed:text"},
        "the key id with message.key.columns=shop",
    ),
    (
        {"column.include.list": "shop.typed.text"},
        "the connector leaves out id, which is of",
    ),
    (
        {"unavailable.value.placeholder": "x"},
        "unavailable.value.placeholder is 'x', and mus",
    ),
]
# What leaves rows or events out.
LEAVES_OUT = [
    *(("snapshot.mode", mode) for mode in ("no_data", "never", "schema_only")),
    *(("errors.tolerance", "all"), ("snapshot.include.collection.list", "shop.x")),
    *(("event.processing.failure.handling.mode", mode) for mode in ("skip", "warn")),
    ("inconsistent.schema.handling.mode", "skip"),
]
UNFIT += [({name: value}, f"sends: {name}={value} (") for name, value in LEAVES_OUT]
UNFIT += [
    (
        {ROWS: "shop.other, shop.typed", f"{ROWS}.shop.typed": f"select {rows}"},
        f"{ROWS} that is not select * from shop.typed (",
    )
    for rows in ("* from only shop.typed where id > 9", "id from shop.typed", "* from x.y")
]
# Nor does any of these, of which a value is as it is declared.
FIT: dict[str, str | None] = {
    "time.precision.mode": "adaptive_time_microseconds",
    "hstore.handling.mode": "map",
    "schema.name.adjustment.mode": "avro",
    "column.truncate.to.9.chars": r"shop\.typed\.text",
    "message.key.columns": "shop.typed:id;(.*).other:x",
    "key.converter": None,
    "snapshot.mode": "when_needed",
    "snapshot.include.collection.list": "shop[.]t.*",
    ROWS: "shop.other,shop.typed",
    f"{ROWS}.shop.typed": 'SELECT * from  only "shop"."typed";',
    f"{ROWS}.shop.other": "select 1",
}


def configure(project: Path, settings: dict[str, str | None]) -> None:
    """Change settings of the connector; None takes one away."""
    file = project / CONNECTOR
    config = json.loads(file.read_text()) | settings
    config = {name: value for name, value in config.items() if value is not None}
    file.write_text(json.dumps(config, indent=2))


@pytest.mark.parametrize(("settings", "message"), [*UNFIT, (FIT, "")])
def test_connector_whose_values_are_not_the_declared_ones_is_refused(
    run: Run,
    project: Path,
    catalogue: Catalogue,
    capsys: pytest.CaptureFixture[str],
    settings: dict[str, str | None],
    message: str,
) -> None:
    """By `add` and `diff`, with the setting's name."""
    catalogue.tables[:] = [TYPED]
    configure(project, settings)
    assert run("add", "shop.typed") == (1 if message else 0)
    assert message in capsys.readouterr().err


ODD_FIELDS: list[tuple[str | None, list[str]]] = [
    (None, ["Größe", "a-b", "1st", "😀x", "u_u", "é"]),
    ("avro", ["Gr__e", "a_b", "_1st", "__x", "u_u", "_"]),
    (
        "avro_unicode",
        ["Gr_u00f6_u00dfe", "a_u002db", "_u0031st", "_ud83d_ude00x", "u_u005fu", "_u00e9"],
    ),
]


@pytest.mark.parametrize(("mode", "fields"), ODD_FIELDS)
def test_fields_are_named_as_the_connector_adjusts_them(
    run: Run,
    project: Path,
    catalogue: Catalogue,
    capsys: pytest.CaptureFixture[str],
    mode: str | None,
    fields: list[str],
) -> None:
    """As Debezium 3.7 does; the key's, and of a column that is generated, too."""
    columns = [Column(name, "text") for name in ODD_FIELDS[0][1]]
    columns[-1] = replace(columns[-1], is_computed=True)
    catalogue.tables[:] = [Table("shop", "odd", tuple(columns), ("Größe",))]
    (project / "topics.toml").write_text("[topics]\n")
    configure(project, {"field.name.adjustment.mode": mode})
    assert run("add", "shop.odd") == 0
    text = (project / "models/staging/stg_odd.sql").read_text()
    assert [name for name in fields if f"'{name}'" not in text] == []
    assert run("diff") == 0


def test_project_that_uses_this_one_as_a_package(run: Run, tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "dbt_project.yml").write_text("name: shop\nprofile: cdc_lakehouse\n")
    assert run("add", "shop", folder=shop) == 0
    files = texts(shop)
    assert files["topics.toml"] == (
        '[topics]\n"demo.shop.vendors" = "vendors"\n"demo.shop.lines" = "lines"\n'
    )
    (source,) = yaml.safe_load(files["models/staging/_sources.yml"])["sources"]
    names = [table["name"] for table in source["tables"]]
    assert sorted(names) == ["lines", "rejected_events", "vendors"]
    assert files["models/silver/rejected_rows.sql"] == (
        "{{ config(unique_key='event_id') }}\n\n{{ cdc_lakehouse.rejected_rows([\n"
        "    ref('stg_vendors'),\n    ref('stg_lines'),\n]) }}\n"
    )
    assert "{{ cdc_lakehouse.change_events(" in files["models/staging/stg_lines.sql"]
    assert "[cdc_lakehouse.no_untyped_values]" in files["models/silver/lines.yml"]
    assert """doc("cdc_lakehouse", "op")""" in files["models/silver/lines.yml"]


def test_what_is_written_passes_the_linters(run: Run, project: Path) -> None:
    """sqlfluff, and dbt's parser, which takes a warning for an error."""
    assert run("add", "shop") == 0
    for name in ("pyproject.toml", ".sqlfluff", "dbt_project.yml", "dbt_cdc_lakehouse.py"):
        if (PROJECT / name).exists() and not (project / name).exists():
            shutil.copy(PROJECT / name, project)
    written = [*project.rglob("*vendors.sql"), *project.rglob("*lines.sql")]
    written.append(project / "models/silver/rejected_rows.sql")
    for arguments in (
        ("sqlfluff", "lint", "--disable-progress-bar", *map(str, written)),
        ("dbt.cli.main", "--warn-error", "parse", "--profiles-dir", "profiles", "--quiet"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=project,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_diff_names_what_differs_and_apply_mends_it(
    run: Run, project: Path, catalogue: Catalogue, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = project / "topics.toml"
    topics.write_text('[topics]\n"demo.shop.gone" = "products"\n')
    assert run("add", "shop.vendors") == 0
    before = texts(project)
    wider, *rest = (
        Column("credit_limit", "numeric(14,4)"),
        Column("rating", "smallint", comment="1 to 5"),
        Column("key", "text"),
    )
    kept = [each for each in VENDORS.columns if each.name not in ("credit_limit", "notes")]
    changed = replace(VENDORS, columns=(*kept, wider, *rest))
    catalogue.tables[:] = [changed, replace(LINES, name="more")]
    file = project / CONNECTOR
    file.write_text(file.read_text().replace(",shop.vendors", ",shop.vendors,shop.more"))
    capsys.readouterr()

    assert run("diff") == 3
    assert capsys.readouterr().out.splitlines() == [
        "shop.gone: not at the source",
        "shop.vendors.credit_limit: type (declared decimal(12,2), source decimal(14,4))",
        "shop.vendors.rating: new column (source int)",
        "shop.vendors.source_key: new column (source string)",
        "shop.vendors.notes: dropped column (declared string)",
        "shop.more: not modelled",
        "shop.vendors: no event says whether notes was renamed or dropped:"
        " --renamed shop.vendors.notes=rating keeps its values,"
        " --dropped shop.vendors.notes does not",
    ]
    assert run("diff", "--json") == 3
    found = json.loads(capsys.readouterr().out)
    assert [each["kind"] for each in found] == [
        *("not at the source", "type", "new column", "new column", "dropped column"),
        "not modelled",
    ]
    assert found[1] == {
        "table": "shop.vendors",
        "kind": "type",
        "model": "stg_vendors",
        "column": "credit_limit",
        "declared": "decimal(12,2)",
        "source": "decimal(14,4)",
        "remedy": "",
        "needs_resync": False,
    }

    assert run("diff", "--apply") == 3
    assert "wrote" not in capsys.readouterr().out
    dropped = ("--dropped", "shop.vendors.notes")
    assert run("diff", "--apply", *dropped) == 3  # tables are left to differ
    said = capsys.readouterr().out
    assert "dbt build --profiles-dir profiles --full-refresh --select stg_vendors+" in said
    assert f"--select stg_vendors+ --project-dir {project}\n" in said
    after = texts(project)
    assert {name for name in before if before[name] != after[name]} == {
        CONNECTOR,
        "models/staging/stg_vendors.sql",
        "models/silver/vendors.yml",
    }
    staging = after["models/staging/stg_vendors.sql"]
    assert "'credit_limit': 'decimal(14,4)',\n" in staging
    assert "        'rating': 'int',\n        'source_key': 'string',\n    },\n" in staging
    assert "'source_key': 'key',\n" in staging
    assert "    'ignored_fields': ['total', 'notes'],\n" in staging
    (described,) = yaml.safe_load(after["models/silver/vendors.yml"])["models"]
    columns = {each["name"]: each["description"] for each in described["columns"]}
    assert columns["rating"] == "1 to 5" and "notes" not in columns
    catalogue.tables.pop()
    assert run("diff") == 3
    assert capsys.readouterr().out == "shop.gone: not at the source\n"


PLANS = Table(
    "shop",
    "plans",
    (
        ID,
        Column("plan", "text"),
        Column("code", "text"),
        Column("price", "numeric(12,2)"),
    ),
    ("id",),
)
# The table at the source, what the user says, a line of the declaration then, and the
# column whose past only a resync brings.
EVOLUTIONS: dict[str, tuple[Table, list[str], str, str]] = {
    "renamed": (
        replace(PLANS, columns=(ID, Column("Plan_Name", "text"), *PLANS.columns[2:])),
        ["--renamed", "shop.plans.plan=plan_name"],
        "'plan_name': ['Plan_Name', 'plan'],",
        "",
    ),
    "renamed, of another type": (
        replace(PLANS, columns=(ID, Column("plan_name", "integer"), *PLANS.columns[2:])),
        ["--renamed", "shop.plans.plan=plan_name"],
        "'plan_name': 'int',",
        "plan_name",
    ),
    "the key renamed": (
        replace(
            PLANS, columns=(Column("uid", "integer"), *PLANS.columns[1:]), key=("uid",)
        ),
        ["--renamed", "shop.plans.id=uid"],
        "'id': ['uid', 'id'],",
        "",
    ),
    "one dropped, one added": (
        replace(PLANS, columns=(ID, *PLANS.columns[2:], Column("since", "date"))),
        ["--dropped", "shop.plans.plan"],
        "'ignored_fields': ['plan'],",
        "",
    ),
    "added with a default": (
        replace(PLANS, columns=(*PLANS.columns, Column("n", "integer", has_default=True))),
        [],
        "'n': 'int',",
        "n",
    ),
    "added without": (
        replace(PLANS, columns=(*PLANS.columns, Column("n", "integer"))),
        [],
        "'n': 'int',",
        "",
    ),
    "dropped and added with another type": (
        replace(
            PLANS,
            columns=(
                *PLANS.columns[:2],
                PLANS.columns[3],
                Column("code", "integer", is_later=True),
            ),
        ),
        [],
        "'code': 'int',",
        "code",
    ),
    "widened, or dropped and added": (
        replace(
            PLANS,
            columns=(*PLANS.columns[:3], Column("price", "numeric(14,2)", is_later=True)),
        ),
        [],
        "'price': 'decimal(14,2)',",
        "price",
    ),
    "widened": (
        replace(PLANS, columns=(*PLANS.columns[:3], Column("price", "numeric(14,2)"))),
        [],
        "'price': 'decimal(14,2)',",
        "",
    ),
    "generated": (
        replace(
            PLANS,
            columns=(*PLANS.columns[:3], replace(PLANS.columns[3], is_computed=True)),
        ),
        [],
        "'ignored_fields': ['price'],",
        "",
    ),
}


@pytest.mark.parametrize("name", EVOLUTIONS)
def test_columns_follow_the_source_and_keep_what_is_known(
    run: Run,
    project: Path,
    catalogue: Catalogue,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    """A resync is asked for where no event brought what rows hold, and only there."""
    (project / "topics.toml").write_text("[topics]\n")
    catalogue.tables[:] = [PLANS]
    assert run("add", "shop.plans") == 0
    table, answers, declared, read_again = EVOLUTIONS[name]
    catalogue.tables[:] = [table]
    before = texts(project)
    capsys.readouterr()
    assert run("diff", "--apply") == (3 if answers else 0)
    if answers:
        assert answers[1].partition("=")[0] in capsys.readouterr().out
        assert texts(project) == before
        # The key was another when it was compared.
        assert run("diff", "--apply", *answers) == (3 if "key" in name else 0)
    said = capsys.readouterr().out
    assert ("--full-refresh" in said, "resync shop.plans" in said) == (
        not read_again,
        bool(read_again),
    )
    assert f"since, {read_again} may have" in said or not read_again
    assert declared in (project / "models/staging/stg_plans.sql").read_text()
    assert run("diff") == 0
    (described,) = yaml.safe_load((project / "models/silver/plans.yml").read_text())[
        "models"
    ]
    models = {each.name: each for each in Project(project).staging_models("{}")}
    model = models["stg_plans"]
    assert {*model.meta["columns"]} == {each["name"] for each in described["columns"]} - {
        *position_columns()
    }


def test_name_that_is_used_again_is_another_column(
    run: Run, project: Path, catalogue: Catalogue, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its old name's values are the renamed column's until the table is read again."""
    (project / "topics.toml").write_text("[topics]\n")
    catalogue.tables[:] = [PLANS]
    assert run("add", "shop.plans") == 0
    renamed, *_ = EVOLUTIONS["renamed"]
    catalogue.tables[:] = [renamed]
    assert run("diff", "--apply", "--renamed", "shop.plans.plan=plan_name") == 0
    catalogue.tables[:] = [
        replace(renamed, columns=(*renamed.columns, Column("plan", "text")))
    ]
    capsys.readouterr()
    assert run("diff", "--apply") == 0
    assert "since, plan may have" in capsys.readouterr().out
    staging = (project / "models/staging/stg_plans.sql").read_text()
    assert "'plan_name': 'Plan_Name',\n" in staging and "'plan': 'string',\n" in staging
    assert run("diff", "--apply", "--renamed", "shop.plans.a=b") == 1
    assert "shop.plans.a=b: not a dropped column and a new one" in capsys.readouterr().err
    assert run("diff", "--dropped", "shop.plans.a") == 2


def test_table_is_compared_with_the_connector_that_captures_it(
    run: Run, project: Path, catalogue: Catalogue, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not with another one of its prefix, which leaves a column out."""
    (project / "topics.toml").write_text("[topics]\n")
    assert run("add", "shop.vendors") == 0
    config = json.loads((project / CONNECTOR).read_text())
    config |= {
        "table.include.list": "shop.none",
        "column.exclude.list": r"shop\.vendors\..*s",
    }
    other = project / "other.json"
    other.write_text(json.dumps(config, indent=2))
    rating = Column("ratings", "smallint", comment="1 to 5")
    catalogue.tables[:] = [replace(VENDORS, columns=(*VENDORS.columns, rating))]
    capsys.readouterr()
    files = (str(project / CONNECTOR), str(other))
    for first, second in (files, files[::-1]):
        places = ["--connector", first, "--connector", second]
        places += ["--project-dir", str(project)]
        assert main(["diff", *places]) == 3
        said = capsys.readouterr().out
        assert said == "shop.vendors.ratings: new column (source int)\n"
    assert main(["diff", "--apply", *places]) == 0
    assert "description: 1 to 5" in (project / "models/silver/vendors.yml").read_text()


@pytest.mark.parametrize(
    ("settings", "operations"),
    [
        ({}, []),
        ({"skipped.operations": "none"}, []),
        ({"skipped.operations": ""}, ["truncate"]),
        ({"skipped.operations": "t, d"}, ["truncate", "delete"]),
        (
            {
                "transforms": "flat",
                "transforms.flat.type": "io.debezium.transforms.ExtractNewRecordState",
            },
            ["truncate", "delete"],
        ),
        (
            {
                "transforms": "flat",
                "transforms.flat.type": "io.debezium.transforms.ExtractNewRecordState",
                "transforms.flat.delete.tombstone.handling.mode": "rewrite-with-tombstone",
            },
            ["truncate"],
        ),
    ],
)
def test_what_a_connector_does_not_send(
    project: Path,
    run: Run,
    catalogue: Catalogue,
    capsys: pytest.CaptureFixture[str],
    settings: dict[str, str],
    operations: list[str],
) -> None:
    """The shipped one sends all; `add` says it of another one, as `diff` does."""
    catalogue.tables[1] = replace(LINES, cascades=("lines\ndrop table x;",))
    catalogue.log.update(binlog_format="ROW", binlog_row_image="NOBLOB")
    file = project / CONNECTOR
    file.write_text(json.dumps(json.loads(file.read_text()) | settings, indent=2))
    assert run("add", "shop.lines", "--dry-run") == 0
    said = capsys.readouterr().out
    lines = [line for line in said.splitlines() if ": sends no " in line]
    assert [re.split(r": sends no | \(", line)[1] for line in lines] == operations
    assert all(line.startswith(f"-- {file}: ") for line in lines)
    named = "-- shop.lines: cascades not logged (source foreign key lines drop table x;)\n"
    assert named in said
    gap = (
        "-- binary log: changes not logged (source binlog_row_image is NOBLOB, not FULL)\n"
    )
    assert gap in said


def test_changed_key_is_left_to_the_user(
    run: Run, project: Path, catalogue: Catalogue, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "topics.toml").write_text("[topics]\n")
    assert run("add", "shop.vendors") == 0
    key = ("vendor_id", "company_name")
    catalogue.tables[:] = [replace(VENDORS, key=key, identities=())]
    before = texts(project)
    capsys.readouterr()
    assert run("diff", "--apply") == 3
    assert capsys.readouterr().out == (
        "shop.vendors: key (declared vendor_id, source vendor_id, company_name)\n"
    )
    assert texts(project) == before


@pytest.mark.parametrize(
    ("declared", "needed", "is_held"),
    [
        ("bigint", "int", True),
        ("int", "bigint", False),
        ("string", "int", True),
        ("string hashed", "string", True),
        ("decimal(14,4)", "decimal(12,2)", True),
        ("decimal(14,4)", "decimal(12,4)", True),
        ("decimal(12,4)", "decimal(12,2)", False),
        ("decimal(12,2)", "int", True),
        ("decimal(11,2)", "int", False),
        ("decimal(14,2) base64", "decimal(12,2) base64", True),
        ("decimal(14,4) base64", "decimal(12,2) base64", False),
        ("decimal(12,2)", "decimal(12,2) base64", False),
        ("timestamp", "timestamp(3)", False),
        ("json", "string", False),
    ],
)
def test_type_that_holds_another(declared: str, needed: str, is_held: bool) -> None:
    assert holds(declared, needed) == is_held


def test_names_that_are_taken() -> None:
    taken = [*EVENT_COLUMNS, *position_columns()]
    assert [own_name(name) for name in taken] == [f"source_{name}" for name in taken]
    assert own_name("Weird Name") == "weird_name"
    assert own_name("_hoodie_x") == "source__hoodie_x" and own_name("1st") == "source_1st"


STACK_TOPICS = ("--topics", str(PROJECT / "lab/stack/topics.toml"))


def test_resync_says_what_is_missing(
    run: Run, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before it asks the source for anything."""
    assert run("resync", "shop.vendors", *STACK_TOPICS) == 1
    assert "source-tables.json does not capture shop.vendors;" in capsys.readouterr().err
    assert run("resync", "datalake.orders") == 1
    assert "has no line for demo.datalake.orders;" in capsys.readouterr().err
    # Its topics file lists the table, and not that of the markers.
    assert run("resync", "datalake.customers") == 1
    said = capsys.readouterr().err
    assert '"demo.datalake.complete_snapshots" = "complete_snapshots"' in said

    file = project / CONNECTOR
    config = json.loads(file.read_text())
    del config["signal.data.collection"]
    file.write_text(json.dumps(config))
    assert run("resync", "datalake.orders", *STACK_TOPICS) == 1
    said = capsys.readouterr().err
    assert "create table datalake.debezium_signals (" in said
    assert "grant select on datalake.complete_snapshots to debezium;" in said
    assert '"signal.data.collection": "datalake.debezium_signals"' in said


def test_tables_of_resync_are_not_declared(
    run: Run, catalogue: Catalogue, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are captured, and no data."""
    catalogue.tables = [
        Table("datalake", name, (Column("id", "text"),), ("id",))
        for name in ("complete_snapshots", "debezium_signals_tables", "region")
    ]
    assert run("add", "datalake", "--dry-run") == 0
    said = capsys.readouterr().out
    assert "stg_region.sql" in said
    assert "signals" not in said
    assert "stg_complete_snapshots" not in said
