"""An emulated REST interface of Vertex AI, which accepts pipeline jobs and keeps requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


class Service(ThreadingHTTPServer):
    """The requests that it received, and its answer.

    Attributes:
        requests: method, path, query, headers and body of each request.
        refusal: status and message of its answers; None if it accepts jobs.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, Any]] = []
        self.refusal: tuple[int, str] | None = None

    @property
    def url(self) -> str:
        """The URL of the service."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        url = urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.server.requests.append(
            {"path": url.path, "query": query, "headers": dict(self.headers), "body": body}
        )
        if self.server.refusal is None:
            name = f"{url.path.removeprefix('/v1/')}/{query.get('pipelineJobId')}"
            self._answer(200, {"name": name, "state": "PIPELINE_STATE_PENDING"})
        else:
            status, message = self.server.refusal
            self._answer(status, {"error": {"code": status, "message": message}})

    def _answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def serving() -> Iterator[Service]:
    """Run the service during the block."""
    with Service() as service:
        thread = threading.Thread(target=service.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield service
        finally:
            service.shutdown()
            thread.join()


def write_key(path: Path) -> None:
    """Write the key file of a made-up service account."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    account = {
        "type": "service_account",
        "project_id": "my-project",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": "submitter@my-project.iam.gserviceaccount.com",
        "token_uri": "http://127.0.0.1:9/never-asked",
    }
    path.write_text(json.dumps(account))
