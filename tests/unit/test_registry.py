"""The registry's client: addresses, credentials, and which answers are worth a retry."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from urllib3.util import Retry

from cdc_lakehouse.errors import FAILED, TRY_AGAIN, UserError
from ingest import registry as module
from ingest.registry import IdKind, Registry, UnknownSchemaError
from tests.support.registry import FakeRegistry

SCHEMA = {"type": "record", "name": "A", "fields": [{"name": "a", "type": "int"}]}
TEXT = json.dumps(SCHEMA)
APICURIO = "/apis/registry/v2"


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


@pytest.mark.parametrize("kind", [IdKind.FRAMED, IdKind.CONTENT])
def test_schema_by_confluents_interface(server: FakeRegistry, kind: IdKind) -> None:
    server.add(7, SCHEMA)
    assert Registry(f"{server.url}/").schema(kind, 7) == TEXT
    assert server.asked == ["/schemas/ids/7"]


@pytest.mark.parametrize("kind", IdKind)
def test_schema_by_apicurios_own_interface(server: FakeRegistry, kind: IdKind) -> None:
    path = "ids/contentIds/7" if kind == IdKind.CONTENT else "ids/globalIds/7"
    server.add_apicurio(path, SCHEMA)
    assert Registry(f"{server.url}{APICURIO}").schema(kind, 7) == TEXT
    asked = f"{APICURIO}/{path}"
    assert server.asked == [asked, f"{asked}/references"]


def test_schema_that_is_not_the_asked_one(server: FakeRegistry) -> None:
    """Unknown, none of Avro's, or, by Confluent's interface, the id of another thing."""
    server.add(1, SCHEMA, schemaType="PROTOBUF")
    with pytest.raises(UnknownSchemaError, match="schema 1 is PROTOBUF, not Avro"):
        Registry(server.url).schema(IdKind.FRAMED, 1)
    for path in ("", APICURIO):
        with pytest.raises(UnknownSchemaError, match="the registry has no schema 8"):
            Registry(f"{server.url}{path}").schema(IdKind.FRAMED, 8)
    asked = len(server.asked)
    with pytest.raises(UserError, match="--registry http://HOST:PORT/apis/registry/v2"):
        Registry(server.url).schema(IdKind.GLOBAL, 1)
    assert len(server.asked) == asked


def test_types_of_other_schemas_are_put_in_their_places(server: FakeRegistry) -> None:
    """By either interface, once, and where Avro's parser reads them first."""
    given = yaml.safe_load(Path(__file__).with_name("registry.yml").read_text())
    for path, answer in given["confluent"].items():
        server.answers[path] = (200, answer | {"schema": json.dumps(answer["schema"])})
    found = Registry(server.url).schema(IdKind.FRAMED, 7)
    assert json.loads(found) == given["whole"]

    for path, answer in given["apicurio"].items():
        server.add_apicurio(path, answer["schema"], answer.get("references"))
    registry = Registry(f"{server.url}{APICURIO}")
    assert json.loads(registry.schema(IdKind.FRAMED, 7)) == given["whole"]
    with pytest.raises(UnknownSchemaError, match="the registry has no Value"):
        registry.schema(IdKind.GLOBAL, 8)


@pytest.mark.parametrize("path", ["/elsewhere", f"/elsewhere{APICURIO}"])
def test_address_without_registry_is_no_unknown_id(server: FakeRegistry, path: str) -> None:
    """With the rejection of every record, a wrong option would look like bad data."""
    with pytest.raises(UserError, match="is no schema registry"):
        Registry(f"{server.url}{path}").schema(IdKind.FRAMED, 7)
    server.answers["/schemas/ids/7"] = (200, "<html>Welcome</html>")
    with pytest.raises(UserError, match="is no schema registry"):
        Registry(server.url).schema(IdKind.FRAMED, 7)


def test_busy_registry_is_asked_again_and_a_refusal_is_final(server: FakeRegistry) -> None:
    """One that is down is worth another run."""
    for status in (429, 500, 502, 503, 504, 400, 401, 403):
        server.asked.clear()
        server.answers["/schemas/ids/7"] = (status, "")
        with pytest.raises(UserError) as raised:
            Registry(server.url).schema(IdKind.FRAMED, 7)
        code, requests = (FAILED, 1) if status in (400, 401, 403) else (TRY_AGAIN, 4)
        assert (raised.value.exit_code, len(server.asked)) == (code, requests)
    server.stop()
    with pytest.raises(UserError) as raised:
        Registry(server.url).schema(IdKind.FRAMED, 7)
    assert raised.value.exit_code == TRY_AGAIN


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
