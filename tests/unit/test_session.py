"""Which settings a session gets; without starting Spark."""

from __future__ import annotations

from typing import Any

import pytest

from lake import session, settings
from lake.errors import UserError
from lake.settings import as_properties, embedded_settings, lake_settings


class Builder:
    """``SparkSession.builder``, which only remembers."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    def enableHiveSupport(self) -> Builder:  # noqa: N802
        return self

    def config(self, name: str, value: str) -> Builder:
        self.given[name] = value
        return self

    def getOrCreate(self) -> Any:  # noqa: N802
        return self


class Context:
    """``SparkContext`` beside a JVM that spark-submit started."""

    _active_spark_context: Any = None

    @staticmethod
    def _ensure_initialized() -> None:
        pass


class Conf(dict[str, str]):
    """A session's configuration, or what spark-submit was given."""

    def contains(self, name: str) -> bool:
        return name in self


class Session:
    """A running session."""

    def __init__(self, conf: dict[str, str]) -> None:
        self.conf = Conf(conf)


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    """Has ``lake.session`` use it; no Spark is there."""
    builder = Builder()
    monkeypatch.setattr(session, "SparkContext", Context)
    monkeypatch.setattr("lake.session.SparkSession.builder", builder)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("LAKE_ROOT", "s3a://bucket/lake")
    return builder


def test_embedded_where_there_is_none(
    builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[dict[str, str]] = []
    monkeypatch.setattr("lake.session.Path.exists", lambda self: True)
    monkeypatch.setattr("lake.session.java.start", launched.append)
    monkeypatch.setattr(session, "_forget_sources", lambda session: None)
    session.spark_session(has_catalogue=False)
    assert [builder.given] == launched == [embedded_settings()]


def test_spark_submit_wins(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    """And neither its master nor its jars are replaced."""
    given = Conf({"spark.sql.warehouse.dir": "hdfs:///warehouse", "spark.master": "yarn"})
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr(session, "SparkConf", lambda: given)
    session.spark_session()
    assert builder.given.keys() == lake_settings().keys() - given.keys()


def test_session_that_is_there_is_used(
    builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Session(lake_settings())
    monkeypatch.setattr(Context, "_active_spark_context", "a context")
    monkeypatch.setattr(builder, "getOrCreate", lambda: running)
    assert session.spark_session() is running  # type: ignore[comparison-overlap]
    assert not builder.given


def test_session_without_hudi_is_refused(
    builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = lake_settings() | {"spark.serializer": "other"}
    monkeypatch.setattr(Context, "_active_spark_context", "a context")
    monkeypatch.setattr(builder, "getOrCreate", lambda: Session(conf))
    with pytest.raises(
        UserError, match=r"lacks spark\.serializer=\S+KryoSerializer: start"
    ):
        session.spark_session()


def test_properties_of_a_lake(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has what every Spark needs, and nothing of this machine."""
    monkeypatch.setenv("LAKE_ROOT", "s3a://bucket/lake")
    text = as_properties(settings.lake_settings())
    assert "spark.sql.warehouse.dir s3a://bucket/lake/warehouse\n" in text
    assert "spark.master" not in text
    assert ".venv" not in text
