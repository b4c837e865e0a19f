"""The package as a whole: public names, imports, installation."""

import sys
from pathlib import Path

import pytest

import recordgen
from recordgen.errors import install
from tests.conftest import run_python

HEAVY = ("tensorflow", "apache_beam", "tfx", "kfp", "pandas", "numpy", "PIL")

# modules that a fresh process imports in order, modules that must not be loaded afterwards
LIGHT = [
    ("recordgen", HEAVY),
    ("recordgen.cli", HEAVY),
    ("recordgen.features", HEAVY),
    ("recordgen.core.dataset.manifest", HEAVY),
    ("recordgen.formats", HEAVY),
    ("recordgen.tasks", (*HEAVY, "pyarrow")),
    ("recordgen.kubeflow.__main__", HEAVY),
    ("recordgen.training", (*HEAVY, "keras")),
    ("recordgen.exports.diff", ("tensorflow", "apache_beam", "tfx", "kfp")),
    ("recordgen.exports.inspection", ("tensorflow", "apache_beam", "tfx", "kfp")),
    ("recordgen.core.shards", ("tensorflow", "apache_beam", "tfx", "kfp")),
    ("recordgen.writing.api", ("tensorflow", "apache_beam", "tfx", "kfp")),
    ("recordgen.conversion.api", ("tensorflow", "apache_beam", "grpc", "tfx", "kfp")),
    ("recordgen.kubeflow.convert", ("tensorflow", "tfx", "kfp")),
    ("recordgen.kubeflow.models", ("tensorflow", "tfx", "kfp")),
    ("recordgen.reading", ("apache_beam", "tfx", "kfp")),
    ("recordgen.training.run", ("apache_beam", "tfx", "kfp")),
]

IMPORTS = """
import importlib, sys
for module, heavy in eval(sys.argv[1]):
    importlib.import_module(module)
    assert not set(heavy) & set(sys.modules), (module, set(heavy) & set(sys.modules))
"""


def test_imports_stay_light():
    """No module loads a heavy one before it is needed."""
    done = run_python("-W", "ignore", "-c", IMPORTS, repr(LIGHT))
    assert done.returncode == 0, done.stderr


# As if only the packages of `pip install recordgen` were installed.
BASE_ALONE = """
import sys

EXTRAS = ("absl", "apache_beam", "gcsfs", "keras", "kfp", "pandas", "s3fs", "tensorflow", "tfx")
CLOUD = ("google.api_core", "google.auth", "google.cloud")


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in EXTRAS or name.startswith(CLOUD):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Missing())
import recordgen
from recordgen.beam import runner_factory
from recordgen.cli import main

for command in sys.stdin.read().splitlines():
    print(command, "->", main(command.split()), flush=True)
for use in (
    lambda: recordgen.train_dataset("out"),
    lambda: recordgen.reading,
    lambda: runner_factory(["--runner=DirectRunner", "--direct_num_workers=2"]),
):
    try:
        use()
    except recordgen.RecordgenError as exc:
        print(exc)
found = {name for name in sys.modules if name.split(".")[0] in EXTRAS or name.startswith(CLOUD)}
assert not found - {"google.cloud"}, found  # a namespace that .pth files make
"""


def test_the_base_needs_no_extra(make_images, tmp_path):
    """What needs one names the command that installs it."""
    splits = ("TRAIN", "VALIDATION", "TEST")
    rows = (f"{splits[n % 3]},{path},{n % 2}\n" for n, path in enumerate(make_images(6)))
    (tmp_path / "labels.csv").write_text("".join(rows))
    commands = (
        *("convert labels.csv out", "check labels.csv", "inspect out", "report out"),
        *("diff out out", "export croissant out"),
    )
    remote = ("convert gs://bucket/a.csv b", "convert s3://bucket/a.csv b")
    lines = "\n".join((*commands, *remote))
    done = run_python("-W", "ignore", "-c", BASE_ALONE, input=lines, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    codes = [*(f"{it} -> 0" for it in commands), *(f"{it} -> 1" for it in remote)]
    assert [line for line in lines if " -> " in line] == codes
    needs = f"needs tensorflow, which is not installed: {install('tensorflow')}"
    assert lines[-3:] == [
        f"recordgen.train_dataset {needs}",
        f"recordgen.reading {needs}",
        "--runner=DirectRunner --direct_num_workers=2 needs Beam, which is not installed: "
        f"{install('beam')}",
    ]
    for extra in ("gcs", "s3"):
        assert f"; pip install 'recordgen[{extra}]'" in done.stderr


def test_a_module_names_the_extra_that_it_needs():
    """Importing it is enough."""
    code = (
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('tensorflow', 'tfx'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
        "for name in ('examplegen', 'examplegen.component', 'reading', 'reading.datasets'):\n"
        "    try: __import__(f'recordgen.{name}')\n"
        "    except ImportError as exc: print(type(exc).__name__, exc)\n"
    )
    done = run_python("-W", "ignore", "-c", code)
    assert [
        line.partition("pip install ")[2].partition(" ")[0] for line in done.stdout.splitlines()
    ] == [
        *("'recordgen[tfx]'", "'recordgen[tfx]'"),
        *("'recordgen[tensorflow]'", "'recordgen[tensorflow]'"),
    ], done.stderr


def test_help_loads_next_to_nothing():
    """Only the standard library and little of our own."""
    code = (
        "import sys; before = set(sys.modules)\n"
        "from recordgen.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    loaded = run_python("-W", "ignore", "-c", code).stdout.splitlines()[-1].split()
    others = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    assert others == {"recordgen"}
    later = ("conversion.api", "core.runs.staging", "storage.remote")
    assert not {f"recordgen.{name}" for name in later} & set(loaded)


def test_commands_import_no_pandas(make_images, tmp_path):
    """Arrow looks at lists without it; ``to_pandas`` still imports it."""
    pytest.importorskip("pandas")
    (tmp_path / "labels.csv").write_text("".join(f"{path},cat\n" for path in make_images(6)))
    code = (
        "import sys; from recordgen.cli import main\n"
        "assert main(['convert', 'labels.csv', 'out']) == 0 and 'pandas' not in sys.modules\n"
        "import pyarrow as pa\n"
        "assert pa.table({'a': [1.0, None]}).to_pandas().a.isna().sum() == 1\n"
    )
    done = run_python("-W", "ignore", "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_public_names_exist():
    """And no others are found."""
    assert sorted(recordgen.__all__) == recordgen.__all__
    for name in recordgen.__all__:
        assert getattr(recordgen, name) is not None
        assert name in dir(recordgen)
    with pytest.raises(AttributeError, match="'nonsense'"):
        _ = recordgen.nonsense


# Public module, its real module.
MODULES = {
    "errors": "errors",
    "features": "features",
    "logs": "console.logs",
    "progress": "core.progress",
    "quiet": "console.quiet",
    "reading": "reading",
    "training": "training",
    "results": "conversion.results",
    "types": "tables.types",
}


def test_public_modules_after_a_bare_import():
    """They are loaded on use, and hide no function."""
    code = (
        "import sys, recordgen\n"
        f"modules = {MODULES}\n"
        "assert not {f'recordgen.{where}' for where in modules.values()} & set(sys.modules)\n"
        "assert {*modules, 'examplegen'} <= set(dir(recordgen))\n"
        "for name, where in modules.items():\n"
        "    assert getattr(recordgen, name).__name__ == f'recordgen.{where}', name\n"
        "print(recordgen.reading.decode_images.__name__)\n"
        "print(len(recordgen.features.STATISTICS_ALLOWLIST) > 0)\n"
        # modules hide no public function
        "import recordgen.conversion.api, recordgen.core.planning.plan\n"
        "import recordgen.core.dataset.manifest\n"
        "import recordgen.exports.diff, recordgen.writing.api\n"
        "print(*(callable(getattr(recordgen, name)) for name in\n"
        "    ('convert', 'plan', 'check', 'diff', 'write')))\n"
    )
    done = run_python("-W", "ignore", "-c", code)
    assert done.stdout == "decode_images\nTrue\nTrue True True True True\n", done.stderr


@pytest.mark.parametrize(
    "lines", ["import pandas as pd, recordgen", "import recordgen.pandas\nimport pandas as pd"]
)
def test_frames_get_the_accessor(lines):
    """In either order of imports."""
    code = f"{lines}\nprint(pd.DataFrame().tensorflow.to_tfr.__name__)"
    done = run_python("-W", "ignore", "-c", code)
    assert done.stdout == "to_tfrecord\n", done.stderr


def test_repository_is_self_contained():
    """It names no index and no folder of this machine."""
    root = Path(__file__).parents[2]
    words = ["pypi.org", "files.python" + "hosted", "/root/", "/home/"]
    for folder in ("components", "pipelines", "scripts", "locks", "docs", "benchmarks", ".ci"):
        for path in (root / folder).rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                text = path.read_text(encoding="utf-8", errors="replace")
                assert not [word for word in words if word in text], path
