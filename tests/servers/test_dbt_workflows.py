"""dbt's commands beyond ``build``, as its users run them: what they leave in the lake.

It needs no server; it is in this tier for its minutes.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NewLake
from tests.support.lake import Lake
from tests.support.records import Record, flattened, record
from tests.support.small_project import GOLD, TOPICS, add_gold, small_project

pytestmark = pytest.mark.timeout(900)


def order(offset: int, op: str, key: int, customer_id: str = "ALFKI") -> Record:
    row = {"order_id": key, "customer_id": customer_id, "customer": None}
    return record({"order_id": key}, flattened(op, row, offset), offset)


class Project:
    """A small project and its lake."""

    def __init__(self, lake: Lake, folder: Path) -> None:
        self.lake = lake
        self.folder = small_project(folder)
        add_gold(self.folder)

    def set_gold(self, count: str) -> None:
        model = self.folder / "models" / "gold" / "by_customer.sql"
        model.write_text(GOLD.replace("count(*)", count))

    def ingest(self, *events: Record) -> None:
        self.lake.land(events)
        assert self.lake.ingest().code == 0

    def run(self, *arguments: str) -> dict[str, Any]:
        return self.lake.dbt(*arguments, project=self.folder)

    def customers(self) -> dict[int, str]:
        return {r["order_id"]: r["customer_id"] for r in self.lake.rows("silver.orders")}

    def counts(self) -> dict[str, int]:
        return {r["customer_id"]: r["orders"] for r in self.lake.rows("gold.by_customer")}


def models(answer: dict[str, Any]) -> set[str]:
    """The models that a command built."""
    return {name for name, node in answer["nodes"].items() if node["kind"] == "model"}


@pytest.fixture(scope="module")
def project(new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("workflows")
    topics = folder / "topics.toml"
    topics.write_text(TOPICS)
    project = Project(new_lake(topics), folder / "project")
    project.ingest(order(1, "c", 1), order(2, "c", 2))
    project.run("run", "--threads", "8")
    assert project.counts() == {"ALFKI": 2}
    return project


def test_retry_after_a_failure_with_an_ingest_in_between(project: Project) -> None:
    """The retry builds what failed; the next run reads what arrived meanwhile."""
    project.ingest(order(3, "u", 1, "BONAP"))
    project.set_gold("no_such_function(1)")
    answer = project.lake.try_dbt("run", project=project.folder)
    assert not answer["success"]
    assert project.customers() == {1: "BONAP", 2: "ALFKI"}
    assert project.counts() == {"ALFKI": 2}
    project.ingest(order(4, "c", 3, "CHOPS"))
    project.set_gold("count(*)")
    retried = project.run("retry")
    assert models(retried) == {"by_customer"}
    assert project.counts() == {"ALFKI": 1, "BONAP": 1}
    project.run("run")
    assert project.counts() == {"ALFKI": 1, "BONAP": 1, "CHOPS": 1}


def test_retry_of_a_silver_model_reads_what_arrived_meanwhile(project: Project) -> None:
    silver = project.folder / "models" / "silver" / "orders.sql"
    right = silver.read_text()
    silver.write_text(right + "\nwhere no_such_function(1)")
    project.ingest(order(5, "u", 2, "DRACD"))
    assert not project.lake.try_dbt("run", project=project.folder)["success"]
    silver.write_text(right)
    project.ingest(order(6, "d", 3))
    project.run("retry")
    assert project.counts() == {"BONAP": 1, "DRACD": 1}


def test_modified_models_are_built_with_the_rest_deferred(
    project: Project, tmp_path: Path
) -> None:
    target = Path(project.run("run")["target"])
    state = tmp_path / "state"
    state.mkdir()
    shutil.copy(target / "manifest.json", state)
    project.ingest(order(7, "c", 4, "EASTC"))
    project.set_gold("count(1)")
    arguments = ("-s", "state:modified+", "--defer", "--state", str(state))
    built = project.run("build", *arguments)
    assert models(built) == {"by_customer"}
    assert project.counts() == {"BONAP": 1, "DRACD": 1}
    project.run("run")
    assert project.counts() == {"BONAP": 1, "DRACD": 1, "EASTC": 1}


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "-s", "orders", "--limit", "2"),
        ("compile",),
        ("test",),
        ("run", "--sample", "1 day"),
    ],
    ids=" ".join,
)
def test_commands_that_write_nothing(project: Project, arguments: tuple[str, ...]) -> None:
    before = project.lake.tables.instants()
    project.run(*arguments)
    assert project.lake.tables.instants() == before
