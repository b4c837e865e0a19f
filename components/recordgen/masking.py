"""Secrets in URLs: user names, passwords, tokens, and the parameters of signed URLs.

    https://me:pw@host/1.jpg?v=2&X-Goog-Signature=8f…
    without_secrets  →  https://host/1.jpg?v=2                             names a payload in data
    masked           →  https://***@host/1.jpg?v=2&X-Goog-Signature=***    shows it to people

From the moment it is read, a row is named by its URL without secrets; the full URL for the request
travels with it (:mod:`recordgen.sources.secrets`). Messages are masked where errors and log lines
are created.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote

MASK = "***"

# Names of secret parameters, in lower case; a prefix such as "auth-" or "x_" is allowed.
_SECRET = re.compile(
    r"x-(?:goog|amz)-.+"
    r"|(?:.*[-_.])?(?:sig|signature|hmac|token|jwt|auth|authorization|password|passwd|pwd|secret"
    r"|credential|credentials|apikey|api[-_.]key|access[-_.]key|accesskeyid|secretkey)"
    r"|awsaccesskeyid|googleaccessid|hdnts|hdnea"
    r"|(?:access|auth|refresh|id|sas|session|security)token"
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

_USERINFO = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#\s\"'<>]*)@")
# Userinfo truncated before its "@"; not a port, nor "::" between chained URLs.
_CUT_USERINFO = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]*)://[^/?#\s\"'<>\[\]@:]*:(?!\d*(?:[^\w@%+~-]|\Z))[^/?#\s\"'<>@]+"
)
_PARAMETER = re.compile(r"([?&;#])([^=&;#?\s\"'<>]+)=([^&;#\s\"'<>]+)")
_SEPARATOR = re.compile(r"([?&;#])")


def may_hold_secrets(text: str) -> bool:
    """Return whether a text needs the other functions: most rows contain none of these letters."""
    return "?" in text or "@" in text or "#" in text


def masked(text: str) -> str:
    """Return a text for display, with ``***`` in place of secrets in URLs.

    Parameters are masked in any text, because libraries may report a request by its path only.
    """
    if not ("@" in text or "=" in text or "://" in text):
        return text
    text = _USERINFO.sub(partial(_replaced_userinfo, f"{MASK}@"), text)
    text = _CUT_USERINFO.sub(rf"\1://{MASK}", text)
    return _PARAMETER.sub(_masked_parameter, text)


def masked_json(value: Any) -> Any:
    """Return a JSON value with all texts masked; keys stay."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, Mapping):
        return {name: masked_json(item) for name, item in value.items()}
    return [masked_json(item) for item in value] if isinstance(value, list | tuple) else value


def without_secrets(uri: str, *, is_url: bool = False) -> str:
    """Return a URL without secrets and without parts that change with each signature.

    A local path stays as it is.

    Args:
        uri: a URL or path, as written in a row.
        is_url: treat ``uri`` as a URL even without a scheme, because it is relative to a URL.
    """
    if not may_hold_secrets(uri) or not (is_url or "://" in uri):
        return uri
    if "@" in uri:
        uri = _USERINFO.sub(partial(_replaced_userinfo, ""), uri, count=1)
    path, *rest = _SEPARATOR.split(uri)
    first = next((at for at in range(0, len(rest), 2) if rest[at] in "?#"), len(rest))
    path += "".join(rest[:first])  # before the query, "&" and ";" are ordinary letters
    parts = list(zip(rest[first::2], rest[first + 1 :: 2], strict=True))
    names = [_name(part) for _, part in parts]
    is_signed = any(name in _SIGNATURES for name in names)
    kept = ""
    for (separator, part), name in zip(parts, names, strict=True):
        if not _is_secret(name) and not (is_signed and name in _WITH_SIGNATURE):
            kept += (separator if kept or separator in "?#" else "?") + part
    return path + kept


def _name(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    return unquote(name).lower() if equals else ""


def _is_secret(name: str) -> bool:
    return _SECRET.fullmatch(name) is not None


def _masked_parameter(found: re.Match[str]) -> str:
    separator, name, _ = found.groups()
    return f"{separator}{name}={MASK}" if _is_secret(unquote(name).lower()) else found[0]


def _replaced_userinfo(by: str, found: re.Match[str]) -> str:
    is_place = found[1].lower() in _PLACES and ":" not in found[2]
    return found[0] if is_place else f"{found[1]}://{by}"
