"""An emulated REST interface of Vertex AI, which keeps requests.

It accepts models for the Model Registry, endpoints, and models for them; its operations are
finished at once.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class Service(ThreadingHTTPServer):
    """The requests that it received: path and body of each."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        """The URL of the service."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_GET(self) -> None:
        name = urlsplit(self.path).path.removeprefix("/v1/")
        resources = ["DEDICATED_RESOURCES"]
        self._answer({"name": name, "supportedDeploymentResourcesTypes": resources})

    def do_POST(self) -> None:
        url = urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({"path": url.path, "body": body})
        self._answer(_finished(url.path.removeprefix("/v1/")))

    def _answer(self, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def _finished(name: str) -> dict[str, Any]:
    """Return the finished operation of a request for a model or an endpoint."""
    location = "/".join(name.split("/")[:4])
    if name.endswith("models:upload"):
        kind, made = "UploadModelResponse", {"model": f"{location}/models/7"}
    elif name.endswith(":deployModel"):
        kind, made = "DeployModelResponse", {"deployedModel": {"id": "1"}}
    else:
        kind, made = "Endpoint", {"name": f"{location}/endpoints/1"}
    response = {"@type": f"type.googleapis.com/google.cloud.aiplatform.v1.{kind}", **made}
    return {"name": f"{location}/operations/1", "done": True, "response": response}


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
