"""The dashboard of a lake on S3 (moto's)."""

from __future__ import annotations

import pytest

from serving.dashboard.__main__ import main
from tests.support.aws import Aws
from tests.support.old_lakes import unpack


@pytest.fixture(scope="module")
def lake(aws: Aws, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A lake of version 1.2.0, without its URL's scheme."""
    folder = tmp_path_factory.mktemp("lake")
    unpack(folder, "1.2.0")
    aws.upload(folder / "warehouse", "lake", "here/warehouse")
    return "lake/here"


def test_page_is_an_object_of_the_lake(
    lake: str,
    aws: Aws,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LAKE_ROOT", f"s3a://{lake}")
    assert main([]) == 0
    assert capsys.readouterr().out.startswith(f"wrote s3://{lake}/dashboard.html (")
    page = aws.client("s3").get_object(Bucket="lake", Key="here/dashboard.html")
    assert page["ContentType"] == "text/html; charset=utf-8"
    assert "Alfreds Futterkiste" in page["Body"].read().decode()


def test_lake_without_gold_is_an_error(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAKE_ROOT", "s3a://lake/typo")
    assert main([]) == 1
    assert "below s3://lake/typo; build it first" in capsys.readouterr().err


def test_bucket_that_is_not_there_is_an_error(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAKE_ROOT", "s3://not-there/lake")
    assert main([]) == 1
    assert "NoSuchBucket" in capsys.readouterr().err


def test_lake_of_another_store_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAKE_ROOT", "gs://bucket/lake")
    assert main([]) == 1
    assert "reads a lake in a folder or on S3" in capsys.readouterr().err
