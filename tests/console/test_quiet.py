"""stderr of commands: our own lines and the user's warnings, but no messages of libraries."""

from importlib.util import find_spec

import pytest

from tests.conftest import run_python, without_early_lines
from tests.preloaded import Preloaded

# For tests that are not about what happens while Python starts, or while libraries are loaded.
QUIET = Preloaded("recordgen.console.quiet")

# Variables that a user may have set: remove them for these tests.
ASKED = ("PYTHONWARNINGS", "TF_CPP_MIN_LOG_LEVEL", "GRPC_VERBOSITY")

WARNING = """
import os, sys, warnings, logging
from recordgen.console.quiet import load_tensorflow, quiet_libraries
quiet_libraries()
def warn(module, category):
    text = f"{module} {category.__name__}"
    exec("warnings.warn(text, category)", {**globals(), **locals(), "__name__": module})
"""


@pytest.fixture(autouse=True)
def _nothing_asked(monkeypatch):
    for name in ASKED:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def source(make_images, make_csv):
    return make_csv(f"TRAIN,{path},cat" for path in make_images(12))


COMMANDS = """
import sys
from recordgen.cli import main
from recordgen.console.quiet import load_tensorflow
source, out = sys.argv[1:]
print([main(words) for words in (["check", source], ["inspect", out], ["report", out])])
load_tensorflow()
print("tensorflow" in sys.modules)
"""


def test_commands_say_nothing_but_our_lines(source, tmp_path):
    """TensorFlow writes nothing to stderr while it loads, on any CPU."""
    out = str(tmp_path / "out")
    done = run_python("-m", "recordgen.cli", "convert", source, out, "--log-format=json")
    assert done.returncode == 0, done.stderr
    assert all(line.startswith('{"time": ') for line in done.stderr.splitlines()), done.stderr
    assert '"logger": "recordgen' in done.stderr
    done = run_python("-c", COMMANDS, source, out)
    assert done.stdout.endswith("True\n")
    assert "[0, 0, 0]\n" in done.stdout
    lines = without_early_lines(done.stderr).splitlines()
    assert all(line.startswith("recordgen: ") for line in lines), done.stderr


# module that warns, category, whether the warning is shown
WARNINGS = [
    ("google.api_core.something", "FutureWarning", False),
    ("google", "UserWarning", False),
    ("apache_beam.io", "DeprecationWarning", False),
    ("tfx.dsl", "UserWarning", False),
    ("keras.src.backend", "UserWarning", False),
    ("googly", "UserWarning", True),
    ("recordgen.conversion.api", "UserWarning", True),
    ("recordgen.training.run", "FutureWarning", True),
    ("my_trainer", "FutureWarning", True),
    ("numpy.core", "RuntimeWarning", True),
    ("PIL.Image", "RuntimeWarning", False),
    ("__main__", "DeprecationWarning", True),
]


def test_only_libraries_are_silenced():
    """Warnings of Recordgen, of the user and of other packages are shown."""
    calls = "".join(f"warn({module!r}, {category})\n" for module, category, _ in WARNINGS)
    done = QUIET.run("-c", f"{WARNING}{calls}")
    assert done.returncode == 0
    for module, category, shown in WARNINGS:
        assert (f"{module} {category}" in done.stderr) == shown, module


@pytest.mark.parametrize("how", ["variable", "flag"])
def test_who_asks_for_warnings_has_them(how, monkeypatch):
    """``-W`` and ``PYTHONWARNINGS`` win."""
    if how == "variable":
        monkeypatch.setenv("PYTHONWARNINGS", "always")
    flags = ("-W", "always") if how == "flag" else ()
    code = f"{WARNING}warn('google.api_core', FutureWarning); print(os.getenv('PYTHONWARNINGS'))"
    done = run_python(*flags, "-c", code)
    assert "google.api_core FutureWarning" in done.stderr
    assert done.stdout == ("always\n" if how == "variable" else "None\n")


def test_importing_changes_no_filter_or_logger():
    """A program keeps its settings; only TensorFlow's messages while it loads are off."""
    code = (
        "import logging, os, warnings\n"
        "def state(): return (list(warnings.filters), logging.root.level,\n"
        "    logging.getLogger('google').level, logging.getLogger('apache_beam').level)\n"
        "before = state()\n"
        "import recordgen, recordgen.cli, recordgen.console.quiet\n"
        "print(state() == before, os.environ['TF_CPP_MIN_LOG_LEVEL'])\n"
    )
    assert run_python("-c", code).stdout == "True 3\n"


def test_only_loggers_of_libraries_are_silenced(monkeypatch):
    """Their errors are shown all the same, and variables of the user stay as they are."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "1")
    monkeypatch.setenv("GRPC_VERBOSITY", "DEBUG")
    code = (
        f"{WARNING}for name in ('my_trainer', 'recordgen', 'google.auth', 'tensorflow'):\n"
        "    logging.getLogger(name).warning('%s warns', name)\n"
        "logging.getLogger('tensorflow').error('broken')\n"
        "print(*map(os.getenv, ('TF_CPP_MIN_LOG_LEVEL', 'GRPC_VERBOSITY')))\n"
    )
    done = QUIET.run("-c", code)
    assert done.stderr == "my_trainer warns\nrecordgen warns\nbroken\n"
    assert done.stdout == "1 DEBUG\n"


READING = """
import sys, recordgen
class AtomicFunction:  # TensorFlow 2.16 has one that also fails like this
    def __del__(self):
        raise TypeError("theirs")
class Mine:
    def __del__(self):
        raise TypeError("mine")
source, out = sys.argv[1:]
recordgen.convert(source, out, lint="-ALL")
recordgen.convert(source, f"{out}-beam", beam_args=["--direct_num_workers=1"], lint="-ALL")
data = recordgen.load(out, image_size=8)
images, labels = next(iter(data["train"]))
print(images.shape)
theirs, mine = AtomicFunction(), Mine()
"""


def test_converting_and_reading_in_a_program_are_quiet(source, tmp_path, monkeypatch):
    """Only TensorFlow's own lines, which its variable turns off, and errors of the program."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    done = run_python("-c", READING, source, str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (0, "(12, 8, 8, 3)\n")
    first, *others, last = without_early_lines(done.stderr).splitlines()
    assert first.startswith("Exception ignored in: <function Mine.__del__ ")
    assert (last, len(others)) == ("TypeError: mine", 2)


@pytest.mark.skipif(find_spec("tfx") is None, reason="needs TFX")
def test_the_component_is_loaded_quietly(monkeypatch):
    """Warnings of libraries about themselves are hidden, those of the program are not."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    code = (
        "import warnings\n"
        "from recordgen.examplegen import AutoMLExampleGen\n"
        "warnings.warn('mine', FutureWarning)\n"
    )
    done = run_python("-c", code)
    assert done.returncode == 0
    assert without_early_lines(done.stderr) == "<string>:3: FutureWarning: mine\n"


def test_pipelines_show_what_user_code_says():
    """Warnings of a ``run_fn`` appear, those of TFX do not."""
    code = (
        f"{WARNING}from pipelines.terminal import show_progress\n"
        "show_progress(1)\n"
        "import absl.logging\n"
        "absl.logging.warning('mine')\n"
        "absl.logging.info('chatter')\n"
        "exec(compile('absl.logging.warning(\"theirs\")', '/x/site-packages/tfx/a.py', 'exec'))\n"
    )
    assert QUIET.run("-c", code).stderr == "WARNING mine\n"


DYING = """
import os, signal, threading
from recordgen.console.stopping import stopping
{before}
class Unfinished:
    def __del__(self):
        raise ValueError("finalizer")
def die():
    Unfinished()
    raise ValueError("thread")
def die_in_thread():
    thread = threading.Thread(target=die)
    thread.start()
    thread.join()
try:
    with stopping():
        {first}
        os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
die_in_thread()
"""


# before, first, stdout, raised
INTERRUPTS = [
    ("", "pass", "interrupted\n", 0),
    ("", "die_in_thread()", "interrupted\n", 2),
    ("signal.signal(signal.SIGINT, signal.SIG_IGN)", "pass", "", 2),
]


@pytest.mark.parametrize(("before", "first", "stdout", "raised"), INTERRUPTS)
def test_what_dies_after_an_interrupt_says_nothing(before, first, stdout, raised):
    """Before it, and where Ctrl-C is ignored, threads and finalizers are heard."""
    done = QUIET.run("-c", DYING.format(before=before, first=first))
    assert (done.returncode, done.stdout) == (0, stdout)
    assert done.stderr.count("\nValueError: ") == raised, done.stderr
