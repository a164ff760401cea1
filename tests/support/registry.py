"""A schema registry's REST interface with the answers that a test wants."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any]


class FakeRegistry(ThreadingHTTPServer):
    """A server on 127.0.0.1 that answers by path; of other paths it knows nothing.

    Attributes:
        answers: status and body by path; a body that is no text is sent as JSON.
        asked: the paths that were asked for.
        authorizations: the header of each request, None where it had none.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.authorizations: list[str | None] = []
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def add(self, number: int, schema: Any, **others: Any) -> None:
        """Have a schema by Confluent's interface."""
        content = {"schema": json.dumps(schema), **others}
        self.answers[f"/schemas/ids/{number}"] = (200, content)

    def add_apicurio(self, path: str, schema: Any, references: Any = None) -> None:
        """Have a schema by Apicurio's own interface."""
        place = f"/apis/registry/v2/{path}"
        self.answers[place] = (200, json.dumps(schema))
        self.answers[f"{place}/references"] = (200, references or [])

    def stop(self) -> None:
        """End it, and free its port."""
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: FakeRegistry

    def do_GET(self) -> None:  # http.server's name
        self.server.asked.append(self.path)
        self.server.authorizations.append(self.headers["Authorization"])
        status, body = self.server.answers.get(self.path, _unknown(self.path))
        content = body if isinstance(body, str) else json.dumps(body)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(content.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def _unknown(path: str) -> Answer:
    if path.startswith(("/apis/registry/v2/ids/", "/apis/registry/v2/groups/")):
        name = "ArtifactNotFoundException"
        return 404, {"error_code": 404, "message": "No artifact found.", "name": name}
    if path.startswith(("/schemas/ids/", "/subjects/")):
        return 404, {"error_code": 40403, "message": "Schema not found"}
    return 404, {"error_code": 404, "message": "no page", "name": "NotFoundException"}
