"""Test servers: a web server, emulated object stores, and a proxy that injects faults.

All listen on a free port of 127.0.0.1 and end with their ``with`` block.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from ipaddress import IPv4Address
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.clusters import free_port, process

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@contextmanager
def serving(
    handler: Handler,
    sessions: Sequence[aiohttp.ClientSession] = (),
    tls: ssl.SSLContext | None = None,
) -> Iterator[str]:
    """Serve requests in a thread; yield the server's base URL. Close the sessions at the end."""
    ready: Future[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        done = asyncio.Event()
        runner = web.ServerRunner(web.Server(handler, access_log=None), shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        port = runner.addresses[0][1]
        ready.set_result((port, asyncio.get_running_loop(), done))
        await done.wait()
        await runner.cleanup()
        for session in sessions:
            await session.close()

    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # the faults are intended
    thread = threading.Thread(target=asyncio.run, args=[serve()], daemon=True)
    thread.start()
    port, loop, done = ready.result(60)
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(60)


def self_signed(folder: Path) -> ssl.SSLContext:
    """Return a server's TLS context with an untrusted certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now, day = datetime.now(timezone.utc), timedelta(days=1)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - day, now + day)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(_LOCAL)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, none = serialization.Encoding.PEM, serialization.NoEncryption()
    both = certificate.public_bytes(pem)
    both += key.private_bytes(pem, serialization.PrivateFormat.PKCS8, none)
    (folder / "server.pem").write_bytes(both)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return context


_LOCAL = IPv4Address("127.0.0.1")


async def cut(request: web.BaseRequest, body: bytes, *, length: bool = True) -> web.StreamResponse:
    """Answer with half of a body, then close the connection."""
    answer = web.StreamResponse()
    if length:
        answer.content_length = len(body)
    else:
        answer.force_close()  # no Content-Length and not chunked, as in HTTP/1.0
    await answer.prepare(request)
    await answer.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return answer


async def drip(request: web.BaseRequest, length: int) -> web.StreamResponse:
    """Send a byte from time to time: the connection is never silent."""
    answer = web.StreamResponse()
    answer.content_length = length
    await answer.prepare(request)
    while request.transport is not None and request.method == "GET":
        await answer.write(b"x")
        await asyncio.sleep(0.05)
    return answer


#: A proxy's response to a request: a status, or "cut", "reset" or "drip" for the connection.
Fault = int | str


@dataclass
class Proxy:
    """Settings and counters of a proxy.

    Attributes:
        url: base URL of the proxy.
        fault: returns the fault for a request; None to forward it.
        gathered: concurrent requests for images before the first one gets a response.
        busiest: highest number of concurrent requests.
        seen: requests by method and path.
        faults: number of requests with a fault.
    """

    url: str = ""
    fault: Callable[[web.BaseRequest], Fault | None] = lambda request: None
    gathered: int = 0
    busiest: int = 0
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: int = 0

    def reset(self) -> None:
        self.fault = lambda request: None
        self.gathered = self.busiest = self.faults = 0
        self.seen.clear()

    def spoil_first(self, times: int, *faults: Fault, method: str = "") -> None:
        """Inject faults into the first attempts of each request."""
        attempts: Counter[tuple[str, str]] = Counter()

        def fault(request: web.BaseRequest) -> Fault | None:
            if method and request.method != method:
                return None
            key = (request.method, request.path_qs)
            attempts[key] += 1
            chosen = faults[zlib.crc32(repr(key).encode()) % len(faults)]
            return chosen if attempts[key] <= times else None

        self.fault = fault


_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@contextmanager
def proxying(upstream: str) -> Iterator[Proxy]:
    """Forward requests to another server, with faults as set."""
    proxy = Proxy()
    under_way = 0
    sessions: list[aiohttp.ClientSession] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal under_way
        under_way += 1
        proxy.busiest = max(proxy.busiest, under_way)
        proxy.seen[request.method, request.path] += 1
        try:
            if request.headers.get("Expect") == "100-continue" and request.transport:
                request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            while "/images/" in request.path and proxy.busiest < proxy.gathered:
                await asyncio.sleep(0.04)  # leaves time for more requests than allowed
            return await answer(request)
        finally:
            under_way -= 1

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        fault = proxy.fault(request)
        proxy.faults += fault is not None
        if fault == "reset":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if isinstance(fault, int):
            await request.content.read()
            return web.Response(status=fault, text=f"spoilt: {fault}")
        if not sessions:
            sessions.append(aiohttp.ClientSession(auto_decompress=False))
        async with sessions[0].request(
            request.method,
            upstream + request.raw_path,
            headers=[(k, v) for k, v in request.headers.items() if k.lower() != "expect"],
            data=await request.content.read(),
            allow_redirects=False,
        ) as response:
            body = await response.read()
        if fault == "cut" and body:
            return await cut(request, body)
        if fault == "drip" and body:
            return await drip(request, len(body))
        headers = [(k, v) for k, v in response.headers.items() if k.lower() not in _HOP_BY_HOP]
        if request.method == "HEAD" and "Content-Length" in response.headers:
            headers.append(("Content-Length", response.headers["Content-Length"]))
        return web.Response(status=response.status, body=body, headers=headers)

    with serving(handle, sessions) as url:
        proxy.url = url
        yield proxy


@contextmanager
def listed_bucket(
    names: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[dict[str, str]]]:
    """Emulate gs://bucket for listings only; yield the queries of the requests."""
    asked: list[dict[str, str]] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        assert request.path == "/storage/v1/b/bucket/o"
        asked.append(dict(request.query))
        items = [
            {"name": name, "size": "7", "generation": f"1{n:04}"}
            for n, name in enumerate(names)
            if name >= request.query["startOffset"]
        ]
        start = int(request.query.get("pageToken", "0"))
        end = start + int(request.query["maxResults"])
        more = {"nextPageToken": str(end)} if end < len(items) else {}
        return web.json_response({"items": items[start:end], **more})

    with serving(answer) as url:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", url)
        yield asked


# Google's emulator queues five connections; clients try the others again after a second.
_QUEUE = "import socketserver; socketserver.TCPServer.request_queue_size = 128"
_MANY_CONNECTIONS = f"{_QUEUE}; from gcp_storage_emulator.__main__ import main; main()"


@contextmanager
def emulated_gcs() -> Iterator[str]:
    """Emulate Google Cloud Storage; yield its base URL."""
    with _process("-c", _MANY_CONNECTIONS, "start", "--in-memory", "--host", "127.0.0.1") as url:
        yield url


@contextmanager
def emulated_s3() -> Iterator[str]:
    """Emulate S3; yield its base URL."""
    with _process("-m", "moto.server", "--host", "127.0.0.1") as url:
        yield url


@contextmanager
def _process(*command: str) -> Iterator[str]:
    """Run a server that takes ``--port`` in its own process, and so on its own core."""
    port = free_port()
    with process([*command, "--port", str(port)], port):
        yield f"http://127.0.0.1:{port}"
