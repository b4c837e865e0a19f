"""Repeat requests that failed for a passing reason.

The wait between two attempts is random and its upper bound doubles, so that requests which were
refused together are not repeated together ("full jitter").
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, fields
from functools import lru_cache
from threading import Event
from typing import Any, TypeVar, cast

from fsspec.asyn import get_loop, sync
from tenacity import (
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_after_attempt,
    stop_when_event_set,
    wait_random_exponential,
)

from recordgen.errors import UsageError
from recordgen.storage.failures import is_transient, shown_cause, to_error
from recordgen.storage.terms import ANY_REQUEST, RequestContext, is_patient

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long a failing request is repeated.

    Each field can be set by an environment variable, such as ``RECORDGEN_STORAGE_ATTEMPTS``.

    Attributes:
        attempts: how often a request is sent at most.
        first_wait_seconds: longest wait before the second attempt; it doubles from then on.
        longest_wait_seconds: where the doubling ends.
        timeout_seconds: a connection fails when it is silent for this long.
        total_seconds: looking up or reading a row's file fails after this time, repetitions
            included.
    """

    attempts: int = 8
    first_wait_seconds: float = 0.5
    longest_wait_seconds: float = 30.0
    timeout_seconds: float = 30.0
    total_seconds: float = 300.0

    @classmethod
    def from_environment(cls) -> RetryPolicy:
        """Return the policy that the environment asks for. Raises: UsageError."""
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
    """Return the time of ``time.monotonic`` at which a request that begins now has failed."""
    return time.monotonic() + RetryPolicy.from_environment().total_seconds


def run_until(end: float | None, begin: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Run a coroutine on fsspec's event loop and wait for it.

    Args:
        end: a :func:`deadline`: a body may drip in for hours; None: there is no limit.
        begin: makes the coroutine.

    Raises:
        TimeoutError: ``end`` is over.
    """

    async def limited() -> _T:
        return await asyncio.wait_for(begin(), None if end is None else end - time.monotonic())

    return cast(_T, sync(get_loop(), limited))


def retried(action: Callable[[], _T], path: str, context: RequestContext = ANY_REQUEST) -> _T:
    """Return what ``action`` returns, which must be safe to repeat.

    Args:
        action: asks a storage library.
        path: what it asks about, for the error.
        context: when its ``stop`` is set or its ``deadline`` over, the request is not repeated any
            more.

    Raises:
        FileNotFoundError: there is nothing at ``path``; not retried.
        PermissionError: it may not be read; not retried.
        IsADirectoryError: it is not a file; not retried.
        UnreachableError: it failed every time, or no connection may be made.
        ResponseError: a web server refuses it, or its answer is none.
        StorageError: it failed in another way that will not pass, such as a wrong setting.
    """
    policy = RetryPolicy.from_environment()
    stop = context.stop or Event()
    end = math.inf if context.deadline is None else context.deadline
    started = time.monotonic()
    attempts = policy.attempts if is_patient() else 1
    is_over = stop_after_attempt(attempts) | stop_when_event_set(stop)
    wait = wait_random_exponential(policy.first_wait_seconds, policy.longest_wait_seconds)
    retrying = Retrying(
        retry=retry_if_exception(lambda exc: is_transient(exc, path)),
        stop=lambda state: is_over(state) or time.monotonic() >= end,
        wait=lambda state: max(0, min(wait(state), end - time.monotonic())),
        sleep=sleep_using_event(stop),
        reraise=True,
    )
    try:
        return retrying(action)
    except Exception as exc:
        tried = retrying.statistics["attempt_number"]
        now = time.monotonic()
        said = f"tried {tried} times in {now - started:.0f} s" if tried > 1 else ""
        if now >= end:
            late = f"one file may take {policy.total_seconds:g} s"
            said = f"{said}; {late}" if said else late
        error = to_error(exc, path, said)
        if error is exc:
            raise
        raise error from shown_cause(exc)
