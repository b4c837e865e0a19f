"""The settings of a conversion with the given options, for tests of single functions."""

from __future__ import annotations

from typing import Any

from recordgen.conversion.api import conversion_of, payloads_of, splits_of
from recordgen.core.conversion import Conversion, Splits
from recordgen.core.image_settings import PayloadSettings
from recordgen.options import make_options


def payload_settings(**options: Any) -> PayloadSettings:
    """Return how payloads are checked and stored."""
    return payloads_of(make_options(options))


def split_settings(**options: Any) -> Splits:
    """Return how rows get their splits."""
    return splits_of(make_options(options))


def conversion(**options: Any) -> Conversion:
    """Return what a run does; for images of one label and a CSV file, unless options say more."""
    given = {"task": "image_classification", "format": "csv", **options}
    return conversion_of(make_options(given))
