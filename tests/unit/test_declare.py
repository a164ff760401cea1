"""`cdc-lakehouse add`, `diff` and `resync` on a project of `init`, without a server.

What they print and change is compared as a transcript (`__snapshots__/test_declare.ambr`).
"""

import difflib
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

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
from cdc_lakehouse.sources.models import position_columns
from cdc_lakehouse.sources.project import Project
from tests.support.project import copy_project, new_project

CONNECTOR = Path("connectors/source.json")
TOPICS = Path("topics.toml")


def column(text: str) -> Column:
    """A column, as `total numeric(12,2) is_computed # what is paid`."""
    text, _, comment = text.partition(" # ")
    name, *words = text.split(" ")
    traits = {word: True for word in words if word.startswith(("is_", "has_"))}
    type_ = " ".join(word for word in words if word not in traits) or "integer"
    return Column(name, type_, comment=comment, **traits)


def table(
    name: str, *columns: str | Column, key: tuple[str, ...] = ("id",), **traits: Any
) -> Table:
    """A table with a column `id` and others."""
    schema, _, name = name.partition(".")
    its = [each if isinstance(each, Column) else column(each) for each in columns]
    return Table(schema, name, (column("id"), *its), key, **traits)


VENDORS = table(
    "shop.vendors",
    "company_name character varying(40)",
    "credit_limit numeric(12,2) # In euros: at most.",
    "notes text is_toasted # '{{ x }}' # is no template",
    'Op "char"',
    "topic text",
    "total numeric(12,2) is_computed",
    comment="Who sells to us",
    has_full_identity=False,
    identities=(Identity("shop.vendors", "d", None, ("id",)),),
)
LINES = table("shop.lines", "product_id", key=("id", "product_id"))
# Columns whose unchanged long values Debezium sends as null, but for the last.
ARRAYS = table(
    "shop.arrays",
    "prices numeric(10,2)[] is_toasted",
    "flags bit varying is_toasted",
    "labels text[] is_toasted is_domain",
    "mask bit varying(12)",
    "tags text[] is_toasted",
    has_full_identity=False,
)
Run = Callable[..., str]


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """What the source has, and publishes unless a test says what."""
    found = Catalogue([VENDORS, LINES])

    def read(connector: object) -> Catalogue:
        published = dict.fromkeys(map(str, found.tables), Published())
        whole = dict.fromkeys(("shop", "datalake"), Publication(published))
        return replace(found, publications=found.publications or whole)

    monkeypatch.setattr(command, "read_catalogue", read)
    return found


@pytest.fixture
def run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    catalogue: Catalogue,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Runs a command in a new project: its exit code, what it prints and changes there."""
    monkeypatch.chdir(new_project(tmp_path / "shop"))

    def call(*arguments: str) -> str:
        before = texts()
        code = main([*arguments])
        out, err = capsys.readouterr()
        changed = "\n".join(changes(before, texts()))
        return f"$ {' '.join(arguments)}\n{out}{err}{changed}\n[{code}]\n"

    return call


def texts() -> dict[str, str]:
    """The project's files."""
    return {
        str(file): file.read_bytes().decode()
        for file in sorted(Path().rglob("*"))
        if file.suffix in (".sql", ".yml", ".toml", ".json") and file.parts[0] != "target"
    }


def changes(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    """The lines that changed; new YAML, which is long, by name."""
    for file in sorted(before.keys() | after.keys()):
        old, new = before.get(file, ""), after.get(file, "")
        if file not in before and file.endswith(".yml"):
            yield f"+++ {file} is new"
        elif old != new:
            lines = old.split("\n"), new.split("\n")
            _, *found = difflib.unified_diff(*lines, "", file, n=0, lineterm="")
            yield from (line for line in found if not line.startswith("@@ "))


def configure(text: str) -> None:
    """Change settings of the connector: `a=1; b=`, and `-c`, which takes one away."""
    config: dict[str, str] = json.loads(CONNECTOR.read_text(encoding="utf-8"))
    for word in text.split("; "):
        name, sign, value = word.partition("=")
        if sign:
            config[name] = value
        else:
            del config[name.removeprefix("-")]
    written = json.dumps(config, indent=2, ensure_ascii=False)
    CONNECTOR.write_text(written, encoding="utf-8")


def test_tables_are_declared(
    run: Run, catalogue: Catalogue, snapshot: SnapshotAssertion
) -> None:
    """A second run changes nothing."""
    catalogue.publications["shop"] = Publication({"shop.lines": Published()})
    assert run("add", "shop.vendors", "shop.lines") == snapshot
    assert Path("models/silver/vendors.yml").read_text() == snapshot
    assert run("add", "shop.*") == snapshot
    described = yaml.safe_load(Path("models/silver/lines.yml").read_text())
    columns = {each["name"] for each in described["models"][0]["columns"]}
    assert {"lines_key", "id", "product_id", *position_columns()} <= columns


def test_nothing_else_changes_in_a_project(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    """In Northwind's, with comments and lists of many tables."""
    monkeypatch.chdir(copy_project(tmp_path / "northwind"))
    arguments = ("add", "shop.vendors", "--connector", "connectors/source-tables.json")
    before = texts()
    dry = run(*arguments, "--dry-run")
    assert texts() == before
    patch = dry.partition("\n")[2].partition("-- shop.vendors")[0]
    subprocess.run(["git", "apply", "--check", "-"], input=patch, text=True, check=True)
    assert run(*arguments) == snapshot


ODD = [
    table("shop.switches", "no text", "on text"),
    table("shop.null"),
    table("shop.api", "api_key text", "api_key_key text", key=("id", "api_key")),
    table("shop.Kunden.Übersicht, alle", "Größe text"),
    table(
        'shop.l{{ env_var("HOME") }}',
        Column('c{{ env_var("HOME") }}', "text"),
        Column("# no: [comment", "text"),
    ),
]


def test_nothing_of_a_catalogue_is_taken_for_code(
    run: Run, catalogue: Catalogue, snapshot: SnapshotAssertion
) -> None:
    """Words of YAML, Jinja, names that are no names here; dbt and sqlfluff read it all."""
    comment = '{{ env_var("HOME") }}: \x07\'#'
    catalogue.tables[:] = [*(replace(each, comment=comment) for each in ODD), VENDORS]
    configure("table.include.list=shop.Vögel")
    TOPICS.write_bytes(b"[topics] # of the source\r\n\r\n[epochs]\r\n")
    assert run("add", "shop") == snapshot
    assert TOPICS.read_bytes().startswith(b'[topics] # of the source\r\n"shop.shop.swit')
    before = texts()
    assert run("add", "shop").endswith("[0]\n") and texts() == before
    assert run("diff") == "$ diff\n\n[0]\n"
    for arguments in (
        ("sqlfluff", "lint", "--disable-progress-bar", "models/silver", "models/staging"),
        ("dbt.cli.main", "--warn-error", "parse", "--no-partial-parse", "--quiet"),
    ):
        words = [sys.executable, "-m", *arguments]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    parsed = Path("target/manifest.json").read_text()
    assert str(Path.home()) not in parsed
    columns = json.loads(parsed)["nodes"]["model.shop.switches"]["columns"]
    assert {"no", "on"} < columns.keys()


UNUSABLE = [
    replace(VENDORS, name="keyless", key=()),
    replace(VENDORS, name="Lines"),
    replace(VENDORS, name="rejected_events"),
    replace(VENDORS, name="Línes"),
    replace(VENDORS, name="Lïnes"),
    table("shop.searches", "found tsquery"),
    table("shop.boxes", "b box"),
    table("shop.sums", "sum is_computed", key=("id", "sum")),
    table("shop.twice", "notes text", "NOTES text"),
    ARRAYS,
]


def test_table_that_cannot_be_declared_stops_no_other(
    run: Run, catalogue: Catalogue, snapshot: SnapshotAssertion
) -> None:
    """It is named with the reason, and changes nothing, by itself or beside others."""
    catalogue.tables[:] = [*UNUSABLE, LINES, replace(LINES, schema="other")]
    before = texts()
    for each in UNUSABLE:
        if each.name not in ("Lines", "Línes", "Lïnes"):  # which need another table
            said = run("add", str(each))
            assert said.endswith("nothing was written\n\n[1]\n") and texts() == before
    catalogue.tables.insert(0, catalogue.tables.pop(-2))
    assert run("add", "shop", "other") == snapshot


def test_name_that_is_given(run: Run, snapshot: SnapshotAssertion) -> None:
    names = ("q); --", "../x", "a b", "{{ 1 }}", "Ü", "__", "shop_vendors")
    said = [run("add", "shop.vendors", "--as", name) for name in names]
    assert [*said, run("add", "public.vendors")] == snapshot


def test_topic_that_no_sink_takes_is_named(run: Run, snapshot: SnapshotAssertion) -> None:
    sink = Path("connectors/sink.json")
    sink.write_text('{"topics": "shop.shop.lines, demo.other"}')
    assert "\n-- shop.vendors: topic in no sink (" in run("add", "shop")
    said = [run("diff")]
    sink.write_text(r'{"topics.regex": "shop\\.shop\\..*"}')
    said.append(run("diff"))
    sink.write_text('{"topics.regex": "("}')
    assert [*said, run("diff")] == snapshot


@pytest.mark.parametrize("tables", ["", " []", " [ ]  # none yet", " ~"])
@pytest.mark.parametrize(
    "topics", ["[ topics ]", "[topics]# c", "[epochs]\n[topics] # c\n# d"]
)
def test_list_that_is_empty_is_added_to(run: Run, tables: str, topics: str) -> None:
    sources = Path("models/staging/_sources.yml")
    text = f"sources:\n  - name: bronze\n    tables:{tables}\n    schema: bronze\n"
    sources.write_text(text)
    TOPICS.write_text(topics)
    run("add", "shop.lines")
    (source,) = yaml.safe_load(sources.read_text())["sources"]
    assert source["schema"] == "bronze"
    assert [each["name"] for each in source["tables"]] == ["lines"]
    said = tomllib.loads(TOPICS.read_text())
    assert said["topics"] == {"shop.shop.lines": "lines"}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("topics.toml", 'topics = {"a" = "b"}'),
        ("topics.toml", "[topics"),
        (
            "models/staging/_sources.yml",
            "sources:\n  - name: bronze\n    tables: [{name: a}]\n",
        ),
        ("models/staging/_sources.yml", "sources:\n  - name: bronze\n"),
        ("models/staging/_sources.yml", "sources: ["),
        ("models/gold/rejected_records.sql", "{{ cdc_lakehouse.rejected_rows(all) }}"),
        (str(CONNECTOR), '"table.include.list": "a","table.include.list": "b"'),
        (str(CONNECTOR), '"schema.include.list": "s","table.include.list": "b"'),
        (str(CONNECTOR), r'"table.include.list": "\\Qa\\E"'),
    ],
)
def test_edit_that_finds_no_place_is_an_error(
    run: Run, snapshot: SnapshotAssertion, file: str, text: str
) -> None:
    if file == str(CONNECTOR):
        configure("-table.include.list")
        text = CONNECTOR.read_text().rstrip("\n}") + f", {text}}}"
    Path(file).write_text(text)
    before = texts()
    assert run("add", "shop.lines") == snapshot
    assert texts() == before


def test_column_whose_unchanged_value_is_null_needs_the_full_identity(
    run: Run, catalogue: Catalogue, snapshot: SnapshotAssertion
) -> None:
    full = replace(ARRAYS, has_full_identity=True)
    catalogue.tables[:] = [full]
    assert run("add", "shop") == snapshot
    model = Path("models/staging/stg_arrays.sql")
    written = model.read_text()
    # The identity is taken back; a model by hand; an array that has a placeholder.
    placed = replace(
        ARRAYS, columns=(ARRAYS.columns[0], column("prices text[] is_toasted"))
    )
    said = []
    for found, text in (
        (full, written),
        (ARRAYS, written),
        (full, written.replace("json full", "json")),
        (placed, written),
        (replace(placed, has_full_identity=True), written),
    ):
        catalogue.tables[:] = [found]
        model.write_text(text)
        said.append(run("diff"))
    assert said == snapshot


NULLS = "value.converter.replace.null.with.default"
MASK = "column.mask.with.12.chars"
ROWS = "snapshot.select.statement.overrides"
UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
TYPED = table(
    "shop.typed",
    "date date",
    "timestamp timestamp(3) without time zone",
    "interval interval",
    "bytea bytea",
    "hstore hstore",
    "numeric numeric(12,2)",
    "money money",
    "text text",
    "n integer has_default",
    "long text is_toasted",
    has_full_identity=False,
)
# What leaves rows or events out is at the end.
STATEMENT = f"{ROWS}=shop.t, shop.typed; {ROWS}.shop.typed=select"
UNFIT = [
    "time.precision.mode=connect",
    "time.precision.mode=isostring",
    "interval.handling.mode=string",
    "binary.handling.mode=hex",
    "money.fraction.digits=3",
    "decimal.handling.mode=double",
    "-decimal.handling.mode; value.converter.decimal.format=NUMERIC",
    f"-{NULLS}",
    f"transforms=unwrap; transforms.unwrap.type={UNWRAP}",
    "value.converter=io.apicurio.registry.utils.converter.AvroConverter",
    "value.converter=x.StringConverter",
    "key.converter=x.StringConverter",
    "transforms=a; transforms.a.type=org.apache.kafka.connect.RegexRouter",
    "topic.delimiter=-",
    "topic.naming.strategy=x",
    "converters=isbn",
    rf"{MASK}=shop\.typed\.id",
    f"{MASK}=.*long",
    "column.truncate.to.9.chars=.*long",
    "message.key.columns=shop.typed:text",
    "column.include.list=shop.typed.text",
    "unavailable.value.placeholder=x",
    "snapshot.mode=no_data",
    "snapshot.mode=never",
    "snapshot.mode=schema_only",
    "errors.tolerance=all",
    "snapshot.include.collection.list=shop.x",
    "event.processing.failure.handling.mode=skip",
    "event.processing.failure.handling.mode=warn",
    "inconsistent.schema.handling.mode=skip",
    f"{STATEMENT} * from only shop.typed where id>9",
    f"{STATEMENT} id from shop.typed",
    f"{STATEMENT} * from x.y",
]
# A value is as it is declared by these, but for `text`, which is not sent.
FIT = [
    "time.precision.mode=adaptive_time_microseconds",
    "hstore.handling.mode=map",
    "schema.name.adjustment.mode=avro",
    r"column.truncate.to.9.chars=shop\.typed\.text",
    r"column.exclude.list=shop\.typed\.text",
    "message.key.columns=shop.typed:id;(.*).other:x",
    "-key.converter",
    "snapshot.mode=when_needed",
    "snapshot.include.collection.list=shop[.]t.*",
    f'{ROWS}=shop.other,shop.typed; {ROWS}.shop.typed=SELECT * from  only "shop"."typed";',
    f"{ROWS}.shop.other=select 1",
]


def test_connector_whose_values_are_not_the_declared_ones_is_refused(
    run: Run, catalogue: Catalogue, snapshot: SnapshotAssertion
) -> None:
    catalogue.tables[:] = [TYPED]
    written = CONNECTOR.read_text()
    said = {}
    for text in UNFIT:
        configure(text)
        said[text] = run("add", "shop.typed").partition("\n")[2]
        assert said[text].endswith("\n\n[1]\n"), text
        CONNECTOR.write_text(written)
    configure("; ".join(FIT))
    assert (said, run("add", "shop.typed")) == snapshot


FIELDS = {
    "none": ["Größe", "a-b", "1st", "😀x", "u_u", "é"],
    "avro": ["Gr__e", "a_b", "_1st", "__x", "u_u", "_"],
    "avro_unicode": [
        *("Gr_u00f6_u00dfe", "a_u002db", "_u0031st", "_ud83d_ude00x", "u_u005fu"),
        "_u00e9",
    ],
}


@pytest.mark.parametrize("mode", FIELDS)
def test_fields_are_named_as_the_connector_adjusts_them(
    run: Run, catalogue: Catalogue, mode: str
) -> None:
    """As Debezium 3.7 does; the key's, and of a column that is generated, too."""
    columns = [Column(name, "text") for name in FIELDS["none"]]
    columns[-1] = replace(columns[-1], is_computed=True)
    catalogue.tables[:] = [Table("shop", "odd", tuple(columns), ("Größe",))]
    configure(f"field.name.adjustment.mode={mode}")
    run("add", "shop.odd")
    text = Path("models/staging/stg_odd.sql").read_text()
    assert [name for name in FIELDS[mode] if f"'{name}'" not in text] == []
    assert run("diff").endswith("[0]\n")


def test_diff_names_what_differs_and_apply_mends_it(
    run: Run, catalogue: Catalogue, snapshot: SnapshotAssertion
) -> None:
    run("add", "shop")
    TOPICS.write_text(TOPICS.read_text().replace('"shop.shop.lines"', '"shop.shop.gone"'))
    kept = [each for each in VENDORS.columns if each.name not in ("credit_limit", "notes")]
    new = ("credit_limit numeric(14,4)", "rating smallint # 1 to 5", "key text")
    changed = replace(VENDORS, columns=(*kept, *map(column, new)))
    catalogue.tables[:] = [changed, replace(LINES, name="more")]
    listed = json.loads(CONNECTOR.read_text())["table.include.list"]
    configure(f"table.include.list={listed},shop.more")
    # It is asked whether a column was renamed; tables are left to differ.
    dropped = ("--dropped", "shop.vendors.notes")
    said = [run("diff"), run("diff", "--json"), run("diff", "--apply")]
    said += [run("diff", "--apply", *dropped)]
    catalogue.tables.pop()
    assert [*said, run("diff")] == snapshot


PLANS = table("shop.plans", "plan text", "code text", "price numeric(12,2)")
PLAN, CODE, PRICE = PLANS.columns[1:]
RENAMED = ["--renamed", "shop.plans.plan=plan_name"]
WIDER = column("price numeric(14,2)")
# The columns at the source but the first, and what the user says.
EVOLUTIONS: dict[str, tuple[tuple[Column, ...], list[str]]] = {
    "renamed": ((column("Plan_Name text"), CODE, PRICE), RENAMED),
    "renamed, of another type": ((column("plan_name integer"), CODE, PRICE), RENAMED),
    "the key renamed": ((PLAN, CODE, PRICE), ["--renamed", "shop.plans.id=uid"]),
    "one dropped, one added": (
        (CODE, PRICE, column("since date")),
        ["--dropped", "shop.plans.plan"],
    ),
    "added with a default": ((PLAN, CODE, PRICE, column("n integer has_default")), []),
    "added without": ((PLAN, CODE, PRICE, column("n integer")), []),
    "another type": ((PLAN, PRICE, column("code integer is_later")), []),
    "widened, or dropped and added": ((PLAN, CODE, replace(WIDER, is_later=True)), []),
    "widened": ((PLAN, CODE, WIDER), []),
    "generated": ((PLAN, CODE, replace(PRICE, is_computed=True)), []),
}


@pytest.mark.parametrize("name", EVOLUTIONS)
def test_columns_follow_the_source_and_keep_what_is_known(
    run: Run, catalogue: Catalogue, snapshot: SnapshotAssertion, name: str
) -> None:
    """A resync is asked for where no event brought what rows hold, and only there."""
    catalogue.tables[:] = [PLANS]
    run("add", "shop.plans")
    columns, answers = EVOLUTIONS[name]
    key = "uid" if "key" in name else "id"
    catalogue.tables[:] = [replace(PLANS, columns=(column(key), *columns), key=(key,))]
    before = texts()
    said = [run("diff", "--apply")]
    if answers:
        assert texts() == before
        said.append(run("diff", "--apply", *answers))
    assert said == snapshot
    assert run("diff").endswith("[0]\n")
    (described,) = yaml.safe_load(Path("models/silver/plans.yml").read_text())["models"]
    (model,) = Project(Path()).staging_models("{}")
    names = {each["name"] for each in described["columns"]}
    assert {*model.meta["columns"]} == names - {*position_columns()}


def test_name_that_is_used_again_is_another_column(
    run: Run, catalogue: Catalogue, snapshot: SnapshotAssertion
) -> None:
    """Its old name's values are the renamed column's until the table is read again."""
    catalogue.tables[:] = [PLANS]
    run("add", "shop.plans")
    columns, answers = EVOLUTIONS["renamed"]
    catalogue.tables[:] = [replace(PLANS, columns=(PLANS.columns[0], *columns))]
    run("diff", "--apply", *answers)
    catalogue.tables[:] = [replace(PLANS, columns=(PLANS.columns[0], *columns, PLAN))]
    said = [run("diff", "--apply"), run("diff", "--apply", "--renamed", "shop.plans.a=b")]
    assert said == snapshot
    assert run("diff", "--dropped", "shop.plans.a").endswith("[2]\n")


def test_table_is_compared_with_the_connector_that_captures_it(
    run: Run, catalogue: Catalogue
) -> None:
    """Not with another one of its prefix, which leaves a column out."""
    run("add", "shop.vendors")
    written = CONNECTOR.read_text()
    configure("table.include.list=shop.none; column.exclude.list=shop.*s")
    other = Path("connectors/other.json")
    CONNECTOR.rename(other)
    CONNECTOR.write_text(written)
    new = column("ratings smallint # 1 to 5")
    catalogue.tables[:] = [replace(VENDORS, columns=(*VENDORS.columns, new))]
    files = [str(CONNECTOR), str(other)]
    for first, second in (files, files[::-1]):
        places = ("--connector", first, "--connector", second)
        said = "\nshop.vendors.ratings: new column (source int)\n\n[3]\n"
        assert run("diff", *places).endswith(said)
    assert "+        description: 1 to 5\n" in run("diff", "--apply", *places)


def test_what_a_connector_does_not_send(
    run: Run, catalogue: Catalogue, snapshot: SnapshotAssertion
) -> None:
    """The shipped one sends all; `add` says it of another one, as `diff` does."""
    catalogue.tables[1] = replace(LINES, cascades=("lines\ndrop table x;",))
    catalogue.log.update(binlog_format="ROW", binlog_row_image="NOBLOB")
    flat = f"skipped.operations=none; transforms=flat; transforms.flat.type={UNWRAP}"
    flat += "; transforms.flat.replace.null.with.default=false"
    handling = "transforms.flat.delete.tombstone.handling.mode=rewrite-with-tombstone"
    said = {}
    for text in (
        "skipped.operations=none",
        "skipped.operations=",
        "skipped.operations=t, d",
        flat,
        f"{flat}; {handling}",
    ):
        configure(text)
        printed = run("add", "shop.lines", "--dry-run").splitlines()
        said[text] = [line for line in printed if line.startswith("-- ")]
    assert said == snapshot


def test_changed_key_is_left_to_the_user(run: Run, catalogue: Catalogue) -> None:
    run("add", "shop.vendors")
    catalogue.tables[:] = [replace(VENDORS, key=("id", "company_name"), identities=())]
    assert run("diff", "--apply") == (
        "$ diff --apply\nshop.vendors: key (declared id, source id, company_name)\n\n[3]\n"
    )


# Of each type one that it holds, and one whose values it would lose.
HELD = {
    "bigint": ("int", "string"),
    "int": ("int", "bigint"),
    "string": ("int", "json full"),
    "string hashed": ("string", "json full"),
    "decimal(14,4)": ("decimal(12,2)", "decimal(12,2) base64"),
    "decimal(12,4)": ("decimal(12,4)", "decimal(12,2)"),
    "decimal(11,2)": ("decimal(11,2)", "int"),
    "decimal(12,2)": ("int", "decimal(12,2) base64"),
    "decimal(14,2) base64": ("decimal(12,2) base64", "decimal(12,4) base64"),
    "timestamp": ("timestamp", "timestamp(3)"),
    "json": ("json", "string"),
}


def test_type_that_holds_another() -> None:
    for declared, (held, lost) in HELD.items():
        assert (holds(declared, held), holds(declared, lost)) == (True, False), declared


def test_resync_says_what_is_missing(
    run: Run, catalogue: Catalogue, snapshot: SnapshotAssertion
) -> None:
    """Before it asks the source for anything."""
    said = [run("resync", "shop.vendors")]
    run("add", "shop")
    topics = TOPICS.read_text()
    TOPICS.write_text(topics.replace('"shop.shop.vendors"', '"x"'))
    said.append(run("resync", "shop.vendors"))
    # The topics file lists the table, and not that of the markers.
    TOPICS.write_text(topics.replace(".complete_snapshots", ".x"))
    said.append(run("resync", "shop.vendors"))
    TOPICS.write_text(topics)
    configure("-signal.data.collection")
    assert [*said, run("resync", "shop.vendors")] == snapshot


def test_tables_of_resync_are_not_declared(run: Run, catalogue: Catalogue) -> None:
    """They are captured, and no data."""
    names = ("complete_snapshots", "shop_signals", "region")
    catalogue.tables = [table(f"cdc_lakehouse.{name}") for name in names]
    said = run("add", "cdc_lakehouse")
    assert "stg_region.sql" in said
    assert "stg_shop_signals" not in said and "stg_complete_snapshots" not in said
