"""Pages on ways to run the pipeline: their commands are run, with a stand-in for the cloud."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from pipelines import lineage, local, submit, vertex
from recordgen import cli, runners
from tests.vertex_service import serving, write_key

DOCS = Path(__file__).resolve().parents[2] / "docs"


def commands(page: str) -> list[list[str]]:
    """Return the command lines in a page's ``sh`` blocks, as words."""
    blocks = re.findall(r"^ *```sh\n(.*?)```", (DOCS / page).read_text(), flags=re.M | re.S)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize("page", ["vertex.md", "dataflow.md"])
def test_commands_of_the_pipeline(page, tmp_path, monkeypatch):
    """They compile, and what they submit is taken."""
    mains = {"pipelines.vertex": vertex.main, "pipelines.submit": submit.main}
    write_key(tmp_path / "key.json")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    monkeypatch.chdir(tmp_path)
    lines = [line for line in commands(page) if line[:2] == ["python", "-m"]]
    assert lines
    with serving() as service:
        for _, _, module, *arguments in lines:
            assert mains[module]([*arguments, "--endpoint", service.url]) == 0, arguments
    submitted = [line for line in lines if "--submit" in line or "pipelines.submit" in line]
    assert len(service.requests) == len(submitted)
    assert json.loads(Path("job.json").read_text())["runtimeConfig"]


def test_command_on_dataflow():
    """Recordgen and Beam take its flags, all of which Beam knows."""
    [command] = [line for line in commands("dataflow.md") if line[0] == "recordgen"]
    split = command.index("--")
    parser = cli._parser()
    assert parser.parse_args(command[1:split]).command == "convert"
    flags = command[split + 1 :]
    runners._check_flags(flags)
    runners._check_dataflow(flags)


def test_commands_of_the_local_page(tmp_path, monkeypatch, capsys):
    """They are taken, up to the run itself, which test_demo.py has."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/import.csv").write_text("TRAIN,a.png,a\n")
    (tmp_path / "columns.json").write_text('{"use": "split", "photo": "image", "kind": "label"}')
    monkeypatch.chdir(tmp_path)
    lines = commands("pipeline.md")
    assert {line[2] for line in lines} == {"pipelines.local", "pipelines.lineage"}
    for _, _, module, *arguments in lines:
        if module == "pipelines.local":
            config = local.to_config(local.build_parser().parse_args(arguments))
            assert config.serving_dir == str(tmp_path / "work/serving")
        else:
            assert lineage.main(arguments) == 1
            assert "no metadata store here; run a pipeline" in capsys.readouterr().err


def test_every_command_is_one_of_these():
    """A command that needs a cloud stands in a ``console`` block."""
    programs = {tuple(line[:1]) for page in ("vertex.md", "dataflow.md") for line in commands(page)}
    assert programs == {("python",), ("recordgen",)}
