"""Pagila's models are what ``add`` writes, and its analyses answer as the source does."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cdc_lakehouse.cli import main
from examples.pagila.source import RATINGS, UNAVAILABLE, Collection
from lab.stack.postgres import PostgresServer
from tests.conftest import NewLake
from tests.support.project import PAGILA, new_project
from tests.support.source_database import Database

pytestmark = pytest.mark.thorough

Answer = list[tuple[str, ...]]


def test_add_writes_the_models(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a PostgreSQL with the tables, into a project of ``init``."""
    source = Database(postgres, "postgres")
    with source.cursor() as cursor:
        cursor.execute((PAGILA / "schema.sql").read_text())
    found = source.environment()
    project = new_project(tmp_path / "pagila", **found)
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(project)
    assert main(["add", "public.*"]) == 0
    written, held = (
        {
            str(file.relative_to(folder)): file.read_text()
            for pattern in ("topics.toml", "connectors/*", "models/s*/*")
            for file in folder.glob(pattern)
        }
        for folder in (project, PAGILA)
    )
    assert len(written) == 28
    assert held == written


@pytest.fixture(scope="module")
def collection() -> Collection:
    return Collection()


@pytest.fixture(scope="module")
def answers(new_lake: NewLake, collection: Collection) -> dict[str, Answer]:
    """What each analysis gives, as texts, after the first rows and after changes."""
    lake = new_lake(project=PAGILA)
    for change in (collection.fill, lambda: collection.change(80)):
        change()
        written = collection.write(lake.landing)
        assert lake.ingest().counts == (written, written, 0, 0)
        lake.dbt("build")
    target = lake.dbt("compile", "-s", "path:analyses")["target"]
    folder = Path(target) / "compiled/pagila/analyses"
    return {
        file.stem: [tuple(row) for row in lake.sql(file.read_text())]
        for file in folder.glob("*.sql")
    }


def expected(collection: Collection) -> dict[str, list[tuple[Any, ...]]]:
    """The same answers, of the source's rows."""
    rows = {
        table: [row for _, row in sorted(found.items())]
        for table, found in collection.rows.items()
    }
    films = rows["film"]
    languages = {row["language_id"]: row["name"].strip() for row in rows["language"]}
    categories = {row["category_id"]: row["name"] for row in rows["category"]}
    of_category = Counter(categories[row["category_id"]] for row in rows["film_category"])
    of_language = Counter(languages[row["language_id"]] for row in films)
    of_actor = Counter(row["actor_id"] for row in rows["film_actor"])
    of_rating = {
        rating: sorted(
            (row for row in films if row["rating"] == rating),
            key=lambda row: (-row["length"], row["film_id"]),
        )
        for rating in sorted(RATINGS, key=lambda rating: (rating is None, rating))
    }
    assert min(map(len, of_rating.values())) >= 2
    latest = [
        tuple(row[name] for name in ("film_id", "title", "rating", "rental_rate"))
        for row in films
    ]
    return {
        "latest_films": [
            (*each, row["description"]) for each, row in zip(latest, films, strict=True)
        ],
        "ratings": [
            (rating, len(some), round(sum(row["length"] for row in some) / len(some), 1))
            for rating, some in of_rating.items()
        ],
        "longest_films": [
            (rating, rank, row["title"], row["length"])
            for rating, some in of_rating.items()
            for rank, row in enumerate(some[:2], start=1)
        ],
        "categories": sorted(
            ((name, of_category[name]) for name in categories.values()),
            key=lambda row: (-row[1], row[0]),
        ),
        "languages": sorted(of_language.items(), key=lambda row: (-row[1], row[0])),
        "deleted_scenes": [
            (row["film_id"], row["title"], row["rating"])
            for row in films
            if "Deleted Scenes" in (row["special_features"] or ())
        ],
        "busiest_actors": sorted(
            (
                (key, row["first_name"], row["last_name"], of_actor[key])
                for (key,), row in collection.rows["actor"].items()
            ),
            key=lambda row: (-row[3], row[0]),
        )[:10],
    }


def test_analyses_answer_as_the_source_does(
    answers: dict[str, Answer], collection: Collection
) -> None:
    """And raw events by hand have a placeholder where silver has the value."""
    by_hand = answers.pop("latest_films_of_raw_events")
    for name, rows in expected(collection).items():
        assert answers[name] == [tuple(map(str, row)) for row in rows], name
    assert answers.keys() == expected(collection).keys()
    latest = answers["latest_films"]
    assert [row[:4] for row in by_hand] == [row[:4] for row in latest]
    assert {row[4] for row in by_hand} - {row[4] for row in latest} == {UNAVAILABLE}
