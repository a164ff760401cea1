"""Which settings a session gets; without starting Spark."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml

from cdc_lakehouse.errors import UserError
from cdc_lakehouse.spark import session, settings
from cdc_lakehouse.spark.settings import as_properties, lake_settings
from tests.support.project import PROJECT


class Conf(dict[str, str]):
    """A session's configuration, or what spark-submit was given."""

    contains = dict.__contains__
    set = dict.__setitem__


class Builder(dict[str, str]):
    """``SparkSession.builder``: what it was given, and what runs already."""

    running: Mapping[str, str] = MappingProxyType({})

    def enableHiveSupport(self) -> "Builder":  # noqa: N802  # pyspark's name
        return self

    def config(self, name: str, value: str) -> "Builder":
        self[name] = value
        return self

    def getOrCreate(self) -> Any:  # noqa: N802  # pyspark's name
        return MagicMock(conf=Conf({**self.running, **self}))


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    """Has ``cdc_lakehouse.spark.session`` use it; no Spark is there."""
    builder = Builder()
    context = MagicMock(_active_spark_context=None)
    monkeypatch.setattr(session, "SparkContext", context)
    monkeypatch.setattr("cdc_lakehouse.spark.session.SparkSession.builder", builder)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("LAKE_ROOT", "s3a://bucket/lake")
    return builder


def submit(
    given: dict[str, str], builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Have spark-submit start this process."""
    builder.running = given
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr(session, "SparkConf", lambda: Conf(given))


def test_spark_submit_wins(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    """And neither its master nor its jars are replaced."""
    given = {"spark.sql.warehouse.dir": "hdfs:///warehouse", "spark.master": "yarn"}
    submit(given, builder, monkeypatch)
    session.spark_session()
    assert builder.keys() == lake_settings().keys() - given.keys()


def run_in_context(
    conf: dict[str, str], builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Have somebody else's session run in this process."""
    builder.running = conf
    active = "cdc_lakehouse.spark.session.SparkContext._active_spark_context"
    monkeypatch.setattr(active, "a context")


Start = Callable[[dict[str, str], Builder, pytest.MonkeyPatch], None]


@pytest.mark.parametrize("start", [submit, run_in_context])
def test_what_decides_values_is_set_on_every_session(
    start: Start, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = settings.value_settings()
    start(lake_settings() | dict.fromkeys(values, "another"), builder, monkeypatch)
    found: Any = session.spark_session()
    conf, zones = found.conf, found._jvm.java.util.TimeZone
    zones.getTimeZone.assert_called_once_with("UTC")
    zones.setDefault.assert_called_once_with(zones.getTimeZone.return_value)
    assert {name: conf.get(name) for name in values} == values


def test_what_decides_values_is_set_through_a_thrift_server() -> None:
    profiles = yaml.safe_load((PROJECT / "profiles/profiles.yml").read_text())
    thrift = profiles["cdc_lakehouse"]["outputs"]["thrift"]
    assert thrift["server_side_parameters"] == {
        f"set:{name}": value for name, value in settings.value_settings().items()
    }


@pytest.mark.parametrize("start", [submit, run_in_context])
@pytest.mark.parametrize("found", ["other", ""])
def test_session_without_hudi_is_refused(
    found: str, start: Start, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names each setting that is fixed, its value, and what there is."""
    start(lake_settings() | {"spark.serializer": found}, builder, monkeypatch)
    wanted = r"lacks spark\.serializer=\S+KryoSerializer \(it has (other|none)\): start"
    with pytest.raises(UserError, match=wanted) as error:
        session.spark_session()
    assert f"(it has {found or 'none'})" in str(error.value)


def test_properties_of_a_lake(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has what every Spark needs, and nothing of this machine."""
    monkeypatch.setenv("LAKE_ROOT", "s3a://bucket/lake")
    text = as_properties(settings.lake_settings())
    assert "spark.sql.warehouse.dir s3a://bucket/lake/warehouse\n" in text
    assert "spark.master" not in text
    assert ".venv" not in text
    assert text.count("JavaOptions -Duser.timezone=UTC ") == 2
