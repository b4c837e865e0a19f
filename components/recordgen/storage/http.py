"""Web servers, read-only: fsspec's aiohttp sessions with our own redirects, limits and errors.

fsspec's file system reports every failure as "not found", reads a body of any size to its end and
follows every redirect. The user's configuration for it (headers, certificates, ``client_kwargs``)
is used.

    request ─▶ response ─3xx─▶ policy.refusal(target) ─▶ request ─▶ …
                        ─4xx, 5xx─▶ ClientResponseError with its status
                        ─206, 3xx without a target─▶ ResponseError: not the whole file

Only public addresses are reached unless the user allows others. The resolver checks this when the
connection is made.
"""

from __future__ import annotations

import re
import socket
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from typing import IO, Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from fsspec import filesystem
from yarl import URL

from recordgen.errors import NotAllowedError, ResponseError
from recordgen.rejects import RejectCode
from recordgen.storage.access import FileInfo, RequestContext, UrlPolicy, too_large
from recordgen.storage.paths import is_public, origin_of
from recordgen.storage.retries import RetryPolicy, is_transient, retried, run_until

_MAX_REDIRECTS = 10

# The Content-Range of a response that may be the whole file.
_RANGE = re.compile(r"bytes 0-(?P<end>[0-9]{1,18})/(?P<size>[0-9]{1,18})")

_CHUNK_BYTES = 1 << 18

# Larger files are spooled to disk.
_SPOOLED_BYTES = 8_000_000

# Timeout of a whole file, as a multiple of the timeout of a silent connection.
_TOTAL_TIMEOUTS = 20


def info(path: str, context: RequestContext) -> FileInfo:
    """Look up a file; read it if the server does not send its size."""
    return _requested(_info, path, context)


def read_bytes(path: str, at_most: int | None, context: RequestContext) -> bytes:
    """Return a file's content. Raises: FileTooLargeError, after at most one extra chunk."""
    return _requested(partial(_read, at_most=at_most), path, context)


def open_read(path: str, context: RequestContext) -> IO[bytes]:
    """Open a copy of a file for reading: a broken stream could not be resumed."""
    return _requested(_spool, path, context)


def is_file(path: str) -> bool:
    try:
        info(path, RequestContext())
    except FileNotFoundError:
        return False
    return True


def list_files(pattern: str) -> list[str]:
    """Return the file itself if it exists: web servers have no listings."""
    return [pattern] if is_file(pattern) else []


def list_dir(folder: str) -> list[tuple[str, bool]]:
    """Return an empty list: web servers have no folders."""
    return []


def _requested(request: Callable[..., Any], path: str, context: RequestContext) -> Any:
    """Return the result of a coroutine function of path and context, with retries."""
    begin = partial(request, path, context=context)
    return retried(partial(run_until, context.deadline, begin), path, context)


async def _info(path: str, context: RequestContext) -> FileInfo:
    try:
        async with _response("HEAD", path, context.policy) as response:
            if size := _size(response):  # some servers always send 0 here
                return FileInfo(size, _version(response))
    except (aiohttp.ClientResponseError, ResponseError) as exc:
        if is_transient(exc, path):
            raise
        # Some servers answer GET, but not HEAD.
    async with _response("GET", path, context.policy) as response:
        size = _size(response)
        if size is None:
            size = 0
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                size += len(chunk)
                if context.at_most is not None and size > context.at_most:
                    break
        return FileInfo(size, _version(response))


async def _read(path: str, at_most: int | None, context: RequestContext) -> bytes:
    async with _response("GET", path, context.policy) as response:
        size = _size(response)
        if at_most is not None and size is not None and size > at_most:
            raise too_large(path, size)
        data = bytearray()
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            data += chunk
            if at_most is not None and len(data) > at_most:
                raise too_large(path, len(data))
        return bytes(data)


async def _spool(path: str, context: RequestContext) -> IO[bytes]:
    file = tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)  # noqa: SIM115 returned to the caller
    try:
        async with _response("GET", path, context.policy) as response:
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                file.write(chunk)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


@asynccontextmanager
async def _response(
    method: str, path: str, policy: UrlPolicy
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Yield the response to a request if it is a success; follow allowed redirects."""
    url = first = _as_requested(path)
    for _ in range(_MAX_REDIRECTS + 1):
        redirected = origin_of(url) != origin_of(first)
        anywhere = policy.may_be_private(url, redirected=redirected)
        if not anywhere:
            _check_literal_address(url)
        trusted = policy.may_get_credentials(url, redirected=redirected)
        # fsspec keeps a file system for each kind of session.
        open_session = _open_session if anywhere else _open_public_session
        no_settings: dict[str, Any] = {} if trusted else {"client_kwargs": {}}
        fs = filesystem("https", get_client=open_session, **no_settings)
        settings = {**fs.kwargs} if trusted else {}
        headers = {**settings.pop("headers", {}), "Accept-Encoding": "identity"}
        session = await fs.set_session()
        async with session.request(
            method, fs.encode_url(url), allow_redirects=False, headers=headers, **settings
        ) as response:
            target = response.headers.get("Location") if 300 <= response.status < 400 else None
            if target is None:
                response.raise_for_status()
                _check_whole(response, path)
                yield response
                return
            url = _as_requested(target, url)
            if reason := policy.refusal(url):
                raise NotAllowedError(f"{path}: redirected to {url}: {reason}")
    raise ResponseError(f"{path}: more than {_MAX_REDIRECTS} redirects")


def _check_whole(response: aiohttp.ClientResponse, path: str) -> None:
    """Check that a response contains the whole file. Raises: ResponseError."""
    if response.status >= 300:
        raise ResponseError(f"{path}: HTTP {response.status} without a target")
    if response.status != HTTPStatus.PARTIAL_CONTENT:
        return
    content_range = response.headers.get("Content-Range", "")
    found = _RANGE.fullmatch(content_range)
    if found is None or int(found["end"]) + 1 != int(found["size"]):
        raise ResponseError(
            f"{path}: HTTP 206 with a part of the file ({content_range or 'no Content-Range'}), "
            f"though all of it was requested",
            RejectCode.PARTIAL_CONTENT.value,
        )


def _as_requested(url: str, base: str = "") -> str:
    """Return a URL as aiohttp parses it: ``http://Host/a b`` → ``http://host/a%20b``.

    Digits of other scripts become ASCII digits, so a host may turn into an address here.

    Raises: FileNotFoundError: the URL is invalid.
    """
    try:
        return str(URL(base).join(URL(url)) if base else URL(url))
    except ValueError as exc:
        raise FileNotFoundError(f"{url}: {exc}") from exc


def _size(response: aiohttp.ClientResponse) -> int | None:
    """Return the size of the whole file, if the response has it."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        return None
    return response.content_length


def _version(response: aiohttp.ClientResponse) -> str:
    return response.headers.get("ETag") or response.headers.get("Last-Modified") or ""


async def _open_session(**settings: Any) -> aiohttp.ClientSession:
    """Open a session that reaches every address."""
    seconds = RetryPolicy.from_environment().timeout_seconds
    timeout = aiohttp.ClientTimeout(
        total=_TOTAL_TIMEOUTS * seconds, sock_connect=seconds, sock_read=seconds
    )
    return aiohttp.ClientSession(**{"timeout": timeout, **settings})


async def _open_public_session(**settings: Any) -> aiohttp.ClientSession:
    """Open a session that reaches public addresses only."""
    connector = aiohttp.TCPConnector(resolver=_PublicResolver())
    return await _open_session(**{**settings, "connector": connector})


class _PublicResolver(AbstractResolver):
    """A resolver that refuses names with addresses in a private network.

    aiohttp connects to exactly the addresses that this returns, so a name that resolves differently
    a moment later (DNS rebinding) changes nothing.
    """

    def __init__(self) -> None:
        self._resolver = aiohttp.DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        for item in found:
            _check_address(host, item["host"])
        return found

    async def close(self) -> None:
        await self._resolver.close()


def _check_literal_address(url: str) -> None:
    """Check the host of a URL if it is an address, as aiohttp does not resolve those."""
    host = URL(url).raw_host or ""
    try:
        ip_address(host)
    except ValueError:
        if ":" in host or host.replace(".", "").isdigit():  # 2130706433 and the like
            raise FileNotFoundError(f"{url}: {host} is neither a name nor an address") from None
        return
    _check_address(host, host)


def _check_address(host: str, address: str) -> None:
    if not is_public(address):
        shown = host if host == address else f"{host} ({address})"
        raise NotAllowedError(
            f"{shown} is an address of a private network, which rows reach only with an "
            f"--allow PREFIX, or without a redirect with --allow SCHEME"
        )
