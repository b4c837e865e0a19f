"""Web servers, read-only: aiohttp sessions of fsspec's, but redirects, limits and errors our own.

fsspec's file system calls every failure "not found", reads a body to its end whatever its size and
follows a redirect wherever it leads. What a user has configured for it (headers, certificates,
``client_kwargs``) is used.

    request ─▶ answer ─3xx─▶ policy.refusal(target) ─▶ request ─▶ …
                      ─4xx, 5xx─▶ ClientResponseError with its status
                      ─206, no redirect─▶ ResponseError: it does not give the file

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
from recordgen.storage.addresses import is_public, origin_of
from recordgen.storage.failures import is_transient
from recordgen.storage.retries import RetryPolicy, retried, run_until
from recordgen.storage.terms import FileInfo, RequestContext, UrlPolicy, too_large

_MAX_REDIRECTS = 10

# The range of an answer that may be the whole file.
_RANGE = re.compile(r"bytes 0-(?P<end>[0-9]{1,18})/(?P<size>[0-9]{1,18})")

_CHUNK_BYTES = 1 << 18

# Larger files are kept on disk while they are read.
_SPOOLED_BYTES = 8_000_000

# A whole import file may take this many times the timeout of a silent connection.
_TOTAL_TIMEOUTS = 20


def info(path: str, context: RequestContext) -> FileInfo:
    """Look up a file; where the server does not say its size, it is read to learn it."""
    return _asked(_info, path, context)


def read_bytes(path: str, at_most: int | None, context: RequestContext) -> bytes:
    """Return a file's content. Raises: FileTooLargeError, after at most one chunk too much."""
    return _asked(partial(_read, at_most=at_most), path, context)


def open_read(path: str, context: RequestContext) -> IO[bytes]:
    """Return a copy of a file, opened for reading: a stream that breaks could not go on."""
    return _asked(_spool, path, context)


def exists(path: str) -> bool:
    """Say whether there is a file."""
    try:
        info(path, RequestContext())
    except FileNotFoundError:
        return False
    return True


def list_files(pattern: str) -> list[str]:
    """Return the file itself, if it is there: web servers have no folders to look into."""
    return [pattern] if exists(pattern) else []


def list_dir(folder: str) -> list[tuple[str, bool]]:
    """Return nothing: web servers have no folders."""
    return []


def _asked(ask: Callable[..., Any], path: str, context: RequestContext) -> Any:
    """Return what a coroutine function of path and context returns."""
    begin = partial(ask, path, context=context)
    return retried(partial(run_until, context.deadline, begin), path, context)


async def _info(path: str, context: RequestContext) -> FileInfo:
    found: FileInfo | None = None
    try:
        async with _answer("HEAD", path, context.policy) as response:
            if _size(response):  # some servers say 0 here whatever they have
                found = FileInfo(_size(response) or 0, _version(response))
    except (aiohttp.ClientResponseError, ResponseError) as exc:
        if is_transient(exc, path):
            raise
        # Some servers give a file, but not its head alone.
    if found is not None:
        return found
    async with _answer("GET", path, context.policy) as response:
        size = _size(response)
        if size is None:
            size = 0
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                size += len(chunk)
                if context.at_most is not None and size > context.at_most:
                    break
        return FileInfo(size, _version(response))


async def _read(path: str, at_most: int | None, context: RequestContext) -> bytes:
    async with _answer("GET", path, context.policy) as response:
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
    file = tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)  # noqa: SIM115 handed to the caller
    try:
        async with _answer("GET", path, context.policy) as response:
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                file.write(chunk)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


@asynccontextmanager
async def _answer(
    method: str, path: str, policy: UrlPolicy
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Yield the answer to a request if it is a success; follow redirects that are allowed."""
    url = first = _as_requested(path)
    for _ in range(_MAX_REDIRECTS + 1):
        redirected = origin_of(url) != origin_of(first)
        anywhere = policy.may_be_private(url, redirected=redirected)
        if not anywhere:
            _check_literal_address(url)
        # Other servers do not get our headers and credentials.
        ours = policy.may_be_told(url, redirected=redirected)
        # fsspec keeps a file system for each kind of session.
        open_session = _open_session if anywhere else _open_public_session
        fs = filesystem("https", get_client=open_session, **({} if ours else {"client_kwargs": {}}))
        settings = {**fs.kwargs} if ours else {}
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
    """Check that an answer gives the file, and all of it. Raises: ResponseError."""
    if response.status >= 300:
        raise ResponseError(f"{path}: HTTP {response.status} without a target")
    if response.status != HTTPStatus.PARTIAL_CONTENT:
        return
    said = response.headers.get("Content-Range", "")
    found = _RANGE.fullmatch(said)
    if found is None or int(found["end"]) + 1 != int(found["size"]):
        raise ResponseError(
            f"{path}: HTTP 206 with a part of the file ({said or 'no Content-Range'}), though all "
            f"of it was requested",
            RejectCode.PARTIAL_CONTENT.value,
        )


def _as_requested(url: str, base: str = "") -> str:
    """Return a URL as aiohttp reads it: ``http://Host/a b`` → ``http://host/a%20b``.

    Digits of other scripts in a host become plain ones, so it may be an address only now.

    Raises: FileNotFoundError: there can be no such URL.
    """
    try:
        return str(URL(base).join(URL(url)) if base else URL(url))
    except ValueError as exc:
        raise FileNotFoundError(f"{url}: {exc}") from exc


def _size(response: aiohttp.ClientResponse) -> int | None:
    """Return the size of the whole file, if the answer says it."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        return None
    return response.content_length


def _version(response: aiohttp.ClientResponse) -> str:
    return response.headers.get("ETag") or response.headers.get("Last-Modified") or ""


async def _open_session(**settings: Any) -> aiohttp.ClientSession:
    """Open a session that reaches every address."""
    return aiohttp.ClientSession(**{"timeout": _timeout(), **settings})


async def _open_public_session(**settings: Any) -> aiohttp.ClientSession:
    """Open a session that reaches public addresses only."""
    connector = aiohttp.TCPConnector(resolver=_PublicResolver())
    return aiohttp.ClientSession(**{"timeout": _timeout(), **settings, "connector": connector})


def _timeout() -> aiohttp.ClientTimeout:
    seconds = RetryPolicy.from_environment().timeout_seconds
    return aiohttp.ClientTimeout(
        total=_TOTAL_TIMEOUTS * seconds, sock_connect=seconds, sock_read=seconds
    )


class _PublicResolver(AbstractResolver):
    """Resolves names, but not to addresses of a private network.

    The connection is made to the addresses that are returned here: a name that means something
    else a moment later does not help.
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
    """Check a URL whose host is an address: aiohttp does not resolve it."""
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
            f"{shown} is an address of a private network, which a row reaches only directly with "
            f"--allow-scheme, or under an --allow-root"
        )
