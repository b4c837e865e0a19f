from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.preloaded import WITH_TFX

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def restored_loggers(as_loud_as_before: None) -> None:
    """Commands run in the process of these tests."""


@pytest.fixture(scope="session")
def command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run ``python -m pipelines.<name>`` from the repository, as people do."""
    path = os.pathsep.join([str(ROOT / "components"), str(ROOT)])

    def run(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", f"pipelines.{name}", *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=600,
        )

    return run


@pytest.fixture(scope="session")
def fast_command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """As ``command``, for what comes after the program has been loaded."""

    def run(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        return WITH_TFX.run("-m", f"pipelines.{name}", *map(str, arguments))

    return run


@pytest.fixture(scope="session")
def demo(command, tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The demo on 400 digits: its folder, and what it printed."""
    workdir = tmp_path_factory.mktemp("demo")
    return workdir, command("demo", "--workdir", workdir, "--images", 400)


@pytest.fixture(scope="session")
def label_demo(fast_command, tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The demo of several labels per image, on 900 of them: its folder, and what it printed."""
    workdir = tmp_path_factory.mktemp("label_demo")
    task = ("--task", "image_multi_label")
    return workdir, fast_command("demo", *task, "--workdir", workdir, "--images", 900)


@pytest.fixture(scope="session")
def text_demo(fast_command, tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The demo on 400 texts: its folder, and what it printed."""
    workdir = tmp_path_factory.mktemp("text_demo")
    task = ("--task", "text_classification")
    return workdir, fast_command("demo", *task, "--workdir", workdir, "--images", 400)


@pytest.fixture(scope="session")
def entity_demo(fast_command, tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The demo of entities in texts, on 300 of them: its folder, and what it printed."""
    workdir = tmp_path_factory.mktemp("entity_demo")
    task = ("--task", "text_entities")
    return workdir, fast_command("demo", *task, "--workdir", workdir, "--images", 300)


@pytest.fixture(scope="session")
def table_demo(fast_command, tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The demo of a table: its folder, and what it printed."""
    workdir = tmp_path_factory.mktemp("table_demo")
    return workdir, fast_command("demo", "--task", "tabular", "--workdir", workdir)


@pytest.fixture(scope="session")
def video_demo(fast_command, tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The demo of videos, on 300 segments of them: its folder, and what it printed."""
    workdir = tmp_path_factory.mktemp("video_demo")
    task = ("--task", "video_classification")
    return workdir, fast_command("demo", *task, "--workdir", workdir, "--images", 300)
