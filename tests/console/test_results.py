"""Results in Python: ``print`` and notebooks show the summaries of the commands."""

import html
import re
from dataclasses import FrozenInstanceError, fields

import pandas as pd
import pytest

import recordgen
from recordgen import parts
from recordgen.cli import main
from recordgen.conversion.results import ConversionResult, as_flags
from recordgen.messages import Shown

CLASSES = ("cat", "<b>&\x1b[2J")

SOME_REJECTS = {"max_reject_fraction": 1.0}


@pytest.fixture
def source(make_images, make_csv):
    """An import file with 25 bad rows, and a class whose name is HTML with control characters."""
    rows = [f"{path},{CLASSES[n % 2]}" for n, path in enumerate(make_images(8))]
    return make_csv([*rows, *(f"TRAIN,nowhere{n}.jpg,cat" for n in range(25))])


@pytest.fixture
def printed(capsys):
    """Return a function that runs a command and returns its stdout, without times."""

    def run(*words):
        main(words)
        return timeless(capsys.readouterr().out.rstrip("\n"))

    return run


def timeless(text):
    return re.sub(r"in [\d.]+ s, [\d,]+ |(?<=[a-z]) [\d.]+ s\b", "", text)


def test_results_are_what_the_commands_print(source, tmp_path, printed):
    """A program and a command show the same summary, with options as each user types them."""
    out = str(tmp_path / "out")
    flag = "--max-reject-fraction=1"
    converted = recordgen.convert(source, out, **SOME_REJECTS)
    checked = recordgen.check(source, **SOME_REJECTS)
    planned = recordgen.plan(source, **SOME_REJECTS)
    compared = recordgen.diff(out, out)
    command = printed("convert", source, out, "--overwrite", flag)
    assert as_flags(timeless(repr(converted))) == command
    assert as_flags(timeless(repr(checked))) == printed("check", source, flag)
    shown = printed("convert", source, out, "--dry-run", flag)
    assert repr(planned) == shown.replace(f" to {out};", ";")
    assert repr(compared) == printed("diff", out, out)


def test_conversions_of_frames_are_shown(make_images, tmp_path):
    """With the roles of its columns; one of a kind has no plural."""
    frame = pd.DataFrame({"image": map(str, make_images(2)), "label": CLASSES})
    assert "label = label" in repr(recordgen.convert(frame, tmp_path / "out"))
    one = recordgen.convert(frame[:1], tmp_path / "one"), recordgen.plan(frame[:1])
    assert not re.search(r"\b1 [a-z]+s\b", "".join(map(repr, one)))


def results(source, folder):
    converted = recordgen.convert(source, folder / "out", **SOME_REJECTS)
    found = [
        converted,
        converted.lint,
        recordgen.check(source, **SOME_REJECTS),
        recordgen.plan(source, **SOME_REJECTS),
        parts.plan(source, folder / "parts", 2, **SOME_REJECTS),
        recordgen.read_dataset(folder / "out"),
        recordgen.diff(folder / "out", folder / "out"),
        recordgen.write([{"<i>": [n], "y": 1} for n in range(9)], folder / "written"),
    ]
    return {type(item).__name__: item for item in found}


def test_every_result_is_short_text_and_escaped_html(source, tmp_path):
    """Neither a terminal nor a notebook is controlled by a label."""
    found = results(source, tmp_path)
    assert set(found) == shown_classes(Shown)
    for name, result in found.items():
        text, page = repr(result), result._repr_html_()
        assert str(result) == text
        assert text.count("\n") < 60, name
        assert CLASSES[1] not in text  # the escape character is text
        inner = page.removeprefix("<pre>").removesuffix("</pre>")
        assert "<" not in inner
        assert html.unescape(inner) == text
    for words in ("8 images", "train", "<b>&\\u001b[2J", "missing_file 25"):
        assert words in repr(found["Dataset"])
    assert "<i> int64, y int64" in repr(found["WriteResult"])


def shown_classes(base):
    own = {base.__name__} - {"Shown"}
    return own.union(*map(shown_classes, base.__subclasses__()))


def test_a_result_is_a_frozen_dataclass_with_all_fields(source, tmp_path):
    """Subclasses are shown like their base."""
    result = recordgen.convert(source, tmp_path / "out", **SOME_REJECTS)
    assert len(result.rejects) == result.dataset.rows.rejects == 25
    assert {"dataset", "rejects", "lint", "output"} <= {item.name for item in fields(result)}
    assert result.dataset == recordgen.read_dataset(result.output)

    class Own(ConversionResult):
        """A class of a user."""

    assert repr(Own(**vars(result))) == repr(result)
    with pytest.raises(FrozenInstanceError):
        result.output = "elsewhere"
