"""Gold as it is served: over HTTP by a real server, and as a page; a small lake has it."""

import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import requests
import uvicorn
from bs4 import BeautifulSoup
from syrupy.assertion import SnapshotAssertion

from cdc_lakehouse.cli import main
from cdc_lakehouse.errors import TransientError
from cdc_lakehouse.serving import athena
from cdc_lakehouse.serving.api import cache
from cdc_lakehouse.serving.api.answers import RUNNING, WAITING, Answers
from cdc_lakehouse.serving.api.app import create_app
from cdc_lakehouse.serving.api.engines import answer_here, answer_in_athena, literal
from cdc_lakehouse.serving.api.questions import Column, Question, duckdb_over, questions_of
from cdc_lakehouse.serving.dashboard.content import INPUTS, ORDERS, Content
from cdc_lakehouse.serving.dashboard.page import page_of
from cdc_lakehouse.serving.manifest import Manifest
from lab.stack import jars
from tests.support.aws import Aws
from tests.support.dashboard import FULL, RENDERED
from tests.support.project import parsed
from tests.support.tables import SMALL_LAKE, Tables

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TYPES = pa.table(
    {
        "id": [1, 2, 3, 4],
        "text": ["b'; drop table x --", "a", None, "a"],
        "amount": pa.array(map(Decimal, ("1.50", "-2", "0", "1.5")), pa.decimal128(9, 2)),
        "ratio": [0.5, None, 1.5, 2.0],
        "day": [date(2026, 1, 1), None, date(2026, 2, 1), date(2025, 1, 1)],
        "at": pa.array([NOON, None] * 2, pa.timestamp("us", "UTC")),
        "flag": [True, False, None, True],
        "words": [["x"], [], None, ["y", "z"]],
    }
)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tables:
    """A small lake, which is the one that the commands read."""
    jars.unpack(SMALL_LAKE, tmp_path)
    monkeypatch.setenv("LAKE_ROOT", str(tmp_path))
    return Tables(tmp_path)


@pytest.fixture
def project(manifest: dict[str, Any]) -> Manifest:
    """What dbt knows of ours, with other analyses."""
    nodes = {
        key: node
        for key, node in manifest["nodes"].items()
        if node["resource_type"] == "model"
    }
    for file in (Path(__file__).parent / "analyses").iterdir():
        nodes[f"analysis.x.{file.stem}"] = {
            "resource_type": "analysis",
            "name": file.stem,
            "description": "",
            "raw_code": file.read_text(),
            "original_file_path": str(file),
            "depends_on": {"nodes": ["model.cdc_lakehouse.order_items"]},
        }
    return Manifest({**manifest, "nodes": nodes})


@contextmanager
def serving(
    lake: Path | str, project: Manifest, engine: Any = None, **options: Any
) -> Iterator[Callable[..., requests.Response]]:
    """Serve at a free port, and ask there."""
    questions = list(questions_of(project, lake, "lake", lambda text: None))
    answers = Answers(
        lake,
        engine or partial(answer_here, lake),
        options.get("kept") or cache.Memory(),
        options.get("seconds", 30),
    )
    app = create_app(questions, answers, key=options.get("key"), max_rows=100)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as bound, requests.Session() as session:
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/"

        def ask(path: str, **headers: str | bytes) -> requests.Response:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            return session.get(url + path, headers=sent, timeout=30)

        try:
            yield ask
        finally:
            server.should_exit = True
            thread.join()


def rows(answer: requests.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json(parse_float=Decimal)["rows"]
    return found


def test_tables_and_analyses_are_answered(lake: Tables, project: Manifest) -> None:
    left_out: list[str] = []
    asked = questions_of(project, lake.folder, "lake", left_out.append)
    served = {question.path for question in asked}
    tables = [name for name in lake.names() if name.startswith("gold.")]
    paths = {name: name.replace(".", "/") for name in tables}
    assert served == {*paths.values(), "analyses/last_two", "analyses/lines"}
    said = dict(text.split(" is left out: ") for text in left_out)
    assert 'column "nothing" not found' in said["analyses/broken"]
    assert "Cannot access file" in said["analyses/outside"]
    with serving(lake.folder, project) as ask:
        for name, path in paths.items():
            found = [[*map(str, row.values())] for row in rows(ask(path))]
            assert found == [[*map(str, row.values())] for row in lake.rows(name)]
        assert found

        def orders(asked: str) -> list[int]:
            return [row["order_id"] for row in rows(ask(f"analyses/{asked}"))]

        line = rows(ask("analyses/lines"))[0]
        assert line == {"order_id": 4, "product_id": 11, "revenue": Decimal("168.0000")}
        assert orders("lines") == [4, 3, 2, 1]
        # A limit of its own decides which rows; their order is that of the columns.
        assert orders("last_two") == [3, 4]
        assert orders("lines?order_id.max=3&order_id.min=2") == [2, 3]
        # Order 2 is deleted, and has no revenue.
        assert orders("lines?order=-revenue&order=-order_id") == [4, 3, 1, 2]
        assert orders("lines?limit=2") + orders("lines?limit=2&offset=2") == [4, 3, 2, 1]
        pages = [ask(f"analyses/lines?limit=2&offset={n}").json() for n in (0, 2)]
        assert [page["next_offset"] for page in pages] == [2, None]
        commits = {"silver.order_items": "2026-11-21T23:40:58.038000Z"}
        assert [page["commits"] for page in pages] == [commits, commits]


def test_page_describes_what_can_be_asked(lake: Tables, project: Manifest) -> None:
    wrong = "no_such_column=1 order=order_id%20desc order=1;drop%20table%20x order_id=one"
    wrong += " order_id=9223372036854775808 revenue=1.00001 limit=0 limit=101 offset=-1"
    with serving(lake.folder, project) as ask:
        assert 'src="/static-offline-docs/swagger-ui-bundle.js"' in ask("").text
        assert ask("static-offline-docs/swagger-ui-bundle.js").status_code == 200
        paths = ask("openapi.json").json()["paths"]
        for asked in (*wrong.split(), "limit=1;select%201"):
            assert ask(f"analyses/lines?{asked}").status_code == 422, asked
    about = paths["/gold/revenue_by_customer"]["get"]
    assert about["description"].startswith("One row per customer that has bought something")
    parameters = {each["name"]: each for each in about["parameters"]}
    least = parameters["revenue.min"]["description"]
    assert least == "At least. Sum of the lines' revenue."
    assert parameters["limit"]["schema"]["maximum"] == 100
    assert "-revenue" in parameters["order"]["schema"]["items"]["enum"]
    lines = paths["/analyses/lines"]["get"]["description"]
    assert lines == "The lines of all orders, the last order first."


def test_values_are_parameters_of_their_types() -> None:
    columns = tuple(Column(field.name, field.type, "") for field in TYPES.schema)
    question = Question("gold/x", "", "select * from lake_gold.x", False, {}, {}, columns)

    def ids(*filters: tuple[str, str, Any], order: tuple[str, ...] = ()) -> list[int]:
        sql, values = question.statement(filters, order, 0, 9)
        assert not any(str(value) in sql for _, _, value in filters)
        with duckdb_over({"lake_gold.x": TYPES}) as connection:
            return [row[0] for row in connection.execute(sql, values).fetchall()]

    assert ids(("text", "", "b'; drop table x --")) == [1]
    assert ids(("text", "", "' or '1' = '1")) == []
    assert ids(("amount", ".min", Decimal("1.5"))) == [1, 4]
    assert ids(("ratio", ".max", 0.75)) == [1]
    assert ids(("day", ".min", date(2025, 2, 1)), ("day", ".max", date(2026, 1, 1))) == [1]
    assert ids(("at", "", NOON.astimezone(timezone(timedelta(hours=1))))) == [1, 3]
    assert ids(("at", "", NOON.replace(tzinfo=None))) == [1, 3]
    assert ids(("flag", "", True)) == [1, 4]
    assert ids(order=("-text", "-id")) == [1, 4, 2, 3]
    assert ids(order=("text",)) == [2, 4, 1, 3]


@pytest.mark.parametrize("has_cache", [True, False])
def test_an_answer_is_kept_until_its_table_changes(
    has_cache: bool, lake: Tables, project: Manifest
) -> None:
    """And runs once where many ask; without the Redis that it was told of, too."""
    runs: list[str] = []

    def engine(question: Question, *arguments: Any) -> Any:
        runs.append(question.path)
        time.sleep(1)
        return answer_here(lake.folder, question, *arguments)

    kept = cache.Memory() if has_cache else cache.Redis("redis://127.0.0.1:1")
    with serving(lake.folder, project, engine, kept=kept) as ask:
        with ThreadPoolExecutor(5) as pool:
            first, *others = pool.map(ask, ["analyses/lines?limit=1"] * 5)
        assert len(runs) == 1
        others.append(ask("analyses/lines?limit=1"))
        tag = first.headers["ETag"]
        said = {(each.content, each.headers["ETag"]) for each in others}
        assert said == {(first.content, tag)}
        assert len(runs) == (1 if has_cache else 2)
        for tags in (tag, f'"other", W/{tag}', "*"):
            known = ask("analyses/lines?limit=1", If_None_Match=tags)
            assert (known.status_code, known.content) == (304, b"")
        assert len(rows(ask("analyses/lines?limit=2", If_None_Match=tag))) == 2
        lake.commit_later("silver.orders", hours=1)
        assert ask("analyses/lines?limit=1").headers["ETag"] == tag
        runs.clear()
        lake.commit_later("silver.order_items", hours=1)
        newer = ask("analyses/lines?limit=1", If_None_Match=tag).json()
        assert [*newer["commits"].values()] == ["2026-11-22T00:40:58.038000Z"]
        assert len(runs) == 1


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "BYTES_IN_MEMORY", 10)
    memory = cache.Memory()
    for name in ("a", "b", "a"):
        memory.put(name, b"1234")
    memory.get("b")
    memory.put("c", b"1234")
    assert [memory.get(name) for name in "abc"] == [None, b"1234", b"1234"]
    memory.put("d", b"x" * 11)
    assert [memory.get(name) for name in "bcd"] == [None, None, None]


def test_time_and_waiting_are_limited(lake: Tables, project: Manifest) -> None:
    columns = (Column("n", pa.int64(), ""),)
    endless = "select count(*) as n from range(10000000) as a, range(10000000) as b"
    question = Question("gold/x", "", endless, False, {}, {}, columns)
    with pytest.raises(TimeoutError):
        answer_here(lake.folder, question, question.statement((), (), 0, 1), 0.2)
    go = threading.Event()

    def engine(*arguments: Any) -> Any:
        go.wait(60)
        return []

    with serving(lake.folder, project, engine, seconds=0.2) as ask:
        assert ask("analyses/lines").status_code == 504
        assert ask("health").json() == {"status": "ok"}
        shutil.rmtree(lake.folder / "warehouse")
        gone = ask("gold/revenue_by_month")
        assert (gone.status_code, gone.headers["Retry-After"]) == (503, "5")
        assert str(lake.folder) not in gone.text
        assert ask("health").status_code == 503
        answers = Answers(lake.folder, engine, cache.Memory(), 30)
        for number in range(RUNNING + WAITING):
            answers.compute(answers.look_up(question, ("", [number, 1])))
        with pytest.raises(TransientError, match="too many"):
            answers.compute(answers.look_up(question, ("", [-1, 1])))
        go.set()


def test_who_may_ask(
    lake: Tables, project: Manifest, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = "Bearer sécret".encode()
    with serving(lake.folder, project, key="sécret") as ask:
        for path in ("gold/revenue_by_month", "metrics"):
            assert ask(path).status_code == 401
            assert ask(path, Authorization="Bearer secret").status_code == 401
            assert ask(path, Authorization=sent, Host="api.example.org").status_code == 200
        assert ask("health").status_code == ask("docs").status_code == 200
    with serving(lake.folder, project) as ask:
        assert ask("gold/revenue_by_month", Host="localhost").status_code == 200
        assert ask("gold/revenue_by_month", Host="evil.example.org").status_code == 400
        assert ask("gold/no_such_table").status_code == 404
        text = ask("metrics").text
    assert 'request_seconds_count{endpoint="other",status="404"}' in text
    assert 'request_seconds_count{endpoint="/gold/revenue_by_month",status="200"}' in text
    assert main(["api", "--host", "0.0.0.0"]) == 1
    assert "LAKE_API_KEY is not set: without a key, 0.0.0.0" in capsys.readouterr().err


def test_athena_gets_parameters(
    aws: Aws,
    lake: Tables,
    project: Manifest,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    """Of a lake on S3, whose commits decide there, too."""
    monkeypatch.setattr(athena, "SECONDS_BETWEEN_POLLS", 0)
    aws.upload(lake.folder / "warehouse/gold.db", "lake", "here/warehouse/gold.db")
    group = athena.Athena("primary", "s3://lake/results/")
    names = ["order_month", "count_orders", "count_items", "revenue"]
    aws.queue([*names], ["1997-05-01", "3", None, "504.0000"])
    asked = "gold/revenue_by_month?order_month.min=1997-01-01&revenue.max=1000.5"
    with serving("s3://lake/here", project, partial(answer_in_athena, group)) as ask:
        [row] = rows(ask(f"{asked}&order=-revenue"))
        assert [*row] == names
        assert [*row.values()] == ["1997-05-01", 3, None, Decimal("504.0000")]
        # moto would answer with nothing now.
        assert rows(ask(f"{asked}&order=-revenue")) == [row]
    client = aws.client("athena")
    [query] = client.list_query_executions()["QueryExecutionIds"]
    ran = client.get_query_execution(QueryExecutionId=query)["QueryExecution"]
    times = [NOON.astimezone(timezone(timedelta(hours=1))), NOON.replace(tzinfo=None)]
    literals = [literal(value) for value in ("x' or '1'='1", True, 1.5, *times)]
    assert (ran["Query"], ran["ExecutionParameters"], literals) == snapshot
    running = {"QueryExecution": {"Status": {"State": "RUNNING"}}}
    monkeypatch.setattr(group.client, "get_query_execution", lambda **_: running)
    with pytest.raises(TimeoutError):
        group.run("select 1", seconds=-1)


# The page


def content_with(**columns: Any) -> Content:
    """A row of each table with other values in some columns."""
    tables = (FULL.customers, FULL.months, FULL.categories, FULL.shipments, FULL.waits)
    changed: list[Any] = [[{**rows[-1], **columns}] for rows in tables]
    return Content(*[*changed, [], {}, {}, {}])


CONTENTS = {
    "everything": FULL,
    "nothing": Content([], [], [], [], [], [], {}, {}, {}),
    "no names, no revenue": content_with(
        **dict.fromkeys(("company_name", "shipper_name", "revenue", "revenue_share")),
        **{"avg_hours_to_ship": None, "count_late": 0},
    ),
    "nobody, and less than nothing": content_with(
        customer_id="unknown", shipper_id=None, shipper_name=None, revenue_share=-1
    ),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_what_the_page_says(name: str, snapshot: SnapshotAssertion) -> None:
    """Without a script, block by block; then what each chart draws. Names are text."""
    page = BeautifulSoup(page_of(CONTENTS[name], RENDERED), "html.parser")
    assert page.find_all(onmouseover=True) == []
    blocks = page.select("h1, h2, h3, p, li, dt, dd, tr")
    said = [f"{block.name} {' '.join(block.get_text().split())}" for block in blocks]
    said += [f"{it['id']} {it['role']} {it['aria-label']}" for it in page.select(".chart")]
    [charts] = page.select("#charts")
    for chart, specification in json.loads(str(charts.string)).items():
        for part in [specification, *specification.get("layer", [])]:
            rows = part.get("data", {}).get("values", [])
            said += [f"{chart} {json.dumps(list(row.values()))}" for row in rows]
    assert "\n".join(said) == snapshot


def test_gold_that_is_older_than_silver_is_reported(lake: Tables) -> None:
    """Or was made of such gold; a new column is a commit, and computes nothing."""
    lake.commit_later("silver.customers", hours=9)  # no gold table reads it
    lake.commit_later("silver.order_items", hours=1)
    lake.commit_later("gold.revenue_by_month", hours=2)
    lake.commit_later("gold.revenue_by_category", hours=2, kind="replacecommit")
    assert main(["dashboard"]) == 0
    page = (lake.folder / "dashboard.html").read_text(encoding="utf-8")
    items = BeautifulSoup(page, "html.parser").select("#outdated li")
    assert [item.get_text() for item in items] == [
        f"gold.{name} is older than silver.order_items"
        for name in ("revenue_by_customer", "revenue_by_month", "revenue_by_category")
    ]


def test_inputs_are_what_the_models_read(tmp_path: Path) -> None:
    nodes = parsed(tmp_path, "--vars", "{cdc_lakehouse_history: true}")["nodes"]
    names = {key: f"{node['schema']}.{node['alias']}" for key, node in nodes.items()}
    assert {
        name: sorted(names[parent] for parent in nodes[key]["depends_on"]["nodes"])
        for key, name in names.items()
        if name in INPUTS
    } == INPUTS
    inputs = {name for parents in INPUTS.values() for name in parents}
    gold = {name for name in inputs if name.startswith("gold.")}
    assert gold | {f"gold.{name}" for name in ORDERS} == INPUTS.keys()


def test_page_is_an_object_of_the_lake(
    lake: Tables,
    aws: Aws,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where the lake is on S3 (moto's)."""
    aws.upload(lake.folder / "warehouse", "lake", "here/warehouse")
    monkeypatch.setenv("LAKE_ROOT", "s3a://lake/here")
    assert main(["dashboard"]) == 0
    page = aws.client("s3").get_object(Bucket="lake", Key="here/dashboard.html")
    assert page["ContentType"] == "text/html; charset=utf-8"
    assert "Alfreds Futterkiste" in page["Body"].read().decode()
    for root, reason in (
        ("s3a://lake/typo", "no gold.revenue_by_customer below s3://lake/typo; build it"),
        ("s3://not-there/lake", "NoSuchBucket"),
        ("hdfs://host/lake", "the dashboard reads a lake in a folder or on S3"),
    ):
        monkeypatch.setenv("LAKE_ROOT", root)
        assert main(["dashboard"]) == 1
        assert reason in capsys.readouterr().err
