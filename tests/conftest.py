"""Fixtures that make tiny images and import files."""

from __future__ import annotations

import gc
import io
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_loader
from pathlib import Path, PurePosixPath
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from PIL import ExifTags, Image
from pyarrow.parquet import read_table

import recordgen
from recordgen import registry, storage
from recordgen.checks.selection import Selection
from recordgen.console import quiet
from recordgen.core.progress import SHARDS
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example, serialize_example
from tests.containers import engine as engine  # a fixture
from tests.tested import pytest_terminal_summary as pytest_terminal_summary  # a hook

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# Tests start hundreds of processes: without a cache, each would compile the package and the tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell starts background jobs with Ctrl-C ignored, and the processes of tests would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# On a loaded machine, deadlines and slow generation must not fail property tests.
settings.register_profile(
    "random",  # each run draws other examples
    deadline=None,
    max_examples=40,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# Equal runs: an example that fails for the first time must not fail an unrelated change.
settings.register_profile("recordgen", settings.get_profile("random"), derandomize=True)
# `make mutants` runs these tests thousands of times: use few cases, and do not shrink them.
settings.register_profile(
    "mutants",
    settings.get_profile("random"),
    max_examples=20,
    phases=[Phase.explicit, Phase.generate],
    database=None,
)
settings.load_profile("recordgen")

ROOT = Path(__file__).parents[1]
# Where the package is imported from: the sources, or an installed wheel.
COMPONENTS = Path(recordgen.__file__).parents[1]
TESTS = Path(__file__).parent
# Folders of tests.
ABOUT_TFX = ("examplegen", "pipelines")
# The legs of folders and modules beside the first one, which runs all: ADR 0007 says why.
# A test with the mark `once` stays on the first leg.
LEGS = {
    "outside": """
        access/test_source checks/test_boxes checks/test_table_columns
        conversion/test_conversion conversion/test_golden core/facts core/planning/test_decide
        core/records/test_records core/records/test_tfrecord core/rows/test_arrow_files
        formats/test_csv_records formats/test_frame_images formats/test_parquet fuzz kubeflow
        measures
        payloads/test_gif payloads/test_image payloads/test_parquet_values payloads/test_pictures
        payloads/test_png project/test_package reading/test_augmentation reading/test_checkpoint
        reading/test_contract reading/test_datasets reading/test_decoding reading/test_detection
        reading/test_distribution reading/test_entities reading/test_multi_label reading/test_raw
        reading/test_read_examples reading/test_tables reading/test_texts
        storage/test_storage_emulated tables training/test_detection_training
        training/test_entity_training training/test_fitting training/test_run_fn
        training/test_saving training/test_segmentation_training training/test_tables_training
        training/test_trained_models
        training/test_video_training writing
    """,
    "inside": """
        beam console/test_cli console/test_quiet conversion/test_golden
        examplegen/test_component_run exports/test_tfdv
        pipelines/test_compile pipelines/test_demo pipelines/test_spans
    """,
}
# Modules that take half a minute and more, though few of their tests are slow.
LONG = ("test_resume", "test_docs", "test_storage_emulated", "test_quiet", "test_benchmarks")


class _WithoutTfx(pytest.Module):
    """A module that is skipped as a whole, because it cannot be imported."""

    def collect(self) -> NoReturn:
        pytest.skip("needs TFX", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> object:
    if module_path.parent.name in ABOUT_TFX and find_spec("tfx") is None:
        return _WithoutTfx.from_parent(parent, path=module_path)
    return None


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores, because tests wait for processes, servers and clocks."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # pytest-xdist would undo the order set below
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        _see_two_cores(int(getattr(config, "workerinput", {}).get("workerid", "gw0")[2:]))


def _see_two_cores(worker: int) -> None:
    """Use two cores, as on a small machine: with more, conversions leave this process."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[(2 * worker + at) % len(cores)] for at in (0, 1)})


@cache
def legs_of(path: Path) -> list[str]:
    """Return the legs of a module beside the first one."""
    place = PurePosixPath(path.relative_to(TESTS).with_suffix(""))
    names = {str(place), *map(str, place.parents)}
    return [leg for leg, places in LEGS.items() if not names.isdisjoint(places.split())]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Load no module without a test of the leg that ``-m`` names."""
    leg = config.option.markexpr
    is_module = collection_path.name.startswith("test_")
    return True if is_module and leg in LEGS and leg not in legs_of(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while tests are collected: nearly everything stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_sessionfinish() -> None:
    """Look for garbage once; pytest would look at all objects five times.

    Save what was measured before xdist ends this worker, which it does not wait for.
    """
    gc.collect()
    gc.freeze()
    coverage = sys.modules.get("coverage")  # not all environments of the tests have it
    if coverage is not None and (measured := coverage.Coverage.current()):
        measured.save()


@pytest.hookimpl(tryfirst=True)  # before -m selects tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the modules of slow tests, so that no worker runs a long one while others idle.

    Those that need the image follow: .ci/run makes it meanwhile.
    """
    tests = Counter(item.path for item in items)
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    slow.update({item.path: 1 for item in items if item.path.stem in LONG})
    for item in items:
        if "engine" in item.fixturenames:  # type: ignore[attr-defined]
            slow[item.path] = -1
    items.sort(
        key=lambda item: (slow[item.path] != 0, slow[item.path], tests[item.path]), reverse=True
    )
    for item in items:
        legs, is_once = legs_of(item.path), item.get_closest_marker("once")
        if is_once and not legs:
            raise pytest.UsageError(f"{item.nodeid}: LEGS does not name it; remove its mark once")
        for leg in () if is_once else legs:
            item.add_marker(leg)


# Commands set them for the processes that they start, and libraries change them.
VARIABLES = ("GRPC_VERBOSITY", "PYTHONWARNINGS", "TF_CPP_MIN_LOG_LEVEL")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Undo what commands set in this process: levels of loggers, and variables for its children.

    Otherwise tests would see fewer or more messages if others ran before them.
    """
    levels = {logger: logger.level for logger in _loggers()}
    variables = {name: os.environ.get(name) for name in VARIABLES}
    try:
        return (yield)
    finally:
        for logger in _loggers():
            new = logging.NOTSET if logger.name in quiet.LIBRARIES else logger.level
            if logger.level != (before := levels.get(logger, new)):
                logger.setLevel(before)
        for name, value in variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _loggers() -> list[logging.Logger]:
    loggers = list(logging.root.manager.loggerDict.values())
    return [logging.root, *(each for each in loggers if isinstance(each, logging.Logger))]


def noise(width: int = 16, height: int = 12, seed: int = 0) -> Image.Image:
    """Return an RGB image of noise; images of different seeds differ."""
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def encoded(image: Image.Image, kind: str = "PNG", **settings: object) -> bytes:
    """Return the image as a file of ``kind``."""
    out = io.BytesIO()
    image.save(out, kind, **settings)
    return out.getvalue()


def exif_of(orientation: int) -> Image.Exif:
    """Return Exif data with an orientation (Exif 2.3, tag 0x0112: 1 to 8)."""
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    return exif


@pytest.fixture
def make_images(tmp_path: Path) -> Callable[[int], list[Path]]:
    """Return a function that writes n small JPEGs and returns their paths."""

    def make(count: int) -> list[Path]:
        folder = tmp_path / "images"
        folder.mkdir(exist_ok=True)
        paths = [folder / f"{number:04d}.jpg" for number in range(count)]
        for number, path in enumerate(paths):
            path.write_bytes(encoded(noise(seed=number), "JPEG", quality=90))
        return paths

    return make


@pytest.fixture
def make_csv(tmp_path: Path) -> Callable[[Iterable[str]], str]:
    """Return a function that writes lines to ``labels.csv`` and returns its path.

    Paths become relative: the place of a row depends on its path, and the folder on the run.
    """

    def make(lines: Iterable[str], name: str = "labels.csv") -> str:
        path = tmp_path / name
        text = "".join(f"{line}\n" for line in lines)
        text = re.sub(rf"(?m)(^|,){re.escape(str(tmp_path))}/", r"\1", text)
        path.write_text(text, encoding="utf-8")
        return str(path)

    return make


@pytest.fixture(scope="session")
def slow_source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return an import file of 100 large images, slow enough to convert to be interrupted."""
    folder = tmp_path_factory.mktemp("slow")
    large = folder / "large.jpg"
    large.write_bytes(encoded(noise(1000, 1000), "JPEG", quality=90))
    for number in range(100):
        (folder / f"{number:03d}.jpg").symlink_to(large)
    source = folder / "slow.csv"
    source.write_text("".join(f"{number:03d}.jpg,{number % 2}\n" for number in range(100)))
    return str(source)


def wait_for_first_shard(output: Path) -> None:
    """Wait until a running conversion has finished its first shard."""
    deadline = time.monotonic() + 120
    while not any(output.glob(".recordgen-staging/*/results/*.result")):
        assert time.monotonic() < deadline, "no shard was finished"
        time.sleep(0.002)


def interrupt_convert(source: str, output: Path, *options: str) -> tuple[int, str]:
    """Interrupt a conversion after its first shard; return exit code and stderr."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "recordgen", "convert", source, str(output)),
            *("--shard-mb=1", "--threads=1", *options),
        ],
        env=python_environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_first_shard(output)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def write_file(path: Path, content: str | bytes) -> Path:
    """Write a text or bytes to a file in a folder, which may be new, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_noise(folder: Path, names: Iterable[object], width: int = 16, height: int = 12) -> None:
    """Write an image of noise for each name, all of them different: PNGs, or JPEGs for ``.jpg``."""
    for seed, name in enumerate(map(str, names)):
        path = folder / (name if name.endswith(".jpg") else f"{name}.png")
        kind = "JPEG" if path.suffix == ".jpg" else "PNG"
        write_file(path, encoded(noise(width, height, seed), kind))


def convert_lines(
    folder: Path, lines: Iterable[str], to: str = "out", *, source: str = "labels.csv", **more: Any
) -> Path:
    """Write an import file of these lines into a folder, convert it, and return the output."""
    (folder / source).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    recordgen.convert(folder / source, folder / to, **more)
    return folder / to


def flip_bit(path: Path, at: int | None = None) -> None:
    """Change a bit of a file, in its middle unless ``at`` says where."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 1
    path.write_bytes(data)


def rewrite_records(shard: Path, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
    """Change the features of each record of a shard; all checksums are right."""
    records = [change(dict(parse_example(record))) for record in RECORDS.read(str(shard))]
    frames = [RECORDS.frame(serialize_example(values)) for values in records]
    shard.write_bytes(b"".join(piece for frame in frames for piece in frame))


@contextmanager
def changed_manifest(output: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the values of a ``dataset.json``, and write them back."""
    path = Path(output, "dataset.json")
    values = json.loads(path.read_text())
    yield values
    path.write_text(json.dumps(values))


def while_writing(act: Callable[[], object]) -> Any:
    """Return a receiver of progress that does something each time it hears of shards."""
    return SimpleNamespace(
        show=lambda snapshot: snapshot.phase == SHARDS and act(), finished=lambda: None
    )


def peak_of(call: Callable[[], Any]) -> tuple[Any, int]:
    """Return what a call returns, and the most bytes that Python held for it at once."""
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def error_of(kind: type[BaseException], call: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """Return the error of this kind that a call raises."""
    with pytest.raises(kind) as caught:
        call(*args, **more)
    return caught.value


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return the folder for a test's dataset, which does not exist yet."""
    return tmp_path / "out"


@pytest.fixture
def stdout_of(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs a command, checks its exit code and returns its stdout."""

    def run(*words: object, code: int = 0) -> str:
        from recordgen.cli import main

        assert main([*map(str, words)]) == code
        return capsys.readouterr().out

    return run


@pytest.fixture
def json_of(stdout_of: Callable[..., str]) -> Callable[..., Any]:
    """Return a function that runs a command with --json and returns what that shows."""
    return lambda *words, **code: json.loads(stdout_of(*words, "--json", **code))


def load_script(name: str) -> ModuleType:
    """Return a program of scripts/ as a module; its file has no suffix."""
    loader = SourceFileLoader(name, str(COMPONENTS.parent / "scripts" / name))
    spec = spec_from_loader(name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def python_environment(**variables: str) -> dict[str, str]:
    """Return all variables for a Python with the package and the repository on its path."""
    return {**os.environ, "PYTHONPATH": f"{COMPONENTS}{os.pathsep}{ROOT}", **variables}


def run_python(*args: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run this Python in a fresh process, with the package and the repository on its path."""
    options = {"capture_output": True, "text": True, "env": python_environment(), "timeout": 600}
    return subprocess.run([sys.executable, *args], check=False, **{**options, **more})


# TensorFlow 2.19 and later write these lines before they read TF_CPP_MIN_LOG_LEVEL.
_EARLY_LINE = re.compile(r"WARNING: All log messages before absl::InitializeLog\(\)|I\d{4} \d\d:")


def without_early_lines(stderr: str) -> str:
    """Return what a program wrote, without the lines that no setting of TensorFlow turns off."""
    lines = stderr.splitlines(keepends=True)
    return "".join(line for line in lines if not _EARLY_LINE.match(line))


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that installs an example's package once; it returns the folder."""

    @cache
    def install(example: str) -> Path:
        folder = tmp_path_factory.mktemp(example)
        source = shutil.copytree(ROOT / "examples" / example, folder / "source")
        options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target")
        done = run_python("-m", "pip", "install", *options, str(folder / "site"), str(source))
        assert done.returncode == 0, done.stderr
        return folder / "site"

    return install


@contextmanager
def found(site: Path, plug_ins: registry.Registry[Any]) -> Iterator[None]:
    """Register the plug-ins of an installed package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(site)
        plug_ins.refresh()
        Selection.of.cache_clear()
        yield
    plug_ins.refresh()
    Selection.of.cache_clear()


def _until_the_end(example: str, plug_ins: registry.Registry[Any]) -> Any:
    """Return a fixture that registers the plug-ins of an example's package until the test ends."""

    @pytest.fixture
    def registered(installed: Callable[[str], Path]) -> Iterator[None]:
        with found(installed(example), plug_ins):
            yield

    return registered


text_pairs = _until_the_end("own_task", registry.TASKS)  # the task text_similarity
albums = _until_the_end("own_format", registry.FORMATS)  # the format album
label_counts = _until_the_end("own_export", registry.EXPORTS)
shared_patients = _until_the_end("own_check", registry.CHECKS)  # SHARED_PATIENT


def stored_examples(output: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the split and the features of each record of an output, in order."""
    for name, split in recordgen.read_dataset(str(output)).splits.items():
        for shard in split.shards:
            for record in RECORDS.read(storage.join(str(output), shard.file)):
                yield name, parse_example(record)


def examples_of(tree: Mapping[str, bytes]) -> list[dict[str, object]]:
    """Return the examples.parquet of an output without the folder of its import files."""
    rows = read_table(io.BytesIO(tree["examples.parquet"])).to_pylist()
    return [{**row, "source": row["source"].rpartition("/")[2]} for row in rows]


def tree_bytes(root: str | Path) -> dict[str, bytes]:
    """Return every file below ``root`` with its content."""
    base = Path(root)
    files = (path for path in sorted(base.rglob("*")) if path.is_file())
    return {str(path.relative_to(base)): path.read_bytes() for path in files}


@pytest.fixture(scope="session")
def write_image():
    """Write a small PNG whose pixels depend on a number."""

    def write(path, number, side=8):
        write_file(path, encoded(noise(side, side, number)))

    return write


@pytest.fixture(scope="session")
def write_import(write_image):
    """Write an import file and an image for each of its rows: (ml_use, name, label)."""

    def write(path, rows):
        for number, (_, name, _) in enumerate(rows):
            write_image(path.parent / name, number)
        return write_file(path, "".join(",".join(row) + "\n" for row in rows))

    return write
