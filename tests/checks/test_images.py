"""Checks of images that are nearly the same, show little, or have an odd size or name."""

import pytest
from PIL import Image
from pyarrow import parquet

import recordgen
from recordgen.errors import LintError
from tests.checks.photos import scene
from tests.conftest import encoded, noise
from tests.payloads.test_profiles import P3

# name, split, picture, how it is changed and encoded, codes of the findings
PICTURES = [
    ("one.jpg", "TRAIN", 1, lambda image: image, {"quality": 90}, set()),
    ("two.jpg", "TRAIN", 2, lambda image: image, {"quality": 90}, set()),
    ("three.png", "TRAIN", 3, lambda image: image, {}, set()),
    ("four.jpg", "TRAIN", 4, lambda image: image.convert("L"), {}, set()),
    ("coarser.jpg", "TEST", 1, lambda image: image, {"quality": 60}, {"NEAR_LEAK"}),
    ("smaller.png", "TRAIN", 2, lambda image: image.reduce(2), {}, {"NEAR_DUPLICATE"}),
    ("copy_of_three.png", "TEST", 3, lambda image: image, {}, {"LEAK"}),
    ("dark.jpg", "TRAIN", 5, lambda image: image.point(lambda level: level // 12), {}, {"DARK"}),
    ("white.png", "TRAIN", 6, lambda image: Image.new("L", (90, 90), 255), {}, {"ONE_COLOUR"}),
    ("black.png", "TEST", 6, lambda image: Image.new("L", (90, 90), 0), {}, {"ONE_COLOUR"}),
    ("tiny.png", "TRAIN", 7, lambda _: noise(9, 12, 7), {}, {"TINY"}),
    ("long.png", "TRAIN", 8, lambda image: image.crop((0, 0, 200, 40)), {}, {"ODD_RATIO"}),
    ("a.jpg", "TRAIN", 9, lambda image: image, {"format": "PNG"}, set()),
]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for name, _, seed, change, settings, _ in PICTURES:
        kind = settings.get("format", "JPEG" if name.endswith(".jpg") else "PNG")
        more = {key: value for key, value in settings.items() if key != "format"}
        (folder / name).write_bytes(encoded(change(scene(240, 180, seed)), kind, **more))
    rows = "".join(f"{split},{name},x\n" for name, split, *_ in PICTURES)
    (folder / "rows.csv").write_text(rows)
    return folder / "rows.csv"


def found(result):
    """Return the codes of the findings by uri."""
    assert result.lint is not None
    codes = {}
    for item in result.lint.findings():
        if item.source:
            codes.setdefault(item.uri, set()).add(item.code)
    return codes


def test_what_is_found(source):
    """Each planted fault is found, and nothing else except the blur of a small crop."""
    codes = found(recordgen.check(source, lint=["ALL", "-blurred"]))
    assert codes == {name: wanted for name, *_, wanted in PICTURES if wanted}


def test_what_is_shrunk_or_turned_is_looked_at(source):
    """Images are compared as they are stored."""
    codes = found(recordgen.check(source, lint=["ALL", "-blurred"], image_size="60max"))
    assert "NEAR_LEAK" in codes["coarser.jpg"]
    assert "NEAR_DUPLICATE" in codes["smaller.png"]
    assert codes["dark.jpg"] == {"DARK"}


@pytest.mark.parametrize("options", [{"check": "header", "lint": "ALL"}, {"lint": "-ALL"}])
def test_what_is_not_decoded_is_not_looked_at(source, options):
    """Checks of pixels need check=decode."""
    codes = set().union(*found(recordgen.check(source, **options)).values())
    assert codes <= {"LEAK", "TINY", "ODD_RATIO"}
    assert bool(codes) == ("check" in options)


def test_a_threshold_changes_the_findings(source):
    """Thresholds of lint given by the user decide which images are found."""
    codes = found(recordgen.check(source, lint="TINY=8,ODD_RATIO=3,odd_ratio"))
    assert codes == {"long.png": {"ODD_RATIO"}}


def test_a_resumed_run_looks_at_what_was_not_looked_at(source, tmp_path):
    """Shards that were written without looks are written again if checks need looks."""
    with pytest.raises(LintError):
        recordgen.convert(source, tmp_path, lint="LEAK", fail_on="LEAK")
    result = recordgen.convert(source, tmp_path, resume=True, lint=["ALL", "-blurred"])
    assert result.kept_shards == 0
    assert found(result) == {name: wanted for name, *_, wanted in PICTURES if wanted}


def test_what_a_record_does_not_show(tmp_path):
    """Colour profiles are one finding, and further pictures one each, also if a dataset grows."""
    (tmp_path / "p3.png").write_bytes(encoded(scene(60, 40, 1), "PNG", icc_profile=P3))
    pages = encoded(scene(60, 40, 2), "TIFF", save_all=True, append_images=[scene(60, 40, 4)])
    (tmp_path / "pages.tiff").write_bytes(pages)
    (tmp_path / "again.png").write_bytes(encoded(scene(60, 40, 5), "PNG", icc_profile=P3))
    (tmp_path / "a.csv").write_text("TRAIN,p3.png,x\nTRAIN,pages.tiff,x\nTRAIN,again.png,x\n")
    (tmp_path / "plain.png").write_bytes(encoded(scene(60, 40, 3), "PNG"))
    (tmp_path / "b.csv").write_text("TRAIN,plain.png,x\n")
    out, select = tmp_path / "out", "COLOUR_PROFILE,FRAMES"
    wanted = {"pages.tiff": {"FRAMES"}}
    done = recordgen.convert(tmp_path / "a.csv", out, lint=select)
    assert found(done) == wanted
    assert done.lint.counts == {"COLOUR_PROFILE": 1, "FRAMES": 1}
    [colours, frames] = done.lint.findings()
    assert (colours.source, colours.line) == ("", 0)
    assert all(fact in colours.message for fact in ("Display P3", "a.csv:1", " 1 more"))
    assert frames.message == "the file has 2 pictures; the record has the first"
    assert found(recordgen.convert(tmp_path / "b.csv", out, lint=select, append=True)) == wanted
    file = out / "examples.parquet"
    table = parquet.read_table(file)
    assert {"colours", "frames"} < set(table.column_names)
    parquet.write_table(table.drop(["colours", "frames"]), file)
    (tmp_path / "pages.tiff").rename(tmp_path / "more.tiff")
    (tmp_path / "c.csv").write_text("TRAIN,more.tiff,x\n")
    done = recordgen.convert(tmp_path / "c.csv", out, lint=select, append=True)
    assert found(done) == {"more.tiff": {"FRAMES"}}
