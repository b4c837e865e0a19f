"""The runtime parameters of a compiled job, by name; values are texts.

A parameter is a whole message of TFX, as JSON:
``span=7`` → ``range_config={"static_range": {"start_span_number": 7, …}}``
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence

from pipelines.config import PATTERN_HELP, check_span, check_train_steps
from recordgen.errors import UsageError

INPUT_BASE = "input_base"
INPUT_CONFIG = "input_config"
RANGE_CONFIG = "range_config"
DATASET_VERSION = "dataset_version"
TRAIN_ARGS = "train_args"
NAMES = (INPUT_BASE, INPUT_CONFIG, RANGE_CONFIG, DATASET_VERSION, TRAIN_ARGS)

BUCKET = "gs://"


def parameter_values(
    *,
    data: str | None = None,
    pattern: str | None = None,
    span: int | None = None,
    dataset_version: str | None = None,
    train_steps: int | None = None,
) -> dict[str, str]:
    """Return the parameters for the arguments that are given. Raises: UsageError."""
    values = {}
    if data is not None:
        check_url("--data", data)
        values[INPUT_BASE] = data
    if pattern is not None:
        values[INPUT_CONFIG] = json.dumps({"splits": [{"name": "import", "pattern": pattern}]})
    if span is not None:
        static = {"start_span_number": span, "end_span_number": span}
        values[RANGE_CONFIG] = json.dumps({"static_range": static})
    if dataset_version is not None:
        values[DATASET_VERSION] = dataset_version
    if train_steps is not None:
        check_train_steps(train_steps)
        values[TRAIN_ARGS] = json.dumps({"num_steps": train_steps})
    return values


#: The defaults: the latest span, no version, as many epochs as were compiled.
UNSET = {RANGE_CONFIG: "", DATASET_VERSION: "", TRAIN_ARGS: "{}"}


def check_url(option: str, url: str) -> None:
    """Check that the service can reach ``url``. Raises: UsageError."""
    if not url.startswith(BUCKET) or not url.removeprefix(BUCKET).strip("/"):
        raise UsageError(f"{option} must be a folder in a bucket, gs://BUCKET/… (got {url!r})")


def below(folder: str, name: str) -> str:
    """Return the URL of a folder inside another one."""
    return f"{folder.rstrip('/')}/{name}"


def add_parameter_options(parser: argparse.ArgumentParser, *, data_required: bool) -> None:
    """Add the options that become runtime parameters."""
    add = parser.add_argument
    add("--data", required=data_required, help="gs:// folder of the import files")
    add("--pattern", help=PATTERN_HELP)
    add("--span", type=int, help="the span to read (days since 1970 for dates); default: latest")
    add("--dataset-version", help="your own name for this data; part of the cache key")
    add("--train-steps", type=int, help="steps to train in all; default: by --epochs")
    add(
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"a runtime parameter of the job: {', '.join(NAMES)}; may be repeated",
    )


def given_parameters(args: argparse.Namespace) -> dict[str, str]:
    """Return the parameters on the command line; ``--parameter`` overrules. Raises: UsageError."""
    values = parameter_values(
        data=args.data,
        pattern=args.pattern,
        span=args.span,
        dataset_version=args.dataset_version,
        train_steps=args.train_steps,
    )
    return {**values, **parse_parameters(args.parameter)}


def parse_parameters(texts: Sequence[str]) -> dict[str, str]:
    """``["dataset_version=2026-11"]`` → ``{"dataset_version": "2026-11"}``. Raises: UsageError."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in NAMES:
            raise UsageError(
                f"--parameter must be NAME=VALUE with NAME one of {', '.join(NAMES)} (got {text!r})"
            )
        values[name] = value
    return values


def check_parameters(values: Mapping[str, str]) -> None:
    """Check a job's parameters before they are sent.

    Raises:
        UsageError: TFX cannot read one, or they contradict each other.
    """
    check_url(INPUT_BASE, values[INPUT_BASE])
    splits = _message(values, INPUT_CONFIG).get("splits")
    if not isinstance(splits, list) or not all(isinstance(s, dict) for s in splits) or not splits:
        raise UsageError(
            f'{INPUT_CONFIG} must be {{"splits": [{{"name": …, "pattern": …}}]}} '
            f"(got {values[INPUT_CONFIG]!r})"
        )
    # TFX reads other spellings, too, such as numbers as texts.
    static = _message(values, RANGE_CONFIG).get("static_range")
    span = static.get("start_span_number") if isinstance(static, dict) else None
    if isinstance(span, int):
        for split in splits:
            check_span(span, str(split.get("pattern", "")))
    steps = _message(values, TRAIN_ARGS).get("num_steps")
    if isinstance(steps, int):
        check_train_steps(steps)


def _message(values: Mapping[str, str], name: str) -> dict[str, object]:
    text = values[name]
    try:
        message = json.loads(text) if text else {}
    except ValueError as exc:
        raise UsageError(f"{name} must be JSON (got {text!r}: {exc})") from exc
    if not isinstance(message, dict):
        raise UsageError(f"{name} must be a JSON object (got {text!r})")
    return message
