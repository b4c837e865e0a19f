"""Storage: test web servers, local files, and the meanings of libraries' errors."""

import asyncio
import errno
import json
import os
import re
import resource
import signal
import socket
import socketserver
import ssl
import zipfile
import zlib
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from threading import Thread

import aiohttp
import fsspec
import pytest
from aiohttp import web
from fsspec.implementations.memory import MemoryFileSystem

import recordgen
from recordgen import errors, storage
from recordgen.conversion.api import store_of
from recordgen.core.records import RECORDS
from recordgen.core.rows.row import PlannedRow
from recordgen.formats.import_file import ImportFile
from recordgen.formats.source import Source
from recordgen.options import ConvertOptions
from recordgen.storage import RequestContext, access, local
from recordgen.storage.access import may_retry
from recordgen.storage.remote import filesystem_of
from recordgen.storage.retries import Meaning, RetryPolicy, meaning, to_error
from tests.clusters import free_port
from tests.conftest import encoded, error_of, noise, write_file
from tests.servers import cut, drip, self_signed, serving

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

IMAGE = encoded(noise(), "JPEG", quality=90)
QUICK_RETRIES = {"RECORDGEN_STORAGE_ATTEMPTS": "3", "RECORDGEN_STORAGE_FIRST_WAIT_SECONDS": "0.01"}


@pytest.fixture
def serve(monkeypatch):
    """Return a function that starts a web server and returns its URL."""
    for name, value in QUICK_RETRIES.items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(serving(answer))
    fsspec.get_filesystem_class("https").clear_instance_cache()


def image(_):
    return web.Response(body=IMAGE, content_type="image/jpeg")


def noting(asked, answer=image):
    """Record the path of each request, and answer it."""

    async def note(request):
        asked.append(request.path)
        return answer(request)

    return note


def import_file(folder, urls):
    """Write an import file with these URLs, and return its path."""
    return write_file(folder / "urls.csv", "".join(f"TRAIN,{url},a\n" for url in urls))


def codes(lines, folder, **options):
    """Check an import file with these URLs; return the reject code of each, or "ok"."""
    settings = {"allow": ["http"], "max_reject_fraction": 1, **options}
    result = recordgen.check(import_file(folder, lines), **settings)
    rejects = {item.line: item.code for item in result.rejects}
    return [rejects.get(line, "ok") for line in range(1, len(lines) + 1)]


# --- responses of servers ---------------------------------------------------------------------


def streamed(how, size=1 << 20):
    """Answer without a length: with chunks of a size, or with the end of the connection."""

    async def answer(request):
        response = web.StreamResponse()
        getattr(response, how)()
        await response.prepare(request)
        for start in range(0, len(IMAGE), size):
            await response.write(IMAGE[start : start + size])
        return response

    return answer


async def compressed(request):
    answer = web.Response(body=IMAGE)
    answer.enable_compression(web.ContentCoding.gzip)
    return answer


def replying(**response):
    """Answer any request so."""

    async def answer(_):
        return web.Response(**response)

    return answer


def with_head(**response):
    """Answer HEAD requests so, and all others with the image."""

    async def answer(request):
        return image(request) if request.method == "GET" else web.Response(**response)

    return answer


def ranged(said):
    """Answer any request with 206 and the image."""
    return replying(status=206, body=IMAGE, headers={"Content-Range": said})


async def endless(request):
    raise web.HTTPFound(request.path + "x")


async def bad_header(request):
    assert request.transport is not None
    request.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n")
    return web.Response()


# server, expected code of its image
ANSWERS = [
    (streamed("enable_chunked_encoding", size=100), "ok"),
    (streamed("force_close"), "ok"),
    (compressed, "ok"),
    *((with_head(status=number), "ok") for number in (403, 405)),
    (with_head(status=206, headers={"Content-Range": "bytes 0-9/99"}), "ok"),
    (with_head(headers={"Content-Length": "0"}), "ok"),
    (with_head(headers={"Content-Length": "10"}), "changed"),
    (replying(body=b""), "empty_file"),
    (replying(text="<html>Not an image</html>", content_type="text/html"), "not_an_image"),
    (endless, "bad_response"),
    (replying(status=304), "bad_response"),
    (bad_header, "bad_response"),
    (ranged(f"bytes 0-{len(IMAGE) - 1}/{len(IMAGE)}"), "ok"),
    (ranged(f"bytes 0-{len(IMAGE) - 1}/{len(IMAGE) + 1}"), "partial_content"),
    (ranged("bytes 1-2/3"), "partial_content"),
    *((replying(status=number), "missing_file") for number in (404, 410)),
    *((replying(status=number), "http_error") for number in (400, 418)),
    *((replying(status=number), "permission_denied") for number in (401, 403)),
]


def test_answers(serve, tmp_path):
    """Servers without sizes or HEAD work; missing and forbidden images have different codes."""
    urls = [f"{serve(answer)}/1.jpg" for answer, _ in ANSWERS]
    assert codes(urls, tmp_path) == [code for _, code in ANSWERS]


def test_rejects_do_not_quote_servers(tmp_path, monkeypatch):
    """What runs on a port is not told: neither the banner of another protocol nor a phrase."""
    monkeypatch.setenv("RECORDGEN_STORAGE_ATTEMPTS", "1")
    answers = [b"SSH-2.0-banner_9\r\n", b"220 banner ESMTP\r\n", b"HTTP/1.1 418 banner\r\n\r\n"]
    with ExitStack() as stack:
        servers = [stack.enter_context(raw_server(answer)) for answer in answers]
        rows = import_file(tmp_path, (f"{server}/1.jpg" for server in servers))
        found = recordgen.check(rows, allow="http", max_reject_fraction=1).rejects
    assert len(found) == len(answers)
    assert not [item for item in found if "banner" in str(item)]


@contextmanager
def raw_server(answer):
    """Answer every connection with these bytes, whatever it asks; yield the URL."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.sendall(answer)
            self.request.recv(1 << 16)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


ODD = ["http://", "http://[bad/1.jpg", "http://a:99999/1.jpg", "http://a b/1.jpg", "http:///1.jpg"]


def test_odd_urls_are_the_rows_fault(serve, tmp_path):
    """Invalid URLs are rejects, also as targets of redirects."""
    url = serve(redirecting(*ODD))
    redirected = [f"{url}/to/{number}" for number in range(4)]  # "http:///a" joins to "/a"
    local = ["a\0b.jpg", f"{'x' * 300}.jpg"]
    expected = {"missing_file", "not_allowed", "bad_line"}
    assert {*codes([*ODD, *redirected, *local], tmp_path)} <= expected | {"bad_response"}
    assert {*codes([*ODD, *local], tmp_path, allow=["http", url, str(tmp_path)])} <= expected


def flaky(times, fault):
    """Fail this many times for each path and method, then return the image."""
    seen = {}

    async def answer(request):
        key = (request.method, request.path)
        seen[key] = seen.get(key, 0) + 1
        return await fault(request) if seen[key] <= times else image(request)

    return answer


async def reset(request):
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def hang(request):
    while request.transport is not None:  # until the client hangs up
        await asyncio.sleep(0.01)
    return web.Response()


def cut_body(**how):
    """Answer GET requests with half of the image."""

    async def answer(request):
        return await cut(request, IMAGE, **how) if request.method == "GET" else image(request)

    return answer


def by_path(**answers):
    """Answer by the first part of the path: ``/reset/1.jpg``."""

    async def answer(request):
        return await answers[request.path.split("/")[1]](request)

    return answer


FAULTS = {
    **{str(number): replying(status=number) for number in (500, 501, 503, 429, 408)},
    "reset": reset,
    "cut": cut_body(),
    "endless": cut_body(length=False),
}


def test_a_dead_url_costs_its_row_only(serve, tmp_path):
    """URLs that fail twice are retried; URLs that always fail become rejects with a remedy."""
    url = serve(
        by_path(**FAULTS, **{f"{name}-twice": flaky(2, fault) for name, fault in FAULTS.items()})
    )
    nowhere = f"http://127.0.0.1:{free_port()}"  # no server listens there
    dead = [f"{url}/{name}/1.jpg" for name in FAULTS]
    dead += [f"{nowhere}/1.jpg", f"{url.replace('http:', 'https:')}/tls/1.jpg"]
    sound = [f"{url}/{name}-twice/{n}.jpg" for name in FAULTS for n in (1, 2)]
    options = {"allow": "http,https", "max_reject_fraction": 1}
    with serving(by_path(**FAULTS), tls=self_signed(tmp_path)) as stranger:
        dead.append(f"{stranger}/501/1.jpg")
        source = import_file(tmp_path, [*dead, *sound])
        result = recordgen.convert(source, tmp_path / "out", **options)
    assert "self-signed certificate" in result.rejects[-1].message
    assert result.dataset.examples == len(sound)
    assert result.dataset.rows.rejected == {"unreachable": len(dead)}
    for item, path in zip(result.rejects, dead, strict=True):
        assert item.uri == path
        tried = r"(tried 3 times in \d+ s|verify failed: self-signed certificate .*)"
        assert re.search(rf"{tried}; convert again when .*, or remove", item.message)
    [hosts] = [line for line in str(result).split("\n") if "No answer" in line]
    assert hosts.startswith(f"No answer  {url} {len(FAULTS)}, ")
    assert f"{nowhere} 1" in hosts


def test_slow_servers_do_not_hold_a_run(serve, tmp_path, monkeypatch):
    """A silent request times out and is retried; all attempts for a file share one limit."""
    options = {"allow": "http", "max_reject_fraction": 1}
    # Only one failure: on a loaded machine, two good answers in a row may come too late.
    monkeypatch.setenv("RECORDGEN_STORAGE_TIMEOUT_SECONDS", "2")
    monkeypatch.setenv("RECORDGEN_STORAGE_ATTEMPTS", "2")
    url = serve(by_path(hang=hang, once=flaky(1, hang), drip=partial(drip, length=len(IMAGE))))
    source = import_file(tmp_path, [f"{url}/hang/1.jpg", f"{url}/once/1.jpg"])
    [silent] = recordgen.check(source, **options).rejects
    assert (silent.line, silent.code) == (1, "unreachable")
    assert re.search(r" 2 times in \d+ s", silent.message)
    monkeypatch.delenv("RECORDGEN_STORAGE_TIMEOUT_SECONDS")
    monkeypatch.setenv("RECORDGEN_STORAGE_TOTAL_SECONDS", "0.6")
    source = import_file(tmp_path, [f"{url}/drip/1.jpg"])
    [dripping] = recordgen.check(source, **options).rejects
    assert dripping.code == "unreachable"
    assert "drip/1.jpg: " in dripping.message


def test_when_a_host_counts_as_dead(monkeypatch):
    """Any response resets the count, also to a later request; a trial is sent without retries."""
    url, now = "https://host.example/1.jpg", 100.0
    monkeypatch.setattr(access.time, "monotonic", lambda: now)

    def fails(meanwhile=lambda: None):
        try:
            with access.watched(url):
                meanwhile()
                raise errors.UnreachableError("retried" if may_retry() else "once")
        except errors.UnreachableError as exc:
            return str(exc).removeprefix(f"{url}: ")

    def answers():
        nonlocal now
        now += 1
        with suppress(FileNotFoundError), access.watched(url):
            raise FileNotFoundError

    access.forget_failures()
    assert {fails() for _ in range(15)} == {"retried"}
    answers()
    assert {fails(answers) for _ in range(20)} == {"retried"}  # a later request was answered
    assert {fails() for _ in range(16)} == {"retried"}
    assert "16 requests to https://host.example" in fails()
    now += 60
    assert fails() == "once"
    assert "17 requests to https://host.example" in fails()
    now += 119
    assert fails() != "once"
    now += 1
    with access.watched(url):
        assert not may_retry()
    assert fails() == "retried"


def test_unreachable_files_are_requested_again(serve, tmp_path):
    """A resumed run requests them again when the server is back: their shards are not kept."""
    is_dead = True

    async def half_dead(request):
        if is_dead and "0" in request.path and request.method == "GET":
            return web.Response(status=503)
        return web.Response(body=IMAGE, headers={"ETag": '"1"'})  # without it, no shard is kept

    url = serve(half_dead)
    source = import_file(tmp_path, (f"{url}/{number}.jpg" for number in range(12)))
    args, options = (source, tmp_path / "out"), {"allow": "http", "resume": True}
    with pytest.raises(errors.TooManyRejectsError, match=rf"\(unreachable 2; .*: {url} 2\)"):
        recordgen.convert(*args, **options)
    is_dead = False
    assert recordgen.convert(*args, **options).dataset.examples == 12


def test_an_import_file_that_cannot_be_reached(serve):
    """An unreachable import file ends the run with any option; so does an invalid response."""
    url = serve(by_path(**FAULTS, bad=bad_header))
    for name, reason in (("503", "HTTP 503.* 3 times"), ("bad", "HTTP 400")):
        with pytest.raises(errors.StorageError, match=reason):
            recordgen.check(f"{url}/{name}/a.csv")


def test_an_import_file_that_is_cut_is_read_again(serve, tmp_path):
    """No row is lost or read twice; payloads may be on the same server.

    There are two reads: to detect the format (truncated), and its retry, whose lines are the rows.
    """
    text = "".join(f"TRAIN,images/{number}.jpg,a\n" for number in range(40)).encode()
    attempts = []

    async def answer(request):
        if not request.path.endswith(".csv"):
            return image(request)
        attempts.append(request.method)
        if request.method == "GET" and attempts.count("GET") == 1:
            return await cut(request, text)
        return web.Response(body=text)

    result = recordgen.convert(f"{serve(answer)}/data/labels.csv", tmp_path / "out")
    assert (result.dataset.examples, attempts.count("GET")) == (40, 2)


# --- limits on reading --------------------------------------------------------------------------


def test_large_bodies_are_not_read(serve, tmp_path):
    """An announced size is enough for a refusal; without it, reading ends at the limit."""
    sent = 0

    async def huge(request):
        nonlocal sent
        answer = web.StreamResponse()
        if request.path == "/announced.jpg":
            answer.content_length = 1 << 40
        await answer.prepare(request)
        while request.method == "GET":
            await answer.write(b"x" * 100_000)
            sent += 100_000
        return answer

    url = serve(huge)
    assert codes([f"{url}/announced.jpg"], tmp_path, limit="mb=1") == ["too_many_bytes"]
    assert sent == 0
    assert codes([f"{url}/endless.jpg"], tmp_path, limit="mb=1") == ["too_many_bytes"]
    assert sent < 20_000_000  # the buffers between server and client
    with pytest.raises(errors.FileTooLargeError):
        storage.read_bytes(f"{url}/endless.jpg", 1_000_000)


def test_compressed_bodies_do_not_burst(serve, tmp_path):
    """The unpacked size is checked during unpacking."""
    packer = zlib.compressobj(1, wbits=31)  # gzip
    bomb = b"".join(packer.compress(bytes(1_000_000)) for _ in range(400)) + packer.flush()

    url = serve(replying(body=bomb, headers={"Content-Encoding": "gzip"}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert codes([f"{url}/1.jpg"], tmp_path) == ["too_many_bytes"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


def test_bytes_in_flight_are_bounded(serve, tmp_path):
    """Fewer large payloads are fetched concurrently: 64 MB in total, here 8 with 8 MB each."""
    body, under_way, most, started = b"x" * 8_000_000, 0, 0, 0

    async def answer(request):
        nonlocal under_way, most, started
        if request.method == "HEAD":
            return web.Response(body=body)
        under_way += 1
        most, started = max(most, under_way), started + 1
        try:
            # The last request has no other next to it and must not wait for one.
            while most < 2 and started < 24:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            reply = web.Response(body=body)
            await reply.prepare(request)
            await reply.write_eof()
            return reply
        finally:
            under_way -= 1

    url = serve(answer)
    urls = [f"{url}/{number}.jpg" for number in range(24)]
    assert codes(urls, tmp_path, check="none") == ["ok"] * 24
    assert 2 <= most <= 9


# --- redirects ----------------------------------------------------------------------------------


def redirecting(*targets):
    async def answer(request):
        if request.path.startswith("/to/"):
            target = targets[int(request.path.removeprefix("/to/"))]
            return web.Response(status=302, headers={"Location": target})
        return image(request)

    return answer


def test_redirects_to_private_addresses_are_refused(serve, tmp_path):
    """Any spelling of a private address is refused, except the same server and --allow."""
    asked = []
    inner = serve(noting(asked))
    port = inner.rsplit(":", 1)[1]
    hosts = ["127.1", "2130706433", "0x7f000001", "127.0.0.1", "localhost", "[::ffff:127.0.0.1]"]
    hosts += ["0.0.0.0"]
    targets = [f"http://{host}:{port}/secret.jpg" for host in hosts]
    targets += ["http://169.254.169.254/latest/meta-data/", "file:///etc/passwd", "gs://b/1.jpg"]
    url = serve(redirecting(*targets, "/elsewhere.jpg"))
    urls = [f"{url}/to/{number}" for number in range(len(targets) + 1)]
    found = codes(urls, tmp_path)
    assert set(found[:3]) <= {"not_allowed", "missing_file"}  # not all resolvers know such names
    assert found[3:] == ["not_allowed"] * (len(targets) - 3) + ["ok"]
    assert not asked
    roots = [f"{inner}/", f"{url}/"]
    assert codes(urls[3:5], tmp_path, allow=["http", *roots]) == ["ok", "not_allowed"]
    assert codes([f"{inner}/direct.jpg"], tmp_path) == ["ok"]
    assert asked


def test_a_name_that_changes_its_meaning(serve, tmp_path, monkeypatch):
    """Connections go to the checked address; a name with any private address is refused."""
    reached = []

    async def look(request):
        assert request.transport is not None
        reached.append(request.transport.get_extra_info("sockname")[0])
        return image(request)

    def meanings(host, port, *_, **__):
        found = answers[host].pop(0) if len(answers[host]) > 1 else answers[host][0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in found]

    port = serve(look).rsplit(":", 1)[1]
    hosts = ("turning.example", "both.example")
    url = serve(redirecting(*(f"http://{host}:{port}/1.jpg" for host in hosts)))
    public, private = "127.0.0.1", "127.0.0.2"  # both are this machine
    monkeypatch.setattr("recordgen.storage.http.is_public", lambda address: address == public)
    monkeypatch.setattr(socket, "getaddrinfo", meanings)
    answers = dict(zip(hosts, ([[public], [private]], [[public, private]]), strict=True))
    assert codes([f"{url}/to/0"], tmp_path) == ["ok"]
    assert set(reached) == {public}
    reached.clear()
    assert codes([f"{url}/to/1"], tmp_path) == ["not_allowed"]
    assert not reached


def test_headers_go_only_to_servers_that_the_user_named(serve, monkeypatch, tmp_path):
    """The import file's own server and those under an --allow, but no target of a redirect."""
    tokens = {}

    async def look(request):
        tokens[request.path] = request.headers.get("X-Token")
        if request.path == "/here":
            raise web.HTTPFound("/there")
        if request.path == "/there":
            raise web.HTTPFound(f"{other}/away")
        if request.path.endswith(".csv"):
            return web.Response(text=f"TRAIN,own.jpg,a\nTRAIN,{other}/others.jpg,a\n")
        return image(request)

    other, url = serve(look), serve(look)
    monkeypatch.setitem(fsspec.config.conf, "https", {"headers": {"X-Token": "secret"}})
    assert codes([f"{url}/allowed.jpg"], tmp_path) == ["ok"]
    assert codes([f"{url}/named.jpg"], tmp_path, allow=["http", url]) == ["ok"]
    assert codes([f"{url}/here"], tmp_path, allow=["http", url, other]) == ["ok"]
    recordgen.check(f"{url}/labels.csv", allow="http")
    assert tokens == {
        "/allowed.jpg": None,
        "/named.jpg": "secret",
        "/here": "secret",
        "/there": "secret",
        "/away": None,
        "/labels.csv": "secret",
        "/own.jpg": "secret",
        "/others.jpg": None,
    }


def test_rows_of_import_files_from_the_web(serve):
    """They reach their own and public servers, but no private servers and no other storages."""
    lines = ["1.jpg", f"{serve(redirecting())}/1.jpg", "/etc/passwd", "gs://bucket/1.jpg"]
    text = "".join(f"TRAIN,{line},a\n" for line in lines)

    async def answer(request):
        return web.Response(text=text) if request.path.endswith(".csv") else image(request)

    source = f"{serve(answer)}/labels.csv"
    result = recordgen.check(source, max_reject_fraction=1)
    assert {(item.line, item.code) for item in result.rejects} == {
        (line, "not_allowed") for line in (2, 3, 4)
    }
    allowed = recordgen.check(source, max_reject_fraction=1, allow=["http"])
    assert [item.line for item in allowed.rejects] == [3, 4]


def test_no_request_without_permission(serve, tmp_path):
    """Without --allow, no request is sent."""
    asked = []
    url = serve(noting(asked))
    assert codes([f"{url}/1.jpg"], tmp_path, allow=()) == ["not_allowed"]
    assert not asked
    with pytest.raises(errors.UsageError, match=f"{url}/out"):
        recordgen.convert(str(tmp_path / "urls.csv"), f"{url}/out")
    assert not asked


# --- local files --------------------------------------------------------------------------------


def test_pipes_and_devices(tmp_path):
    """Pipes, devices and folders are refused without waiting for them."""
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero", str(tmp_path)):
        with pytest.raises(IsADirectoryError):
            storage.info(path)
        with pytest.raises(IsADirectoryError):
            storage.read_bytes(path)


@pytest.mark.parametrize("size", [0, 4, 6, 200])
def test_a_local_file_that_changed(size, tmp_path):
    """A file whose size differs from the planned size is a reject, also above the limit."""
    path = write_file(tmp_path / "1.jpg", b"x" * size)
    with fetching(path, 5, limit="mb=0.0001") as fetch:
        with pytest.raises(errors.PayloadError, match=rf" 5 bytes, .*{size}") as refused:
            fetch()
        assert refused.value.code == "changed"
        path.write_bytes(b"12345")
        assert fetch() == b"12345"


@contextmanager
def fetching(path, size, **options):
    """Yield a function that fetches the payload of a row with this planned size."""
    row = PlannedRow(0, "labels.csv", 1, str(path), None, size, "", assigned=False)
    store = store_of(ConvertOptions(task="image_classification", **options))
    with closing(store.fetcher([row.uri])) as fetcher:
        yield lambda: fetcher.start(row)()


def test_a_disk_that_fails(monkeypatch, tmp_path):
    """A disk error ends the run, as the data may be fine."""

    def fail(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = write_file(tmp_path / "1.jpg", IMAGE)
    with fetching(path, len(IMAGE)) as fetch, monkeypatch.context() as patch:
        patch.setattr(os, "read", fail)
        with pytest.raises(errors.UnreachableError, match=r"1\.jpg: OSError: "):
            fetch()


def test_parts_of_local_files(tmp_path):
    """A range is read exactly, or it is an error; so is a file above a limit, but not one at it."""
    path = write_file(tmp_path / "file", b"12345")
    assert storage.read_bytes(str(path), 5) == b"12345"
    assert error_of(errors.FileTooLargeError, storage.read_bytes, str(path), 4).size == 5
    assert storage.read_range(str(path), 1, 3) == b"234"
    with pytest.raises(errors.StorageError, match=r"file: .* 3 to 6, .* 2 bytes"):
        storage.read_range(str(path), 3, 3)
    with pytest.raises(FileNotFoundError):
        storage.read_range(str(tmp_path / "none"), 0, 1)


def test_a_glob_in_an_archive_names_the_archive(tmp_path):
    """Matches are URLs that can be read."""
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("a/1.csv", "a/2.csv", "a/3.jpg"):
            file.writestr(name, name)
    found = storage.list_files(f"zip://a/*.csv::{archive}")
    assert found == [f"zip://a/1.csv::{archive}", f"zip://a/2.csv::{archive}"]
    assert list(map(storage.read_text, found)) == ["a/1.csv", "a/2.csv"]


@pytest.mark.parametrize(("room", "size"), [(0, 5), (3, 5), (70_000, 200_000)])
def test_a_full_disk_is_an_error(tmp_path, room, size):
    """The system writes what fits and reports the error at the next write; the old file stays."""
    path = write_file(tmp_path / "dataset.json", "old")
    # A limit on file sizes has the same effect on a write as a full disk.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def replace(write):
        with storage.replacing(str(path)) as out:
            write(out)

    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
        for call, given in (
            (partial(storage.write_text, str(path)), "n" * size),
            (replace, lambda out: out.write(b"n" * size)),
            (replace, lambda out: RECORDS.writer(out, "none").write([[b"n" * size] * 2])),
        ):
            with pytest.raises(errors.StorageError, match=str(path)):
                call(given)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert [item.read_text() for item in tmp_path.iterdir()] == ["old"]


def test_each_host_has_a_file_system_of_its_own():
    """Host, user and account are part of the URL; files on one host share a login."""

    class Hosted(MemoryFileSystem):
        protocol = "hosted"

        def __init__(self, host="", **options):
            super().__init__(**options)
            self.host = host

        @staticmethod
        def _get_kwargs_from_urls(path):
            return {"host": path.split("/")[2]}

    fsspec.register_implementation("hosted", Hosted, clobber=True)
    urls = ["hosted://me@one/a", "hosted://two/a", "hosted://me@one/b"]
    found = [filesystem_of(url)[0] for url in urls]
    assert [fs.host for fs in found] == ["me@one", "two", "me@one"]
    assert found[0] is found[2]


# --- meanings of errors -------------------------------------------------------------------------


def from_boto(code, number):
    """Return the exception of s3fs for a response."""
    from botocore.exceptions import ClientError
    from s3fs.errors import translate_boto_error

    answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": number}}
    return translate_boto_error(ClientError(answer, "HeadObject"))


def from_gcs(number, text):
    """Return the exception of gcsfs for a response."""
    from gcsfs.retry import HttpError, validate_response

    try:
        validate_response(number, text, "b/bucket/o/1.jpg")
    except (OSError, ValueError, HttpError) as exc:
        return exc
    raise AssertionError(number)


def connection(error):
    key = aiohttp.client_reqrep.ConnectionKey("host", 443, True, True, None, None, None)
    return aiohttp.ClientConnectorError(key, error)


def library_errors():
    import botocore.exceptions
    import google.auth.exceptions
    import requests

    return [
        ("s3", from_boto("404", 404), Meaning.MISSING),
        ("s3", from_boto("AccessDenied", 403), Meaning.FORBIDDEN),
        ("s3", from_boto("InvalidAccessKeyId", 403), Meaning.LASTING),
        ("s3", from_boto("ExpiredToken", 400), Meaning.LASTING),
        ("s3", from_boto("400", 400), Meaning.LASTING),
        ("s3", from_boto("SlowDown", 503), Meaning.TRANSIENT),
        ("s3", botocore.exceptions.NoCredentialsError(), Meaning.LASTING),
        ("s3", botocore.exceptions.EndpointConnectionError(endpoint_url="x"), Meaning.TRANSIENT),
        ("s3", botocore.exceptions.ReadTimeoutError(endpoint_url="x"), Meaning.TRANSIENT),
        ("s3", botocore.exceptions.ParamValidationError(report="x"), Meaning.MISSING),
        ("gs", from_gcs(404, "{}"), Meaning.MISSING),
        ("gs", from_gcs(403, '{"error": {"message": "no", "code": 403}}'), Meaning.FORBIDDEN),
        ("gs", from_gcs(401, '{"error": {"message": "no", "code": 401}}'), Meaning.FORBIDDEN),
        ("gs", from_gcs(401, '{"error": {"message": "Invalid Credentials"}}'), Meaning.LASTING),
        ("gs", from_gcs(503, "busy"), Meaning.TRANSIENT),
        ("gs", from_gcs(429, "slowly"), Meaning.TRANSIENT),
        ("gs", from_gcs(400, "Invalid bucket name: 'A'"), Meaning.MISSING),
        ("gs", ValueError("Bucket is requester pays. Set `requester_pays=True`"), Meaning.LASTING),
        ("gs", json.JSONDecodeError("an answer that was cut", "{", 1), Meaning.TRANSIENT),
        ("gs", UnicodeDecodeError("utf-8", b"\xff", 0, 1, "?"), Meaning.TRANSIENT),
        ("gs", from_gcs(401, "invalid authentication credentials"), Meaning.LASTING),
        ("gs", google.auth.exceptions.MalformedError("no key in it"), Meaning.LASTING),
        ("gs", UnicodeEncodeError("utf-8", "\udcff", 0, 1, "?"), Meaning.MISSING),
        ("s3", ValueError("Invalid endpoint: localhost:9000"), Meaning.LASTING),
        ("https", aiohttp.InvalidURL("http://"), Meaning.MISSING),
        ("https", UnicodeError("label empty or too long"), Meaning.MISSING),
        ("https", ValueError("Newline or carriage return in headers"), Meaning.LASTING),
        ("gs", requests.ConnectionError(), Meaning.TRANSIENT),
        ("gs", google.auth.exceptions.DefaultCredentialsError("who?"), Meaning.LASTING),
        ("gs", google.auth.exceptions.TransportError("?"), Meaning.TRANSIENT),
        ("gs", connection(socket.gaierror(socket.EAI_NONAME, "?")), Meaning.TRANSIENT),
        ("https", connection(socket.gaierror(socket.EAI_NONAME, "?")), Meaning.MISSING),
        ("https", connection(socket.gaierror(socket.EAI_AGAIN, "?")), Meaning.TRANSIENT),
        ("https", connection(ConnectionRefusedError()), Meaning.TRANSIENT),
        ("https", connection(ssl.SSLCertVerificationError()), Meaning.UNTRUSTED),
        ("https", aiohttp.ServerDisconnectedError(), Meaning.TRANSIENT),
        ("https", asyncio.TimeoutError(), Meaning.TRANSIENT),
        ("az", OSError(errno.EIO, "?"), Meaning.TRANSIENT),
        ("az", KeyError("a bug"), Meaning.LASTING),
    ]


@pytest.mark.parametrize(("scheme", "error", "expected"), library_errors())
def test_outages_are_never_bad_data_nor_bad_data_outages(scheme, error, expected):
    """Each library's error means missing, forbidden, transient or lasting."""
    path = f"{scheme}://bucket/1.jpg"
    assert meaning(error, path) is expected
    may_be_dead = expected in (Meaning.TRANSIENT, Meaning.UNTRUSTED)
    assert isinstance(to_error(error, path, ""), errors.UnreachableError) is may_be_dead


def test_import_files_that_may_not_be_read(serve):
    """A forbidden import file is a SourceError, both when expanded and when read."""
    url = serve(replying(status=403))
    for ask in (storage.expand, lambda path: Source.of_files([ImportFile(path)])):
        with pytest.raises(errors.SourceError, match=r"labels.csv: .*HTTP 403"):
            ask(f"{url}/labels.csv")


def test_folders_without_permission(monkeypatch, tmp_path):
    """Forbidden folders are errors, not empty or missing."""

    def refuse(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    path = str(tmp_path / "hidden/labels.csv")
    assert not storage.is_file(path)
    with monkeypatch.context() as patch:  # root may read any folder
        patch.setattr(os, "stat", refuse)
        patch.setattr(os, "scandir", refuse)
        for ask in (storage.is_file, storage.list_dir, storage.list_files):
            with pytest.raises(errors.StorageError, match=r"labels.csv: "):
                ask(path)
        with pytest.raises(errors.SourceError, match=r"labels.csv: .*Permission denied"):
            storage.expand(path)


@pytest.mark.parametrize("name", ["o?1", "o*", "o[12]1"])
def test_a_name_is_no_pattern(name, tmp_path):
    """A folder or file whose name looks like a pattern is moved and removed, and no other one."""
    place = f"memory://{tmp_path.name}"
    for folder in (name, "o11"):
        for path in ("a", "b/c?", "b/cd"):
            storage.write_bytes(f"{place}/{folder}/{path}", b"1")
    storage.move(f"{place}/{name}/b/c?", f"{place}/{name}/b/e?")
    assert storage.is_file(f"{place}/{name}/b/cd")
    storage.remove(f"{place}/{name}/b/e?")
    assert storage.list_dir(f"{place}/{name}/b") == [("cd", False)]
    storage.remove(f"{place}/{name}")
    storage.remove(f"{place}/{name}")
    storage.write_bytes(f"{place}/{name}/a", b"1")
    storage.remove(f"{place}/{name}/a")
    for folder in (name, "o11"):
        storage.remove_empty(f"{place}/{folder}")
    assert storage.list_dir(place) == [("o11", True)]
    assert storage.list_dir(f"{place}/o11/b") == [("c?", False), ("cd", False)]


def test_retries_are_set_by_the_environment(monkeypatch):
    """Environment variables set the policy; a value that is not a number is an error."""
    monkeypatch.setenv("RECORDGEN_STORAGE_ATTEMPTS", "2")
    monkeypatch.setenv("RECORDGEN_STORAGE_TIMEOUT_SECONDS", "0.5")
    assert RetryPolicy.from_environment() == RetryPolicy(attempts=2, timeout_seconds=0.5)
    monkeypatch.setenv("RECORDGEN_STORAGE_ATTEMPTS", "many")
    with pytest.raises(errors.UsageError, match="RECORDGEN_STORAGE_"):
        RetryPolicy.from_environment()


# --- listings ---------------------------------------------------------------------------------


def test_other_storages_have_no_listings(tmp_path):
    """Without pages, each file is looked up."""
    for other in (str(tmp_path), "https://example.org/a", "memory://a", "az://bucket/a"):
        assert list(storage.list_infos(other, RequestContext())) == []


@pytest.mark.parametrize("reads", [local.read_at, local._seek_and_read])  # noqa: SLF001
def test_pieces_are_read_while_others_are_added(reads, monkeypatch):
    """The last ones wait in memory, the others in a file, also on systems without ``pread``."""
    monkeypatch.setattr(local, "read_at", reads)
    monkeypatch.setattr(local.Spool, "in_memory", 10)
    pieces = [bytes([number]) * (3 * number) for number in range(9)]
    found = local.Spool()
    for number, piece in enumerate(pieces):
        assert found.add(piece) == number
        assert [found[at] for at in range(number, -1, -1)] == pieces[number::-1]


def test_each_piece_for_which_there_is_no_room_is_an_error(monkeypatch):
    """The message names the variable that chooses the folder."""
    monkeypatch.setattr(local, "TemporaryFile", partial(open, "/dev/full", "r+b"))
    full = local.Spool()
    caught = []  # tracebacks keep what was being written
    for _ in range(2):
        with pytest.raises(errors.StorageError, match="TMPDIR") as error:
            full.add(bytes(full.in_memory + 1))
        caught.append(error)
