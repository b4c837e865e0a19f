"""Retry requests after transient failures.

The wait between two attempts is random and its upper bound doubles ("full jitter"), so requests
that were refused together are not repeated together.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, fields
from functools import lru_cache
from threading import Event
from typing import Any, TypeVar, cast

from recordgen.errors import UsageError
from recordgen.storage.failures import is_transient, shown_cause, to_error
from recordgen.storage.terms import ANY_REQUEST, RequestContext, may_retry

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The limits of retries.

    Each field can be set by an environment variable, such as ``RECORDGEN_STORAGE_ATTEMPTS``.

    Attributes:
        attempts: most attempts of a request.
        first_wait_seconds: longest wait before the second attempt; it doubles for each further one.
        longest_wait_seconds: upper bound of the doubling.
        timeout_seconds: a connection fails after this long without data.
        total_seconds: a look-up or read of a row's file fails after this time, retries included.
    """

    attempts: int = 8
    first_wait_seconds: float = 0.5
    longest_wait_seconds: float = 30.0
    timeout_seconds: float = 30.0
    total_seconds: float = 300.0

    @classmethod
    def from_environment(cls) -> RetryPolicy:
        """Return the policy set by environment variables. Raises: UsageError."""
        return _parse(tuple(map(os.environ.get, _VARIABLES)))


_DEFAULTS = RetryPolicy()
_VARIABLES = tuple(f"RECORDGEN_STORAGE_{item.name.upper()}" for item in fields(RetryPolicy))


@lru_cache(8)
def _parse(texts: tuple[str | None, ...]) -> RetryPolicy:
    values = {}
    for item, variable, text in zip(fields(RetryPolicy), _VARIABLES, texts, strict=True):
        if text:
            kind = type(getattr(_DEFAULTS, item.name))
            try:
                values[item.name] = kind(text)
            except ValueError as exc:
                raise UsageError(f"{variable} must be a number (got {text!r})") from exc
    return RetryPolicy(**values)


def deadline() -> float:
    """Return the deadline of a request that begins now, as a time of ``time.monotonic``."""
    return time.monotonic() + RetryPolicy.from_environment().total_seconds


def run_until(end: float | None, begin: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Run the coroutine that ``begin`` creates on fsspec's event loop and wait for it.

    ``end`` is a :func:`deadline`, as a body may drip in for hours. Raises: TimeoutError.
    """
    import asyncio

    from fsspec.asyn import get_loop, sync  # local files need neither

    async def limited() -> _T:
        return await asyncio.wait_for(begin(), None if end is None else end - time.monotonic())

    return cast(_T, sync(get_loop(), limited))


def retried(action: Callable[[], _T], path: str, context: RequestContext = ANY_REQUEST) -> _T:
    """Return the result of ``action``, which must be safe to repeat.

    Args:
        action: calls a storage library.
        path: path for the error.
        context: there are no more retries once its ``stop`` is set or its ``deadline`` is over.

    Raises:
        FileNotFoundError: there is nothing at ``path``; not retried.
        PermissionError: access is denied; not retried.
        IsADirectoryError: it is not a file; not retried.
        UnreachableError: every attempt failed, or the server's certificate is not trusted.
        ResponseError: a web server refuses the request, or its response is invalid.
        StorageError: another lasting failure, such as a wrong setting.
    """
    import tenacity  # local files do not need it

    policy = RetryPolicy.from_environment()
    stop = context.stop or Event()
    end = math.inf if context.deadline is None else context.deadline
    started = time.monotonic()
    attempts = policy.attempts if may_retry() else 1
    is_over = tenacity.stop_after_attempt(attempts) | tenacity.stop_when_event_set(stop)
    wait = tenacity.wait_random_exponential(policy.first_wait_seconds, policy.longest_wait_seconds)
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(lambda exc: is_transient(exc, path)),
        stop=lambda state: is_over(state) or time.monotonic() >= end,
        wait=lambda state: max(0, min(wait(state), end - time.monotonic())),
        sleep=tenacity.sleep_using_event(stop),
        reraise=True,
    )
    try:
        return retrying(action)
    except Exception as exc:
        tried = retrying.statistics["attempt_number"]
        now = time.monotonic()
        text = f"tried {tried} times in {now - started:.0f} s" if tried > 1 else ""
        if now >= end:
            late = f"one file may take {policy.total_seconds:g} s"
            text = f"{text}; {late}" if text else late
        error = to_error(exc, path, text)
        if error is exc:
            raise
        raise error from shown_cause(exc)
