"""An emulated REST interface of Vertex AI, which keeps requests.

It accepts pipeline jobs, models for the Model Registry, endpoints, and models for them; its
operations are finished at once.
"""

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

    def do_GET(self) -> None:
        name = urlsplit(self.path).path.removeprefix("/v1/")
        resources = ["DEDICATED_RESOURCES"]
        self._answer(200, {"name": name, "supportedDeploymentResourcesTypes": resources})

    def do_POST(self) -> None:
        url = urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.server.requests.append(
            {"path": url.path, "query": query, "headers": dict(self.headers), "body": body}
        )
        if self.server.refusal is None:
            name = url.path.removeprefix("/v1/")
            if "pipelineJobId" in query:
                job = {"name": f"{name}/{query['pipelineJobId']}"}
                self._answer(200, {**job, "state": "PIPELINE_STATE_PENDING"})
            else:
                self._answer(200, _finished(name))
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
