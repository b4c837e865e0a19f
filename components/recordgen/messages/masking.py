"""Secrets in URLs: user names, passwords, tokens, and the parameters of signed URLs.

    https://me:pw@host/1.jpg?v=2&X-Goog-Signature=8f…
    without_secrets  →  https://host/1.jpg?v=2                             names a payload in data
    masked_values    →  https://***@host/1.jpg?v=2&X-Goog-Signature=***    shows data to people
    masked           →  https://***@host/1.jpg?***                         messages

From the moment it is read, a row is named by its URL without secrets; the full URL for the request
travels with it (:mod:`recordgen.formats.row_reader`). Messages are masked where errors and log
lines are created. They may quote a URL that is in no row, so they omit the whole query.

A text of any length takes linear time: each search begins where the one before has ended.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

MASK = "***"

# The words of a parameter's name: clientSecret → client Secret; api_token → api token.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

# A name is secret if it ends with one of these, whatever is before it: apitoken, client_secret.
_SECRET_ENDS = (
    *("token", "secret", "signature", "password", "passwd", "passphrase", "passcode", "hmac"),
    *("credential", "authorization", "bearer", "accesskeyid", "googleaccessid"),
)
# A name is secret if its last word is one of these; in other words they are ordinary letters.
_SECRET_WORDS = frozenset(
    [
        *("sig", "auth", "oauth", "jwt", "pwd", "pass", "sas", "hdnts", "hdnea"),
        *("jsessionid", "phpsessid"),
    ]
)
# "key" often names a file, but not after one of these.
_SECRET_KEYS = tuple(
    f"{owner}key"
    for owner in (
        *("api", "access", "secret", "private", "shared", "auth", "app", "account", "client"),
        *("subscription", "session", "security", "signing", "encryption", "master"),
    )
)

# Parameters that accompany a signature and change with it: S3 and Google Cloud Storage (version 2),
# CloudFront, Google's CDN, and Azure's shared access signatures.
_WITH_SIGNATURE = frozenset(
    [
        *("expires", "policy", "key-pair-id", "keyname", "hash-algorithm"),
        *("sv", "sr", "st", "se", "sp", "spr", "sip", "ss", "srt", "si", "sdd", "ses"),
        *("skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid"),
    ]
)
_SIGNATURES = ("sig", "signature")

# Schemes whose names before the "@" are not secret: Azure's containers.
_PLACES = ("abfs", "abfss", "az", "adl", "wasb", "wasbs")

_SCHEME_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.-"
_AUTHORITY_END = re.compile(r"[/?#]")  # as urllib.parse.urlsplit reads it
_AUTHORITY_END_IN_TEXT = re.compile(r"[/?#\s]")
_ESCAPED_AUTHORITY_END = re.compile(r"[/?#\s]|%(?:2F|3F|23)", re.IGNORECASE)
_AT = re.compile(r"@|%40")
_COLON = re.compile(r":|%3A", re.IGNORECASE)
_COLON_AT_END = re.compile(rf"(?:{_COLON.pattern})\Z", re.IGNORECASE)
_HOST = re.compile(r"(?:\[[^\]]*\]|[^:]*)(?::\d*)?")
# The slashes before an authority: tools that normalise paths leave one, JSON may escape them, other
# systems turn them round, and a URL inside a parameter has them as %2F.
_WEB = re.compile(
    r"[/\\](?i:(?<=http:.)|(?<=https:.)|(?<=ftp:.)|(?<=gs:.)|(?<=s3:.))[/\\]*"
    r"|%(?i:2F|5C)%(?i:2F|5C)"
)
_RELATIVE = r"(?<!:)///+|/\\+"  # behind the name of a container
_SLASHES = re.compile(
    rf"{_WEB.pattern}|{_RELATIVE}|//|\\(?<=:\\)\\*/(?:\\+/)?|\\[/\\]+",
)
# What makes a text a URL, also without a scheme.
_URL = re.compile(rf"\A[/\\]{{2}}|{_RELATIVE}|(?i::|%3A)\s*//|{_WEB.pattern}")
_HTTP = re.compile(r"https?:[\\/]+", re.IGNORECASE)
_QUERY = re.compile(r"[?#]")
_RUN = re.compile(r"\S+")
# Marks between parameters. A URL inside another one has escaped marks.
_ESCAPED = "%(?:3F|23|26|3B)"
_MARK = rf"([?#&;]|{_ESCAPED})"
_PARAMETER = re.compile(
    rf"{_MARK}((?:(?!{_ESCAPED}|%3D)[^=&;#?\s])+)(=|%3D)((?:(?!{_ESCAPED})[^&;#\s])+)",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(_MARK, re.IGNORECASE)
_EQUALS = re.compile("=|%3D", re.IGNORECASE)
_PATH_SEPARATOR = re.compile(r"([/;&])")

# What may follow a URL in a message.
_CLOSING_HOST = "'\"`)]}>.,;:!"
_CLOSING = f"{_CLOSING_HOST}…"  # a host before it may be a password that is cut off


def may_hold_secrets(text: str) -> bool:
    """Return whether a text needs the other functions: most rows contain none of these letters."""
    return any(mark in text for mark in "?@#;&%")


def masked(text: str) -> str:
    """Return a text for a message, with ``***`` in place of secrets and queries in URLs.

    Parameters are masked in any text, because libraries may report a request by its path only.
    """
    if _SLASHES.search(text):
        text = _RUN.sub(_without_query, _with_users(text, f"{MASK}@", cut=MASK))
        return _PARAMETER.sub(_masked_parameter, text)
    return masked_values(text)


def masked_values(text: str) -> str:
    """Return data for display, with ``***`` in place of secrets in URLs."""
    text = _with_users(text, f"{MASK}@", cut=MASK)
    return _PARAMETER.sub(_masked_parameter, text) if "=" in text or "%" in text else text


def masked_json(value: Any) -> Any:
    """Return a JSON value with the secrets in all texts masked; keys stay."""
    if isinstance(value, str):
        return masked_values(value)
    if isinstance(value, Mapping):
        return {name: masked_json(item) for name, item in value.items()}
    return [masked_json(item) for item in value] if isinstance(value, list | tuple) else value


def without_secrets(uri: str, *, is_url: bool = False) -> str:
    """Return a URL without secrets and without parts that change with each signature.

    A path stays as it is, also behind ``file://``.

    Args:
        uri: a URL or path, as written in a row.
        is_url: treat ``uri`` as a URL even without a scheme, because it is relative to a URL.
    """
    if not may_hold_secrets(uri) or not (is_url or _URL.search(uri)):
        return uri
    uri = _with_users(uri, "")
    if uri[:7].lower() == "file://":  # a path, in which all letters are part of names
        return uri
    path, *rest = _SEPARATOR.split(uri)
    first = next((at for at in range(0, len(rest), 2) if _is_query(rest[at])), len(rest))
    path += "".join(rest[:first])
    if ";" in path or "&" in path:
        path = _without_path_parameters(path)
    parts = list(zip(rest[first::2], rest[first + 1 :: 2], strict=True))
    names = [_name(part) for _, part in parts]
    is_signed = any(name.lower() in _SIGNATURES for name in names)
    kept: list[str] = []
    for (separator, part), name in zip(parts, names, strict=True):
        if not is_secret(name) and not (is_signed and name.lower() in _WITH_SIGNATURE):
            kept += [separator if kept or _is_query(separator) else "?", part]
    return path + "".join(kept)


def _is_query(mark: str) -> bool:
    """Return whether a mark begins a query or a fragment."""
    return unquote(mark) in "?#"


def is_secret(name: str) -> bool:
    """Return whether the name of a parameter says that its value is secret.

    ``token[]`` and ``user[token]`` are, in any case and with any words before.
    """
    return any(_ends_secret(_WORD.findall(part)) for part in name.split("["))


def _ends_secret(words: list[str]) -> bool:
    words = [word.lower() for word in words]
    if words[:2] in (["x", "goog"], ["x", "amz"]) and len(words) > 2:
        return True
    joined = "".join(words)
    one = joined.removesuffix("s")  # tokens, credentials
    return (
        one.endswith(_SECRET_ENDS)
        or one.endswith(_SECRET_KEYS)
        or (bool(words) and not _SECRET_WORDS.isdisjoint((words[-1], joined)))
    )


def _name(parameter: str) -> str:
    name, *value = _EQUALS.split(parameter, maxsplit=1)
    return unquote(name) if value else ""


def _masked_parameter(found: re.Match[str]) -> str:
    separator, name, equals, value = found.groups()
    if not is_secret(unquote(name)):
        return found[0]
    return f"{separator}{name}{equals}{MASK}{_closing(value)}"


def _without_query(found: re.Match[str]) -> str:
    """Mask all that follows the ``?`` or ``#`` of a web server's URL in a text without blanks."""
    text = found[0]
    url = _HTTP.search(text)
    mark = _QUERY.search(text, url.end()) if url else None
    if mark is None or not text[mark.end() :].strip(_CLOSING):
        return text
    return text[: mark.end()] + MASK + _closing(text[mark.end() :])


def _closing(text: str, letters: str = _CLOSING) -> str:
    return text[len(text.rstrip(letters)) :]


def _without_path_parameters(path: str) -> str:
    """Remove secret parameters of the names in a path: ``/a;token=1/b&sig=2`` → ``/a/b``."""
    first, *rest = _PATH_SEPARATOR.split(path)
    pieces = zip(rest[::2], rest[1::2], strict=True)
    return first + "".join(
        separator + piece
        for separator, piece in pieces
        if separator == "/" or not is_secret(_name(piece))
    )


def _with_users(text: str, by: str, *, cut: str | None = None) -> str:
    """Replace the user name and password of each URL in a text by ``by``.

    ``cut`` replaces what looks like a password whose end, the ``@``, was cut off; None if the text
    is one whole URL.
    """
    pieces, done = [], 0
    while slashes := _SLASHES.search(text, done):
        start = slashes.end()
        before = text[done : slashes.start()]
        pieces.append(text[done:start])
        colon = _COLON_AT_END.search(before)
        scheme = before[: colon.start()] if colon else ""
        scheme = scheme[len(scheme.rstrip(_SCHEME_LETTERS)) :]
        in_text = _AUTHORITY_END if cut is None else _AUTHORITY_END_IN_TEXT
        stop = (_ESCAPED_AUTHORITY_END if slashes[0][0] == "%" else in_text).search(text, start)
        done = stop.start() if stop else len(text)
        authority = text[start:done]
        *_, host = _AT.split(authority)
        if user := authority.removesuffix(host):
            is_place = not scheme or scheme.lower() in _PLACES  # also a path such as a//b@2x.jpg
            is_place = is_place and not _COLON.search(user)
            pieces.append(authority if is_place else f"{by}{host}")
        elif not scheme or _is_host(host):
            pieces.append(host)
        elif (end := _end_of_odd_user(text, start, done)) > 0:  # a password with a slash or blank
            pieces.append(by)
            done = end
        else:
            pieces.append(host if cut is None else cut + _closing(host, _CLOSING_HOST))
    return "".join(pieces) + text[done:]


def _is_host(text: str) -> bool:
    """Return whether a text is a host, perhaps with a port and with letters that follow a URL."""
    if text.startswith(":"):  # a password without a user name
        return False
    return _HOST.fullmatch(text.partition("::")[0].rstrip(_CLOSING_HOST)) is not None


def _end_of_odd_user(text: str, start: int, stop: int) -> int:
    """Return the end of a user name and password that begin at ``start``; -1 if no ``@`` is there.

    The text up to ``stop`` has a colon, but no port after it, so what follows is part of a
    password, whatever it contains.
    """
    following = text.find("//", stop + 2)  # the next URL; each search ends where the next begins
    run = _RUN.match(text, start, following if following >= 0 else len(text))
    at = run[0].rfind("@") if run else -1
    if at >= 0:
        return start + at + 1
    line = text.find("\n", stop, following if following >= 0 else len(text))
    end = line if line >= 0 else following if following >= 0 else len(text)
    return text.find("@", stop, end) + 1 or -1
