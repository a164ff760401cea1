"""A schema registry's REST interface: the text of a schema, by the id in a record.

``URL/schemas/ids/ID`` is Confluent's, which other registries speak, too: Apicurio at
``/apis/ccompat/v7``, where an id is one of a content. Apicurio's own interface,
``/apis/registry/v2``, has an address for each kind of id that it gives
(``ids/globalIds/ID``, ``ids/contentIds/ID``).
"""

from __future__ import annotations

import json
import os
from enum import StrEnum
from typing import Any
from urllib.parse import quote, urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from urllib3.util import Retry

from cdc_lakehouse.errors import TransientError, UserError

SECONDS_TO_ANSWER = 10
BUSY = (429, 500, 502, 503, 504)
# The restart of one node behind a balancer passes in this time.
RETRIES = Retry(total=3, backoff_factor=0.3, status_forcelist=BUSY, raise_on_status=False)
CONFLUENT_SCHEMA_NOT_FOUND = 40403
APICURIO_SCHEMA_NOT_FOUND = ("ArtifactNotFoundException", "ContentNotFoundException")
APICURIO_PATH = "/apis/registry/v2"


class IdKind(StrEnum):
    """Which of a registry's ids a record has; of one in its bytes, the URL decides."""

    FRAMED = ""
    GLOBAL = "globalId"
    CONTENT = "contentId"


class UnknownSchemaError(Exception):
    """The registry has no schema of an id, or one that is no Avro; the message says it."""


class _Bearer(AuthBase):
    """A token in each request, which a user in ``~/.netrc`` would replace otherwise."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class Registry:
    """A registry at a URL.

    Args:
        url: the base of Confluent's interface, or of Apicurio's own (``APICURIO_PATH``).

    Raises:
        UserError: the URL is none, or has a password in it, where others can see it.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(f"--registry {url} is no URL: http://HOST:PORT or https://…")
        if parts.username is not None:
            raise UserError(
                "--registry has a user in its URL, for everybody to see: set REGISTRY_USER"
                " and REGISTRY_PASSWORD in the environment"
            )
        self.url = url.rstrip("/")
        self.is_apicurio = parts.path.rstrip("/").endswith(APICURIO_PATH)
        self._session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=RETRIES))
        user = os.environ.get("REGISTRY_USER")
        token = os.environ.get("REGISTRY_TOKEN")
        if user is not None:
            self._session.auth = (user, os.environ.get("REGISTRY_PASSWORD", ""))
        elif token is not None:
            self._session.auth = _Bearer(token)

    def schema(self, kind: IdKind, number: int) -> str:
        """The text of an Avro schema, with the types that it refers to in their places.

        Args:
            kind: what the number counts.
            number: the id.

        Raises:
            UnknownSchemaError: there is none of that id, or it is no Avro.
            UserError: the registry refuses to answer, or nothing at the URL is one; a
                ``TransientError`` where it does not answer, or not now.
        """
        path = self._path(kind, number)
        what = f"schema {number}"
        if self.is_apicurio:
            text, references = self._apicurio(path, what)
        else:
            text, references = self._confluent(path, what)
        types: dict[str, Any] = {}
        self._collect(references, types)
        return json.dumps(_whole(json.loads(text), types, None, set())) if types else text

    def _collect(self, references: list[Any], types: dict[str, Any]) -> None:
        """Add the types that a schema refers to, and those that they refer to."""
        for each in references:
            if self.is_apicurio:
                group, artifact = each.get("groupId") or "default", each["artifactId"]
                path = f"groups/{quote(group, '')}/artifacts/{quote(artifact, '')}"
            else:
                path = f"subjects/{quote(each['subject'], '')}"
            path += f"/versions/{each['version']}"
            read = self._apicurio if self.is_apicurio else self._confluent
            text, deeper = read(path, each["name"])
            schema = json.loads(text)
            name = _full_name(schema["name"], schema.get("namespace"))
            if name not in types:
                types[name] = schema
                self._collect(deeper, types)

    def _apicurio(self, path: str, what: str) -> tuple[str, list[Any]]:
        """A schema's text, and the types that it refers to."""
        text = self._found(path, what).text
        return text, list(self._found(f"{path}/references", what).json())

    def _confluent(self, path: str, what: str) -> tuple[str, list[Any]]:
        """The same."""
        try:
            content = self._found(path, what).json()
            text, language = content["schema"], content.get("schemaType", "AVRO")
            references = content.get("references") or []
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._no_registry() from error
        if language != "AVRO":
            raise UnknownSchemaError(f"{what} is {language}, not Avro")
        return str(text), references

    def _found(self, path: str, what: str) -> requests.Response:
        answer = self._get(path)
        if answer.status_code == requests.codes.not_found:
            self._require_registry(answer)
            raise UnknownSchemaError(f"the registry has no {what}")
        return answer

    def _path(self, kind: IdKind, number: int) -> str:
        if self.is_apicurio:
            return f"ids/{kind or IdKind.GLOBAL}s/{number}"
        if kind == IdKind.GLOBAL:
            raise UserError(
                f"the records have Apicurio's global ids, which {self.url} does not know:"
                f" give its own interface, --registry http://HOST:PORT{APICURIO_PATH}"
            )
        return f"schemas/ids/{number}"

    def _get(self, path: str) -> requests.Response:
        try:
            answer = self._session.get(f"{self.url}/{path}", timeout=SECONDS_TO_ANSWER)
        except requests.exceptions.SSLError as error:
            raise UserError(
                f"the registry at {self.url} cannot be trusted: {error}; REQUESTS_CA_BUNDLE"
                " names a file with the certificate of who signed its own"
            ) from error
        except requests.RequestException as error:
            raise TransientError(
                f"the registry at {self.url} does not answer: {error}"
            ) from error
        code = answer.status_code
        if code in (requests.codes.unauthorized, requests.codes.forbidden):
            raise UserError(
                f"the registry at {self.url} refuses to answer ({code}): REGISTRY_USER and"
                " REGISTRY_PASSWORD, or REGISTRY_TOKEN, say in the environment who asks"
            )
        if code in BUSY:
            raise TransientError(f"the registry at {self.url} answers {code}, not now")
        if code not in (requests.codes.ok, requests.codes.not_found):
            raise UserError(
                f"the registry at {self.url} answers {code}: {answer.text[:200]}"
            )
        return answer

    def _require_registry(self, answer: requests.Response) -> None:
        """Tell a schema that is not there from an address that is not there.

        Raises:
            UserError: it is the address; every record would be rejected.
        """
        try:
            content = answer.json()
            if self.is_apicurio:
                is_known = content["name"] in APICURIO_SCHEMA_NOT_FOUND
            else:
                is_known = content["error_code"] == CONFLUENT_SCHEMA_NOT_FOUND
        except (ValueError, KeyError, TypeError) as error:
            raise self._no_registry() from error
        if not is_known:
            raise self._no_registry()

    def _no_registry(self) -> UserError:
        return UserError(
            f"{self.url} is no schema registry: give the base URL of Confluent's interface,"
            f" of Apicurio http://HOST:PORT/apis/ccompat/v7 or …{APICURIO_PATH}"
        )


def _full_name(name: str, namespace: str | None) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _whole(
    schema: Any, types: dict[str, Any], namespace: str | None, defined: set[str]
) -> Any:
    """A schema in which each type of others stands where its name is read first.

    Args:
        schema: a schema or a part of one.
        types: those of others, by their full names.
        namespace: what a name without one belongs to here.
        defined: the names of the types that stand before; added to.
    """
    if isinstance(schema, list):
        return [_whole(each, types, namespace, defined) for each in schema]
    if isinstance(schema, str):
        name = _full_name(schema, namespace)
        if name in defined:
            return name
        if name not in types:
            return schema
        # Its own namespace, or none: not that of where it is put.
        other = {"namespace": "", **types[name]}
        return _whole(other, types, None, defined)
    found = dict(schema)
    if found["type"] in ("record", "enum", "fixed"):
        name = _full_name(found["name"], found.get("namespace", namespace))
        namespace = name.rpartition(".")[0] or None
        defined.add(name)
    if found["type"] == "record":
        found["fields"] = [
            {**each, "type": _whole(each["type"], types, namespace, defined)}
            for each in found["fields"]
        ]
    elif found["type"] == "array":
        found["items"] = _whole(found["items"], types, namespace, defined)
    elif found["type"] == "map":
        found["values"] = _whole(found["values"], types, namespace, defined)
    elif found["type"] not in ("enum", "fixed"):
        found["type"] = _whole(found["type"], types, namespace, defined)
    return found
