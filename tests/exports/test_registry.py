"""The registry of exports: Recordgen's own, and exports that other packages install."""

from pathlib import Path

import pytest

import recordgen
from recordgen.cli import build_parser
from recordgen.exports import Export, FileExport
from recordgen.exports.export import CONVERTED, WRITTEN, check_declaration, no_files
from recordgen.registry import EXPORTS
from tests.conftest import ROOT


def test_the_files_of_a_conversion(tmp_path):
    """A conversion writes the files of the listed exports, and a dataset from Python one."""
    files = {name: EXPORTS[name].file for name in CONVERTED}
    recordgen.convert(str(ROOT / "examples/text_classification/reviews.csv"), tmp_path / "out")
    there = {path.name for path in (tmp_path / "out").iterdir() if path.is_file()}
    assert set(files.values()) < there <= {*no_files(), "dataset.json", "records.npy"}
    recordgen.write([{"x": 1}], tmp_path / "written")
    there = {path.name for path in (tmp_path / "written").iterdir() if path.is_file()}
    assert there == {"dataset.json", "records.npy", *(files[name] for name in WRITTEN)}


def test_an_installed_export(label_counts, out, stdout_of, capsys):
    """An export of another package is run by its name, and listed in --help."""
    recordgen.convert(str(ROOT / "examples/text_classification/reviews.csv"), out)
    capsys.readouterr()
    assert stdout_of("export", "label_counts", out) == f"wrote {out}/label_counts.csv\n"
    head, *rows = (out / "label_counts.csv").read_text().splitlines()
    dataset = recordgen.read_dataset(str(out))
    assert head == ",".join(("label", *dataset.splits))
    assert len(rows) == len(dataset.labels)
    assert sum(int(row.split(",")[1]) for row in rows) == dataset.splits["train"].examples
    with pytest.raises(SystemExit):
        build_parser().parse_args(["export", "--help"])
    assert "label_counts" in capsys.readouterr().out


class NoFile(FileExport):
    def text(self, output):
        return ""


# found, words
NO_EXPORTS = [
    (3, "recordgen.exports.Export"),
    (Path, "recordgen.exports.Export"),
    (Export, " export$"),
    (FileExport, "text, file"),
    (NoFile, " file"),
]


@pytest.mark.parametrize(("found", "words"), NO_EXPORTS)
def test_what_is_no_export(found, words):
    """An entry point that points to something else is an error that says what is missing."""
    with pytest.raises(TypeError, match=words):
        check_declaration("mine", found)
