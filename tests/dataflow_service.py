"""An emulated Dataflow service, which receives jobs from Dataflow's client and runs them.

    python -m tests.dataflow_service PORT FOLDER

Each job is stored in FOLDER as it was sent. The pipeline is read from the place where the client
staged it, its container is replaced by this process, and Beam's in-memory runner runs it.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from recordgen import storage


class Service(ThreadingHTTPServer):
    """Jobs and their states by id."""

    def __init__(self, port: int, folder: Path) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.folder = folder
        self.states: dict[str, str] = {}
        self.threads: dict[str, threading.Thread] = {}

    def start(self, job: dict[str, Any]) -> dict[str, Any]:
        """Start a job; return the service's answer."""
        name = str(len(self.states))
        (self.folder / f"{name}.json").write_text(json.dumps(job, indent=1))
        self.states[name] = "JOB_STATE_RUNNING"
        self.threads[name] = threading.Thread(target=self._run, args=(name, job), daemon=True)
        self.threads[name].start()
        return self.job(name)

    def wait(self, name: str) -> None:
        """Wait a while for the end of a job, because the client asks only every five seconds."""
        self.threads[name].join(20)

    def job(self, name: str) -> dict[str, Any]:
        """Return the service's answer about a job."""
        return {"id": name, "currentState": self.states[name]}

    def _run(self, name: str, job: dict[str, Any]) -> None:
        try:
            url = job["environment"]["sdkPipelineOptions"]["options"]["pipelineUrl"]
            pipeline = beam_runner_api_pb2.Pipeline.FromString(storage.read_bytes(url))
            for environment in pipeline.components.environments.values():
                environment.urn, environment.payload = python_urns.EMBEDDED_PYTHON, b""
                del environment.dependencies[:]
            FnApiRunner().run_via_runner_api(pipeline, PipelineOptions([])).wait_until_finish()
            self.states[name] = "JOB_STATE_DONE"
        except BaseException:
            self.states[name] = "JOB_STATE_FAILED"
            raise


class Handler(BaseHTTPRequestHandler):
    """POST …/jobs starts a job; GET …/jobs/ID returns its state; there are no messages."""

    server: Service

    def do_POST(self) -> None:
        job = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(self.server.start(job))

    def do_GET(self) -> None:
        _, _, rest = self.path.partition("?")[0].partition("/jobs/")
        name, _, about = rest.partition("/")
        self.server.wait(name)
        self._answer({} if about else self.server.job(name))

    def _answer(self, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    Service(int(sys.argv[1]), Path(sys.argv[2])).serve_forever()
