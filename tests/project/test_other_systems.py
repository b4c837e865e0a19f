"""macOS and Windows: what converts, checks, exports and reads needs nothing that only Linux has.

These tests run on Linux without the rest, so they show no more than that.
"""

import ntpath
from types import SimpleNamespace

from recordgen.samples import write_photos
from recordgen.storage import paths
from tests.conftest import run_python

# Libraries are loaded first: they come for their own system.
PROGRAM = """
import sys
import aiohttp, fsspec, jinja2, numpy, PIL.Image, pyarrow.compute, pyarrow.parquet, rich.console
import multiprocessing.util, pydoc, simplejpeg, tenacity, yaml, ftfy
from tests.other_system import leave_linux
leave_linux()
import recordgen
from recordgen.cli import main
for line in sys.stdin.read().splitlines():
    assert main(line.split()) == 0, line
examples = recordgen.source("out").images(image_size=(8, 8))
assert examples[0][0].shape == (8, 8, 3)
assert len([*examples]) == len(examples) > 0
"""

COMMANDS = """
check photos
convert photos out
convert photos out --overwrite
convert photos out --resume
convert photos out --append
check out
inspect out --to shown
report out
export lineage out --verify
export parquet out --to rows
export webdataset out --to tars
export folder out --to folder
convert rows again
diff out again --by content
"""


def test_images_are_converted_without_what_only_linux_has(tmp_path):
    """No module, function or signal of POSIX is used, and no open file is replaced or removed."""
    write_photos(tmp_path / "photos", 30)
    done = run_python("-c", PROGRAM, input=COMMANDS.strip(), cwd=tmp_path)
    assert not done.returncode, done.stderr


def test_paths_of_windows_have_drives_and_are_no_urls(monkeypatch):
    """A drive is no scheme; folders are separated by ``/`` from the door on."""
    pure = SimpleNamespace(**vars(ntpath))  # the current folder is C:\work
    pure.abspath = lambda path: ntpath.normpath(ntpath.join("C:\\work", path))
    pure.realpath = pure.abspath
    monkeypatch.setattr(paths, "os", SimpleNamespace(path=pure, sep="\\"))
    source = paths.normal(r"C:\data\x.csv")
    assert source == "C:/data/x.csv"
    assert paths.is_local(source)
    assert not paths.is_relative("D:/1.jpg")
    assert paths.is_relative("a/1.jpg")
    assert paths.resolve("a/1.jpg", source) == "C:/data/a/1.jpg"
    assert paths.resolve("D:/1.jpg", source) == "D:/1.jpg"
    assert paths.address("../1.jpg", source) == "C:/1.jpg"
    assert paths.folder_of(source) == "C:/data"
    assert paths.folder_of("x.csv") == "C:/work"
    assert paths.absolute("out") == "C:/work/out"
    assert paths.absolute("gs://bucket/a") == "gs://bucket/a"
    assert paths.parents("C:/data/a") == ["C:/data", "C:/"]
    assert paths.from_folder("C:/data/v/1.mp4", "C:/data", outside=False) == "v/1.mp4"
    assert paths.from_folder("D:/v/1.mp4", "C:/data", outside=True) == "D:/v/1.mp4"
    assert paths.below_shared("C:/data/v/1.mp4", "C:/data/lists") == "v/1.mp4"
    assert paths.is_inside(r"C:\data\v", "C:/data")
    assert not paths.is_inside("D:/data/v", "C:/data")
    assert not paths.is_inside("C:/database", "C:/data")
