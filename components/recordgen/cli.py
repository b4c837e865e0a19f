"""The ``recordgen`` command.

Examples:
  recordgen check photos/          find what would spoil a training; write nothing
  recordgen convert photos/ out    a folder of images, one subfolder for each class
  recordgen convert labels.csv out --columns path=file,label=kind
                                   an import file, with the names of its columns

Exit codes: 0 done; 1 the data, storage or runner failed, check found an error in the data, or diff
found what ``--fail-on`` names; 2 wrong option or argument; 130 interrupted; 137 killed, as when
memory runs out; 143 stopped by SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from importlib.metadata import distributions
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from recordgen import storage
from recordgen.console import logs, terminal
from recordgen.console.quiet import load_arrow, quiet_libraries
from recordgen.console.stopping import exit_now, interrupted, stopping
from recordgen.conversion import printed_tables, summaries
from recordgen.core.ordered import check_stopped
from recordgen.errors import RecordgenError, RecordgenWarning, RemediedError, UsageError
from recordgen.messages.masking import masked, masked_json
from recordgen.options import OPTIONS, Option, make_options, parse_names
from recordgen.registry import EXPORTS, has_plug_ins
from recordgen.version import __version__

if TYPE_CHECKING:
    from recordgen.conversion.results import ConversionResult
    from recordgen.core.progress import Progress

_RECORDS_SHOWN = 5
_FAIL_ON = ("changes,leaks", "changes", "leaks", "none")  # the first by default
_PLACES = {"source", "output", "place", "to", "old", "new"}
_DATASET = "a converted or written output, its dataset.json, or a TFX Examples uri"
_BEAM_FLAGS = (
    "Beam flags follow after --, such as: -- --direct_num_workers=2, or "
    "-- --runner=DataflowRunner --project=P --region=R --temp_location=gs://B/tmp"
)

_Run: TypeAlias = Callable[[argparse.Namespace], int]
_Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"  # noqa: SLF001  # it has no public name


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    beam_args: list[str] = []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, beam_args = arguments[:cut], arguments[cut + 1 :]
    arguments = _with_dashes(arguments)
    debug = "--debug" in arguments
    hint = set_up_logs(arguments)
    if debug:
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
    else:
        quiet_libraries()
    with stopping(hint), warnings.catch_warnings():
        # For programs: the command prints the same in its summary.
        warnings.simplefilter("ignore", RecordgenWarning)
        return _run(arguments, beam_args, debug=debug)


def _run(arguments: Sequence[str], beam_args: Sequence[str], *, debug: bool) -> int:
    args = None
    try:
        args = _parse(arguments)
        args.beam_args = beam_args
        if not (beam_args or has_plug_ins()):  # their code may have values of pandas
            load_arrow()
        if vars(args).get("quiet") and args.log_format == "text":
            logging.getLogger("recordgen").setLevel(logging.WARNING)
        if beam_args and args.run not in (_convert, _check, _plan_parts):
            raise UsageError(f"{args.command} runs no pipeline and takes no Beam flags after --")
        code: int = args.run(args)
        check_stopped()
        return code
    except RecordgenError as exc:
        if not isinstance(exc, UsageError):
            _offer_resume(args)
        if isinstance(exc, RemediedError) and args and "source" in args:
            same = [args.source if storage.normal(it) == args.source else it for it in arguments]
            exc.complete(same, args.source)
        from recordgen.conversion.results import as_flags  # the help needs none

        exc.args = tuple(as_flags(arg) if isinstance(arg, str) else arg for arg in exc.args)
        logs.failed(exc, exc.exit_code, traceback=debug)
        return exc.exit_code
    except KeyboardInterrupt as exc:
        _offer_resume(args)
        return interrupted(exc, traceback=debug)
    except BrokenPipeError:
        terminal.drop_output()  # its reader is gone
        return 1
    except Exception:  # a bug: keep its traceback
        _offer_resume(args)
        raise


def _with_dashes(arguments: Sequence[str]) -> list[str]:
    """Return arguments with ``--lint -ALL`` as one: argparse would take the value for a flag."""
    found: list[str] = []
    for argument in arguments:
        is_value = argument.startswith("-") and not argument.startswith("--")
        if is_value and found and found[-1] == "--lint":
            found[-1] += f"={argument}"
        else:
            found.append(argument)
    return found


def exit_main() -> NoReturn:
    """Run the command line as a process."""
    exit_now(main())


def _offer_resume(args: argparse.Namespace | None) -> None:
    """Suggest --resume if the conversion that just ended left finished shards."""
    from recordgen.core.runs.commit import count_unfinished

    if args is None or args.command != "convert":
        return
    # Storage itself may have failed, after all its retries.
    with storage.without_retries(), suppress(RecordgenError, OSError):
        shards = count_unfinished(args.output)
        if shards:
            logs.unfinished(args.output, shards)


def set_up_logs(arguments: Sequence[str]) -> str:
    """Log as the arguments say, even if others are wrong; return how to go on after a stop."""
    is_json = "--log-format json" in " ".join(arguments).replace("=", " ")
    level = logging.INFO if "--debug" in arguments else logging.ERROR
    logs.set_up("json" if is_json else "text", level=level)
    writes = arguments[:1] == ["convert"] and "--dry-run" not in arguments
    return "; nothing was committed; go on with --resume" if writes else ""


# --- commands ---------------------------------------------------------------------------------


def _convert(args: argparse.Namespace) -> int:
    options = _options(args)
    if args.dry_run:
        return _plan(args, options)
    logs.started("convert", args.source, output=args.output)
    from recordgen.conversion.api import convert

    return _show_converted(args, convert(args.source, args.output, **_way(args), **options))


def _way(args: argparse.Namespace) -> dict[str, Any]:
    """Return how a conversion writes: what is no option of :mod:`recordgen.options`."""
    names = ("overwrite", "append", "resume", "beam_args")
    return {name: getattr(args, name) for name in names} | {"progress": _progress(args)}


def _show_converted(args: argparse.Namespace, result: ConversionResult) -> int:
    values = {
        "output": result.output,
        "seconds": result.seconds,
        "kept_shards": result.kept_shards,
        "unchanged": result.unchanged,
        "detection": result.detection and result.detection.to_json(),
        **result.dataset.to_json(),
    }
    _show(args, values, summaries.summary(result))
    summaries.log_converted(result)
    return 0


def _plan(args: argparse.Namespace, options: dict[str, Any]) -> int:
    logs.started("plan", args.source, output=args.output)
    from recordgen.conversion.api import plan

    started = time.monotonic()
    staged = plan(
        args.source,
        append_to=args.output if args.append else None,
        beam_args=args.beam_args,
        progress=_progress(args),
        **options,
    )
    _show(args, summaries.plan_json(staged), summaries.summary(staged, output=args.output))
    usable = staged.rows + staged.existing
    code = _exit_code(usable, len(staged.rejects), staged.read, options)
    summaries.log_planned(staged, time.monotonic() - started, code)
    return code


def _plan_parts(args: argparse.Namespace) -> int:
    options = _options(args)
    logs.started("parts plan", args.source, output=args.output)
    from recordgen.conversion.parts import plan

    started = time.monotonic()
    staged = plan(args.source, args.output, args.parts, **_way(args), **options)
    where = {"output": staged.output, "parts": staged.parts, "shards": staged.shards}
    values = {**where, **summaries.plan_json(staged)}
    _show(args, values, summaries.summary(staged))
    summaries.log_planned(staged, time.monotonic() - started, 0)
    return 0


def _work(args: argparse.Namespace) -> int:
    from recordgen.conversion.parts import work

    result = work(args.output, args.part, said=None if args.quiet else logs.said)
    _show(args, asdict(result), summaries.summary(result))
    return 0


def _commit(args: argparse.Namespace) -> int:
    from recordgen.conversion.parts import commit

    result = commit(args.output, progress=_progress(args))
    if result.unchanged and not args.json:
        digest = result.dataset.digest[:16]
        _show(args, {}, f"Already committed: {result.output} (digest {digest}…)")
        return 0
    return _show_converted(args, result)


def _check(args: argparse.Namespace) -> int:
    logs.started("check", args.source)
    from recordgen.conversion.api import check
    from recordgen.exports.verifying import is_finished

    if is_finished(args.source):
        return _verify(args)

    options = _options(args)
    result = check(args.source, beam_args=args.beam_args, progress=_progress(args), **options)
    dataset = result.dataset
    values = {
        "seconds": result.seconds,
        "rejects": [item._asdict() for item in result.rejects],
        "findings": [item._asdict() for item in result.findings],
        "lint_findings": summaries.lint_json(result.lint),
        "detection": result.detection and result.detection.to_json(),
        **dataset.to_json(),
    }
    _show(args, values, summaries.summary(result))
    code = _exit_code(dataset.examples, len(result.rejects), dataset.rows.read, options)
    if result.lint.is_bad:
        code = 1
    summaries.log_checked(result, code)
    return code


def _verify(args: argparse.Namespace) -> int:
    """Compare a finished output with its dataset.json."""
    from recordgen.exports.verifying import verify

    if args.beam_args or any(getattr(args, name) != OPTIONS[name].default for name in OPTIONS):
        raise UsageError(
            f"{args.source} is a finished output, whose files check compares with its "
            f"dataset.json; omit the options, which are for import files"
        )
    result = verify(args.source, _progress(args))
    _show(args, result.to_json(), summaries.summary(result))
    return 1 if result.differences else 0


def _progress(args: argparse.Namespace) -> Progress | None:
    """Return a progress bar on a terminal, log lines elsewhere, None if quiet."""
    given = vars(args)
    if given.get("quiet"):
        return None
    if given.get("log_format", "text") == "text" and sys.stderr.isatty():
        return terminal.ProgressBar()
    return logs.ProgressLog()


def _exit_code(usable: int, rejects: int, read: int, options: Mapping[str, Any]) -> int:
    """Return 1 if a conversion would fail: nothing to convert, or too many rejects."""
    from recordgen.core.planning.plan import too_many

    return int(not usable or too_many(rejects, read, options["max_reject_fraction"]))


def _inspect(args: argparse.Namespace) -> int:
    from recordgen.exports.inspection import inspect

    found = inspect(args.output, split=args.split, num=args.num, to=args.to)
    _show(args, [record.to_json() for record in found], printed_tables.records_table(found))
    return 0


def _export(args: argparse.Namespace) -> int:
    name, place = args.name, args.place
    from recordgen.exports import ExportOptions  # help does not need Arrow

    export = EXPORTS[name]()
    given = {it.name: value for it in fields(ExportOptions) if (value := vars(args).get(it.name))}
    for option in given:
        if option not in export.takes:
            raise UsageError(f"export {name} takes no --{option.replace('_', '-')}")
    done = export.export(place, ExportOptions(**given, progress=_progress(args)))
    values = {"written": list(done.files)} if done.values is None else done.values
    _show(args, values, done.text, done.files)
    return int(done.is_bad)


def _diff(args: argparse.Namespace) -> int:
    from recordgen.exports.diff import diff

    found = diff(args.old, args.new, by=args.by)
    if args.json:
        for piece in found.json_pieces():
            terminal.put(terminal.escaped(piece), end="")
    else:
        terminal.show(summaries.summary(found))
    reasons = {"changes": not found.is_same, "leaks": bool(found.leaks)}
    return int(any(reasons.get(name, False) for name in args.fail_on.split(",")))


def _show(
    args: argparse.Namespace, values: object, summary: str, written: Iterable[str] = ()
) -> None:
    """Print a result as JSON, or as text and the written files unless it is ``--quiet``."""
    if args.json:
        text = json.dumps(masked_json(values), indent=2, ensure_ascii=False)
        terminal.put(terminal.escaped(text))
        return
    if vars(args).get("quiet"):
        return
    from recordgen.conversion.results import as_flags  # the help needs none

    summary = re.sub("(?m)^(Warning|Remedy) .*", lambda line: as_flags(line[0]), summary)
    for text in filter(None, (summary, *(f"wrote {file}" for file in written))):
        terminal.show(text)


# --- arguments --------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors as all others: in one line, in the requested log format."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if file in (None, sys.stdout):
            terminal.put(message, end="")
        else:
            super()._print_message(message, file)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = build_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks for the words that may follow
        import_module("argcomplete").autocomplete(parser)
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        command: _Parser = args.parser
        name = unknown[0].partition("=")[0]
        options = re.findall(r"(?m)^ +(?:-\w, )?(--[\w-]+)", command.format_help())
        close = get_close_matches(name, options, n=1, cutoff=0.7)
        is_copy = args.command == "export" and "to" in EXPORTS[args.name].takes
        if is_copy and not name.startswith("-"):
            close = [f"--to {unknown[0]}"]
        hint = f"; did you mean {close[0]}?" if close else ""
        if args.command in ("check", "convert") and not name.startswith("-"):
            hint = "; several import files are one SOURCE: a quoted glob such as 'data/*.csv'"
        if name.startswith("--") and command.epilog and name in command.epilog:
            hint = f"; {command.epilog}"
        command.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    for name in _PLACES & vars(args).keys():
        if path := getattr(args, name):
            setattr(args, name, storage.normal(path))
    return args


def build_parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    parser = _Parser(
        prog="recordgen",
        description=sys.modules["recordgen"].__doc__,
        epilog=f"{str(__doc__).partition('command.')[2].strip()}\n\n{_address()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"recordgen {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    text = "convert import files into split, sharded TFRecords"
    add = _conversion(commands, "convert", _convert, text, "[options] SOURCE OUTPUT")
    add("--dry-run", action="store_true", help="plan from rows and file sizes, write nothing")
    _add_check(commands)
    _add_parts(commands)
    _add_inspect(commands)
    text = "write the page about a finished dataset, report.html"
    report = _logging(_command(commands, "report", _export, text))
    report.set_defaults(name="report")
    report.add_argument("place", metavar="DATASET", help=_DATASET)
    text = "path or URL to write (default: report.html in DATASET)"
    report.add_argument("--output", metavar="FILE", help=text)
    _add_diff(commands)
    _add_export(commands)
    return parser


def _add_check(commands: _Commands) -> None:
    text = "read and check everything as convert does, write nothing"
    checker = _command(commands, "check", _check, text)
    checker.usage, checker.epilog = "%(prog)s [options] SOURCE [-- Beam flags]", _BEAM_FLAGS
    _add_source(checker, "; or a finished output, whose files are compared with its dataset.json")
    add_options(checker)
    _logging(checker)


def _add_parts(commands: _Commands) -> None:
    text = "convert in parts that a scheduler runs: plan, work on each part, commit"
    parts = commands.add_parser("parts", help=text)
    steps = parts.add_subparsers(dest="step", required=True, metavar="STEP")
    text = "read and plan all rows for a number of parts"
    add = _conversion(steps, "plan", _plan_parts, text, "--parts N [options] SOURCE OUTPUT")
    text = "number of parts, one a worker"
    add("--parts", type=_natural, required=True, metavar="N", help=text)
    worker = _logging(_command(steps, "work", _work, "write the shards of a part"))
    text = "check and publish the dataset of all parts"
    for command in (worker, _logging(_command(steps, "commit", _commit, text))):
        command.add_argument("output", metavar="OUTPUT", help="as in plan, with its options")
    text = "number of the part, from 0 (default: $JOB_COMPLETION_INDEX)"
    worker.add_argument("part", metavar="PART", type=int, nargs="?", help=text)


def _add_inspect(commands: _Commands) -> None:
    text = "show records and extract their images"
    add = _command(commands, "inspect", _inspect, text).add_argument
    add("output", metavar="OUTPUT", help=f"{_DATASET}, or TFRecord files")
    add("--split", help="only this split (default: train, or the first)")
    text = "records to show (default: %(default)s)"
    add("--num", type=_natural, metavar="N", default=_RECORDS_SHOWN, help=text)
    text = (
        "write the shown images to this folder, byte for byte; images with boxes or a mask are "
        "re-encoded with these drawn on them"
    )
    add("--to", metavar="DIR", help=text)


def _add_diff(commands: _Commands) -> None:
    text = "compare two datasets: rows, splits, leaks, labels"
    add = _command(commands, "diff", _diff, text).add_argument
    for name in ("old", "new"):
        add(name, metavar=name.upper(), help=_DATASET)
    text = (
        "match rows by the uri of their payload, or by its content, if a copy renamed it "
        "(default: uri)"
    )
    add("--by", choices=("uri", "content"), default="uri", help=text)
    text = (
        "exit with 1 on changes (of rows, splits or numbers of labels), on leaks, on both, "
        "separated by a comma, or on none (default: changes,leaks)"
    )
    add("--fail-on", choices=_FAIL_ON, default=_FAIL_ON[0], metavar="WHAT", help=text)


def _add_export(commands: _Commands) -> None:
    text = "describe a dataset to people or another tool, or copy it (--to) for another trainer"
    add = _logging(_command(commands, "export", _export, text)).add_argument
    add("name", metavar="NAME", choices=EXPORTS, help="what to export: one of %(choices)s")
    text = (
        f"{_DATASET}; lineage also takes a SavedModel, a folder of its versions, or a TFX Model uri"
    )
    add("place", metavar="DATASET", help=text)
    add("--output", metavar="FILE", help="path or URL to write (default: a file in DATASET)")
    add("--to", metavar="FOLDER", help="folder or URL of a copy: folder, automl, coco, yolo, …")
    add("--split", metavar="NAME", help="copy only this split (default: all)")
    add("--lossy", action="store_true", help="leave out the images that the copy cannot hold")
    text = "lineage: open the dataset also there, if lineage.json names it; as in convert"
    add("--allow", metavar=OPTIONS["allow"].metavar, action=_Joined, default=(), help=text)
    text = "lineage: read the shards, too; exit 1 unless the same records are there"
    add("--verify", action="store_true", help=text)


def _address() -> str:
    """Return where people read on: the project's address, if the installed package has one."""
    packages = distributions(name="recordgen")
    urls = [url for each in packages for url in each.metadata.get_all("Project-URL") or ()]
    address = dict(url.split(", ", 1) for url in urls).get("Documentation")
    return f"documentation: {address or 'README.md and docs/ in the repository'}"


def _conversion(
    commands: _Commands, name: str, run: _Run, text: str, usage: str
) -> Callable[..., argparse.Action]:
    """Add a command that converts; return the function that adds further arguments."""
    command = _logging(_command(commands, name, run, text))
    command.usage, command.epilog = f"%(prog)s {usage} [-- Beam flags]", _BEAM_FLAGS
    _add_source(command)
    command.add_argument("output", metavar="OUTPUT", help="folder or URL prefix to write")
    add_options(command)
    there = command.add_mutually_exclusive_group()
    text = "replace the dataset that is in OUTPUT"
    there.add_argument("--overwrite", action="store_true", help=text)
    text = "add new examples to the dataset in OUTPUT; its shards are not changed"
    there.add_argument("--append", action="store_true", help=text)
    text = "keep the finished shards of an interrupted run, write the rest"
    command.add_argument("--resume", action="store_true", help=text)
    return command.add_argument


def _logging(command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the arguments of a command that works for a while; return the command."""
    command.add_argument("-q", "--quiet", action="store_true", help="print only errors")
    text = "progress and errors on stderr as lines of text or of JSON (default: text)"
    command.add_argument("--log-format", choices=logs.FORMATS, default="text", help=text)
    return command


def _command(commands: _Commands, name: str, run: _Run, text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    command.set_defaults(run=run, parser=command)
    command.add_argument("--json", action="store_true", help="print the result as JSON on stdout")
    command.add_argument("--debug", action="store_true", help="show tracebacks and library logs")
    return command


def _add_source(command: argparse.ArgumentParser, more: str = "") -> None:
    command.add_argument(
        "source",
        metavar="SOURCE",
        help="import file: a path, URL or quoted glob; or a folder or archive of images or texts "
        f"by label, or of another tool's labels, such as COCO or YOLO{more}",
    )


def add_options(
    command: argparse._ActionsContainer,
    options: Iterable[Option] = OPTIONS.values(),
    *,
    without: Collection[str] = (),
) -> None:
    """Add a flag for each option; the help of a command groups them by heading.

    Options in ``without`` get no flag, but their headings stay.
    """
    group, heading = command, ""
    for option in options:
        heading = option.heading or heading
        if option.name in without:
            continue
        if heading and isinstance(command, argparse.ArgumentParser):
            group, heading = command.add_argument_group(heading), ""
        default = option.default_text or option.unset
        form = tuple(option.metavar.split())  # a word for each value
        more: dict[str, Any] = {
            "type": _schema_text if option.name == "schema" else option.kind,
            "metavar": form if len(form) > 1 else option.metavar or None,
        }
        if option.several or option.decode is not None:
            more["action"] = partial(_Joined, is_list=option.several)
        if option.choices is not None:
            more["choices"] = option.choices
        if len(form) > 1:
            more["nargs"] = len(form)
        text = (
            option.plain_help.replace("%", "%%")
            + ("; one of %(choices)s" if option.choices is not None and form else "")
            + ("; repeat it or separate with commas" if option.several else "")
            + (f" (default: {default})" if default else "").replace("`", "")
        )
        group.add_argument(
            f"--{option.name.replace('_', '-')}", default=option.default, help=text, **more
        )


class _Joined(argparse.Action):
    """Joins the values of an option that is given several times with commas."""

    def __init__(self, *, is_list: bool = False, **settings: Any) -> None:
        super().__init__(**settings)
        self._is_list = is_list

    def __call__(self, _: Any, args: argparse.Namespace, values: Any, __: Any = None) -> None:
        if self._is_list:
            parse_names(self.dest, values)  # each must have a value
        before = getattr(args, self.dest)
        is_first = not isinstance(before, str)
        setattr(args, self.dest, values if is_first else f"{before},{values}")


def _options(args: argparse.Namespace) -> dict[str, Any]:
    values = {name: getattr(args, name) for name in OPTIONS}
    make_options(values)  # wrong values are reported before Beam is loaded
    return values


def _schema_text(text: str) -> str:
    """Return a schema's JSON, given as text or as the name of a file."""
    if not text or text.lstrip().startswith("{") or text.lower().endswith(".pbtxt"):
        return text
    try:
        return storage.read_text(storage.normal(text))
    except (OSError, UnicodeDecodeError) as exc:
        raise argparse.ArgumentTypeError(f"{masked(text)}: cannot read this schema: {exc}") from exc


def _natural(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a whole number above 0 (got {text!r})")
    return int(text)


if __name__ == "__main__":
    exit_main()
