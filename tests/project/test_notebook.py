"""The notebook of examples/ is valid, has no outputs, and runs from its first cell to its last."""

import ast
import json
from importlib.util import find_spec

import pytest

from tests.conftest import python_environment
from tests.pages import ROOT
from tests.preloaded import WITH_TENSORFLOW

NOTEBOOK = ROOT / "examples" / "quick_start.ipynb"


@pytest.fixture(scope="module")
def notebook():
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))


def sources(notebook):
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join(cell["source"]) for cell in cells]


def test_it_is_valid_and_stripped(notebook):
    """Format 4.5 with an id for each cell; code is plain Python; no output is stored."""
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
        assert cell["source"]
    assert all(map(ast.parse, sources(notebook)))


@pytest.mark.skipif(find_spec("nbclient") is not None, reason="a kernel runs them, see below")
def test_its_cells_run_in_order(notebook, tmp_path):
    """From the first to the last, in a fresh process."""
    cells = "\n".join(sources(notebook))
    done = WITH_TENSORFLOW.run("-c", f"import os\nos.chdir({str(tmp_path)!r})\n{cells}")
    assert done.returncode == 0, done.stderr
    assert "test: 100% of 13 are right" in done.stdout
    for name in ("out/dataset.json", "out-of-frame/dataset.json", "flowers.keras"):
        assert (tmp_path / name).exists()


@pytest.mark.slow
def test_a_kernel_shows_progress_results_and_warnings(tmp_path, monkeypatch):
    """In Jupyter: a line of progress, the summary as HTML, and a warning at the user's line.

    The model is right about all photos.
    """
    nbformat = pytest.importorskip("nbformat", reason="only one lock has Jupyter")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", python_environment()["PYTHONPATH"])
    found = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(found)
    run = nbclient.NotebookClient(found, timeout=120, resources={"metadata": {"path": tmp_path}})
    run.execute()
    code = [cell for cell in found.cells if cell.cell_type == "code"]
    progress, summary = code[1].outputs
    assert progress.data["text/plain"].startswith("120 of 120 images (100%)")
    assert summary.data["text/html"].startswith("<pre>Converted 120 images")
    [warned] = [item for item in code[2].outputs if item.output_type == "stream"]
    assert "RecordgenWarning: not_an_image: 1 rejected row. First: photos/" in warned.text
    assert 'checked = recordgen.check("photos")' in warned.text
    assert "test: 100% of 13 are right" in str(code[-2].outputs)
    for cell in code[:2] + code[3:]:
        assert not [item for item in cell.outputs if item.get("name") == "stderr"]
