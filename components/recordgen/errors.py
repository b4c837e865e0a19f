"""The exception tree. Every error that a user can cause or fix is one of these.

RecordgenError
├── UsageError             an option or argument is wrong                      exit code 2
│   ├── OutputExistsError  OUTPUT already holds a dataset
│   ├── OutputBusyError    another run writes into OUTPUT
│   ├── MissingPackageError     a package of an extra is not installed
│   └── NotUnderstoodError      a source fits no definition as a whole; also a SourceError
├── DataError              the data cannot give a dataset                      exit code 1
│   ├── NothingToConvertError   no row survived planning
│   ├── TooManyRejectsError     more rows were rejected than allowed
│   └── SplitNotFoundError      a dataset has no such split                    exit code 2
├── LintError              a finding that fail_on names                        exit code 1
├── SourceError            an import file is missing or cannot be read         exit code 1
├── StorageError           storage failed; the data may be fine                exit code 1
│   ├── UnreachableError        requests failed, despite all retries
│   ├── ResponseError           a web server refuses a request, or its response is invalid
│   ├── UnknownSchemeError      no storage is known for a URL's scheme
│   ├── NotAllowedError         a redirect leads to a forbidden target
│   └── FileTooLargeError       a file exceeds its size limit
├── RunnerError            Beam's runner failed for another reason             exit code 1
├── RecordError            a TFRecord file is damaged                          exit code 1
└── PayloadError           one payload is refused: becomes a reject, never ends a run

NotUnderstoodError and DataError are also RemediedErrors: they may know options that help.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar, cast

from recordgen.messages import MESSAGE_CHARACTERS, shortened
from recordgen.messages.masking import masked
from recordgen.version import __version__

if TYPE_CHECKING:
    from recordgen.rejects import Reject


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _shown(text: str) -> str:
    """Return the text of an error, which may list several rejects, without secrets."""
    return shortened(masked(text), 5 * MESSAGE_CHARACTERS)


class RecordgenError(Exception):
    """Base of all errors that Recordgen raises on purpose; its text masks secrets in URLs."""

    exit_code = 1

    def __init__(self, *args: object) -> None:
        super().__init__(*(_shown(arg) if isinstance(arg, str) else arg for arg in args))


class RemediedError(RecordgenError):
    """An error that knows the options that are likely to read the source.

    Attributes:
        reason: what is wrong, and where.
        shown: what was understood: three rows, or a folder with counts; a line each.
        options: the options that are likely to read the source, by keyword; empty if none can. One
            without a value is omitted.
        source: what to pass instead of the source; empty if it stays.
        command: the whole command as arguments, which the command line fills in.
    """

    def __init__(
        self,
        reason: str,
        *,
        shown: str = "",
        options: Mapping[str, str] | None = None,
        source: str = "",
    ) -> None:
        self.reason, self.shown = _shown(reason), _shown(shown)
        self.options, self.source = dict(options or {}), source
        self.command: Sequence[str] = ()
        super().__init__("\n".join(filter(None, (reason, shown, self._remedy()))))

    def _remedy(self) -> str:
        values = [repr(self.source)] if self.source else []
        values += [f"{name}={value!r}" for name, value in self.options.items()]
        return f"read it with: {', '.join(values)}" if values else ""

    def complete(self, arguments: Sequence[str], source: str) -> None:
        """Fill in the command, from that of the user and the source in it."""
        if not (self.options or self.source):
            return
        flags = {f"--{name.replace('_', '-')}": value for name, value in self.options.items()}
        found: list[str] = []
        rest = iter(arguments)
        for argument in rest:
            name, equals, _ = argument.partition("=")
            if name in flags:
                if not equals:
                    next(rest, None)  # its value
            else:
                found.append(self.source if self.source and argument == source else argument)
        for flag, value in flags.items():
            found += [flag, value] if value else []
        self.command = ("recordgen", *found)
        lines = (self.reason, self.shown, "read it with:", shlex.join(self.command))
        self.args = ("\n".join(filter(None, lines)),)


class RecordgenWarning(UserWarning):
    """Rejected rows, or findings of the checks; the text begins with their code.

    ``warnings.filterwarnings("ignore", "LEAK", recordgen.errors.RecordgenWarning)`` hides a code.
    Commands and steps of pipelines print or log the same instead.
    """


class UsageError(RecordgenError, ValueError):
    """An option or argument has a value that is not allowed."""

    exit_code = 2


class OutputExistsError(UsageError):
    """The output already holds a dataset, and ``overwrite`` is not given."""


class OutputBusyError(UsageError):
    """Another run that is still alive writes into the same output."""


def install(extra: str) -> str:
    """Return the command that installs an extra, of the package or of its clone."""
    return f"pip install 'recordgen[{extra}]' (in a clone: '.[{extra}]')"


class MissingPackageError(UsageError, ImportError):
    """A package of one of Recordgen's extras is not installed; the text names the extra."""

    @classmethod
    def of(cls, exc: ImportError, what: str) -> MissingPackageError | None:
        """Return the error for a failed import; None if the package belongs to no extra.

        ``No module named 'keras'``, ``reading`` → ``reading needs keras, which is not installed:
        pip install 'recordgen[tensorflow]' …``
        """
        if isinstance(exc, cls) and isinstance(exc.__cause__, ImportError):
            exc = exc.__cause__  # the name that the user has imported says more
        package = (exc.name or "").partition(".")[0]
        if not isinstance(exc, ModuleNotFoundError) or package not in _EXTRAS:
            return None
        return cls(f"{what} needs {package}, which is not installed: {install(_EXTRAS[package])}")


# Package → the extra that contains it.
_EXTRAS = {
    "absl": "tensorflow",
    "keras": "tensorflow",
    "sklearn": "tensorflow",
    "tensorflow": "tensorflow",
    "tensorflow_data_validation": "tfx",
    "tensorflow_model_analysis": "tfx",
    "tfx": "tfx",
    "tfx_bsl": "tfx",
}


class DataError(RemediedError):
    """The data as a whole cannot be turned into a dataset.

    Attributes:
        message: the fault, without the file of rejects.
        rejects: the skipped rows that caused it.
        rejects_file: the file with all rejects; it is named at the end of the error's text.
    """

    def __init__(
        self,
        message: str,
        *,
        rejects: Sequence[Reject] = (),
        rejects_file: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        named = f"{message}; see {rejects_file}" if rejects_file else message
        super().__init__(named, options=options)
        self.message = _shown(message)
        self.rejects = tuple(rejects)
        self.rejects_file = rejects_file


class NothingToConvertError(DataError):
    """Not one row is left to convert."""


class TooManyRejectsError(DataError):
    """The share of rejected rows is above ``max_reject_fraction``."""


class SplitNotFoundError(DataError, KeyError):
    """A dataset has no split of this name. A ``KeyError``, as ``load(…)["test"]`` may raise it."""

    exit_code = UsageError.exit_code  # an option has named it

    def __str__(self) -> str:
        return self.message  # KeyError would quote it


class LintError(RecordgenError):
    """The checks have findings that ``fail_on`` names; finished shards stay for ``resume``."""


class SourceError(RecordgenError):
    """An import file is missing or malformed."""


class NotUnderstoodError(RemediedError, UsageError, SourceError):
    """A source fits no definition of docs/formats.md as a whole; nothing is read or written."""


class StorageError(RecordgenError):
    """Storage failed in a way that says nothing about the data.

    It ends the run: an outage must never look like bad data.
    """


class UnreachableError(StorageError):
    """Storage does not respond, or only with failures, despite all retries."""


class ResponseError(StorageError):
    """A web server refuses a request, or its response is invalid.

    Attributes:
        code: the reason, a value of :class:`recordgen.rejects.RejectCode`.
    """

    def __init__(self, message: str, code: str = "bad_response") -> None:
        super().__init__(message)
        self.code = str(code)

    def __reduce__(self) -> tuple[type[ResponseError], tuple[str, str]]:
        return type(self), (str(self), self.code)


class UnknownSchemeError(StorageError):
    """No storage is known for the scheme of a URL, such as ``g://``."""


class NotAllowedError(StorageError):
    """A redirect leads to a forbidden target."""


class FileTooLargeError(StorageError):
    """A file exceeds its size limit.

    Attributes:
        size: its known size in bytes; it may be larger.
    """

    def __init__(self, message: str, size: int = 0) -> None:
        super().__init__(message)
        self.size = size


class RunnerError(RecordgenError):
    """Beam's runner failed for a reason that is none of the above."""


class RecordError(RecordgenError):
    """A TFRecord file is truncated or damaged; the message names file and offset."""


class PayloadError(RecordgenError):
    """One payload is refused.

    Attributes:
        code: the reason, a value of :class:`recordgen.rejects.RejectCode`.
        message: the fault, with the found and the expected value.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = str(code)
        self.message = shortened(masked(message))

    def __reduce__(self) -> tuple[type[PayloadError], tuple[str, str]]:
        return type(self), (self.code, self.message)


def did_you_mean(name: object, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of a message about an unknown name; ``otherwise`` if no known name is similar.

    ``"lable"``, ``["label", "path"]`` → ``"; did you mean 'label'?"``
    """
    close = get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else otherwise


def check_one_of(name: str, value: object, allowed: Collection[str | None]) -> None:
    """Check that a value is one of some words. Raises: UsageError."""
    if not (value is None or isinstance(value, str)) or value not in allowed:
        raise UsageError(f"{name} must be one of {', '.join(map(str, allowed))} (got {value!r})")


def check_at_least(least: int, **named: Any) -> None:
    """Check whole numbers of 64 bits by name. Raises: UsageError."""
    for name, value in named.items():
        if not is_integer(value):
            raise UsageError(f"{name} must be a whole number (got {value!r})")
        if value < least:
            raise UsageError(f"{name} must be at least {least} (got {value!r})")
        if value >= 1 << 63:
            raise UsageError(f"{name} must be a number of 64 bits (got {value!r})")


def check_type(kind: type[Any], expected: str, **named: object) -> None:
    """Check the type of values by name. Raises: UsageError."""
    for name, value in named.items():
        if not isinstance(value, kind):
            raise UsageError(f"{name} must be {expected} (got {value!r})")


def is_integer(value: object) -> bool:
    """Return whether a value is a whole number of Python or NumPy, and not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_names(given: Iterable[str], known: Sequence[str]) -> None:
    """Check the names of keyword options. Raises: UsageError, which suggests a similar name."""
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known, f"; known: {', '.join(known)}")
            raise UsageError(f"unknown option {name!r}{_our_name(name, known) or hint}")


def check_gone(
    values: Mapping[str, Any], known: Iterable[str], defaults: Mapping[str, Any]
) -> None:
    """Check the values that a pipeline passes, which an earlier version may have compiled.

    An input that has gone since is ignored at the default that it had then.

    Raises: UsageError: another input has gone.
    """
    for name in sorted(values.keys() - known):
        if values[name] != defaults.get(name):
            raise UsageError(
                f"{name} is no input of this step in version {__version__} (got "
                f"{values[name]!r:.80}); omit it, or run the step in the image of the version that "
                f"it was compiled with"
            )


def names_checked(function: _Function) -> _Function:
    """Let a function answer an unknown keyword with a UsageError that names the known ones."""
    code = function.__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    known = [name for name in parameters if name != "self"]

    @wraps(function)
    def checked(*values: Any, **options: Any) -> Any:
        check_names(options, known)
        return function(*values, **options)

    return cast("_Function", checked)


def _our_name(name: str, known: Collection[str]) -> str:
    """Return the end of a message about an unknown option that another tool has; else "".

    ``"size"``, ``["image_size"]`` → ``"; write image_size=…"``

    ``other_names.json`` has what to write, and the names that other tools have for it, separated by
    blanks. Our options count for the functions that have them; a name's first answer is given.
    """
    import json  # for wrong names alone
    from importlib import resources

    table = resources.files("recordgen").joinpath("other_names.json")
    for answer, names in json.loads(table.read_text(encoding="utf-8")).items():
        if name in names.split() and (answer in known or not answer.isidentifier()):
            return f"; write {answer}=…" if answer in known else f"; write {answer}"
    return ""
