"""The registry's client: addresses, credentials, and which answers are worth a retry."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
from urllib3.util import Retry

from ingest import registry as module
from ingest.registry import IdKind, Registry, UnknownSchemaError
from lake.errors import DONE, FAILED, TRY_AGAIN, UserError
from tests.support.registry import FakeRegistry

SCHEMA = {"type": "record", "name": "A", "fields": [{"name": "a", "type": "int"}]}
TEXT = '{"type": "record", "name": "A", "fields": [{"name": "a", "type": "int"}]}'


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRegistry]:
    for name in ("USER", "PASSWORD", "TOKEN"):
        monkeypatch.delenv(f"REGISTRY_{name}", raising=False)
    quick = module.RETRIES.new(backoff_factor=0)
    assert isinstance(quick, Retry)
    monkeypatch.setattr(module, "RETRIES", quick)
    server = FakeRegistry()
    yield server
    server.stop()


def code_of(server: FakeRegistry, number: int, kind: IdKind = IdKind.FRAMED) -> int:
    """The exit code that a look-up would end a command with."""
    try:
        Registry(server.url).schema(kind, number)
    except UserError as error:
        return error.exit_code
    return DONE


@pytest.mark.parametrize("kind", [IdKind.FRAMED, IdKind.CONTENT])
def test_schema_by_confluents_interface(server: FakeRegistry, kind: IdKind) -> None:
    server.add(7, SCHEMA)
    assert Registry(f"{server.url}/").schema(kind, 7) == TEXT
    assert server.asked == ["/schemas/ids/7"]


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        (IdKind.FRAMED, "globalIds"),
        (IdKind.GLOBAL, "globalIds"),
        (IdKind.CONTENT, "contentIds"),
    ],
)
def test_schema_by_apicurios_own_interface(
    server: FakeRegistry, kind: IdKind, address: str
) -> None:
    server.add_apicurio(address.removesuffix("s"), 7, SCHEMA)
    assert Registry(f"{server.url}/apis/registry/v2").schema(kind, 7) == TEXT
    path = f"/apis/registry/v2/ids/{address}/7"
    assert server.asked == [path, f"{path}/references"]


def test_global_id_at_confluents_interface_is_an_error(server: FakeRegistry) -> None:
    """There, the same number is the id of another thing."""
    server.add(7, SCHEMA)
    with pytest.raises(UserError, match="--registry http://HOST:PORT/apis/registry/v2"):
        Registry(server.url).schema(IdKind.GLOBAL, 7)
    assert server.asked == []


@pytest.mark.parametrize("path", ["", "/apis/registry/v2"])
def test_unknown_id(server: FakeRegistry, path: str) -> None:
    with pytest.raises(UnknownSchemaError, match="the registry has no schema 8"):
        Registry(f"{server.url}{path}").schema(IdKind.FRAMED, 8)


def test_schema_that_is_no_avro(server: FakeRegistry) -> None:
    server.add(1, SCHEMA, schemaType="PROTOBUF")
    with pytest.raises(UnknownSchemaError, match="schema 1 is PROTOBUF, not Avro"):
        Registry(server.url).schema(IdKind.FRAMED, 1)


# As Apicurio's converter registers Debezium's envelope: each record by itself.
POINT = {"type": "record", "name": "Point", "namespace": "geo", "fields": []}
VALUE = {
    "type": "record",
    "name": "Value",
    "namespace": "a.b",
    "fields": [{"name": "p", "type": ["null", "geo.Point"]}],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "a.b",
    "fields": [
        {"name": "before", "type": ["null", "Value"]},
        {"name": "after", "type": ["null", {"type": "Value"}]},
        {"name": "points", "type": {"type": "array", "items": "geo.Point"}},
    ],
}
WHOLE = {
    **ENVELOPE,
    "fields": [
        {
            "name": "before",
            "type": ["null", {**VALUE, "fields": [{"name": "p", "type": ["null", POINT]}]}],
        },
        {"name": "after", "type": ["null", {"type": "a.b.Value"}]},
        {"name": "points", "type": {"type": "array", "items": "geo.Point"}},
    ],
}


def test_types_of_other_schemas_are_put_in_their_places(server: FakeRegistry) -> None:
    """By either interface, once, and where Avro's parser reads them first."""
    to_value = {"name": "a.b.Value", "subject": "a.b.Value", "version": 1}
    to_point = {"name": "geo.Point", "subject": "geo/Point", "version": 2}
    server.add(7, ENVELOPE, references=[to_value, to_point])
    value, point = json.dumps(VALUE), json.dumps(POINT)
    server.answers |= {
        "/subjects/a.b.Value/versions/1": (
            200,
            {"schema": value, "references": [to_point]},
        ),
        "/subjects/geo%2FPoint/versions/2": (200, {"schema": point}),
    }
    assert json.loads(Registry(server.url).schema(IdKind.FRAMED, 7)) == WHOLE

    own_value = {"name": "Value", "groupId": None, "artifactId": "v", "version": "1"}
    own_point = {"name": "geo.Point", "groupId": "g", "artifactId": "p", "version": "3"}
    server.add_apicurio("globalId", 7, ENVELOPE, [own_value])
    server.add_path("groups/default/artifacts/v/versions/1", VALUE, [own_point])
    server.add_path("groups/g/artifacts/p/versions/3", POINT)
    registry = Registry(f"{server.url}/apis/registry/v2")
    assert json.loads(registry.schema(IdKind.FRAMED, 7)) == WHOLE


def test_type_that_the_registry_lost_is_an_unknown_schema(server: FakeRegistry) -> None:
    reference = {"name": "Value", "groupId": None, "artifactId": "v", "version": "1"}
    server.add_apicurio("globalId", 7, ENVELOPE, [reference])
    registry = Registry(f"{server.url}/apis/registry/v2")
    with pytest.raises(UnknownSchemaError, match="the registry has no Value"):
        registry.schema(IdKind.GLOBAL, 7)


@pytest.mark.parametrize("path", ["/elsewhere", "/elsewhere/apis/registry/v2"])
def test_address_without_a_registry_is_no_unknown_id(
    server: FakeRegistry, path: str
) -> None:
    """With the rejection of every record, a wrong option would look like bad data."""
    with pytest.raises(UserError, match="is no schema registry"):
        Registry(f"{server.url}{path}").schema(IdKind.FRAMED, 7)
    server.answers["/schemas/ids/7"] = (200, "<html>Welcome</html>")
    with pytest.raises(UserError, match="is no schema registry"):
        Registry(server.url).schema(IdKind.FRAMED, 7)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_busy_registry_is_asked_again_and_then_worth_another_run(
    server: FakeRegistry, status: int
) -> None:
    server.answers["/schemas/ids/7"] = (status, "")
    assert code_of(server, 7) == TRY_AGAIN
    assert len(server.asked) == 4


def test_registry_that_is_down_is_worth_another_run(server: FakeRegistry) -> None:
    server.stop()
    assert code_of(server, 7) == TRY_AGAIN


@pytest.mark.parametrize("status", [400, 401, 403])
def test_refusal_remains(server: FakeRegistry, status: int) -> None:
    server.answers["/schemas/ids/7"] = (status, "")
    assert code_of(server, 7) == FAILED
    assert len(server.asked) == 1


def test_credentials_come_from_the_environment(
    server: FakeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add(7, SCHEMA)
    Registry(server.url).schema(IdKind.FRAMED, 7)
    monkeypatch.setenv("REGISTRY_TOKEN", "abc")
    Registry(server.url).schema(IdKind.FRAMED, 7)
    monkeypatch.setenv("REGISTRY_USER", "reader")
    monkeypatch.setenv("REGISTRY_PASSWORD", "s3cret")
    Registry(server.url).schema(IdKind.FRAMED, 7)
    basic = f"Basic {base64.b64encode(b'reader:s3cret').decode()}"
    assert server.authorizations == [None, "Bearer abc", basic]


@pytest.mark.parametrize("url", ["localhost:8081", "ftp://host/", "http://"])
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(UserError, match="is no URL"):
        Registry(url)


def test_password_in_the_url_is_refused_and_not_shown() -> None:
    with pytest.raises(UserError, match="REGISTRY_PASSWORD") as raised:
        Registry("https://reader:s3cret@host/")
    assert "s3cret" not in str(raised.value)
