"""Options of earlier versions are refused with what replaces them; older datasets are read."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import recordgen
from recordgen.cli import main
from recordgen.errors import UsageError
from recordgen.options import OPTIONS, ConvertOptions, make_options
from recordgen.options.old_options import GONE, OLD_NAMES, REPLACED, refusal

MakeImages = Callable[[int], list[Path]]
MakeCsv = Callable[..., str]


@pytest.mark.parametrize("name", REPLACED)
def test_each_old_option_names_one_that_the_doors_take(name, caplog):
    """Python and the command show the new option with a value that both accept."""
    new, value = REPLACED[name]
    assert f"{new}={value!r}" in refusal([name])
    assert isinstance(make_options({new: value}), ConvertOptions)
    with pytest.raises(UsageError) as caught:
        make_options({name: "1"})
    assert str(caught.value) == refusal([name])
    flag = f"--{name.replace('_', '-')}"
    assert main(["check", "a.csv", flag, "1"]) == UsageError.exit_code
    assert f"--{new.replace('_', '-')}={value}" in caplog.messages[-1]


@pytest.mark.parametrize("name", GONE)
def test_an_option_without_a_new_one_says_what_to_do(name, caplog):
    assert main(["check", "a.csv", f"--{name.replace('_', '-')}"]) == UsageError.exit_code
    assert GONE[name] in caplog.messages[-1]


def test_no_name_is_both_old_and_current():
    assert not set(OLD_NAMES) & set(OPTIONS)


@pytest.fixture
def older(make_images, make_csv, tmp_path):
    """An import file, and its output with the dataset.json of an earlier version."""
    source = make_csv([f"{path},cat" for path in make_images(6)])
    out = tmp_path / "out"
    recordgen.convert(source, out, encode="jpeg:80")
    described = json.loads((out / "dataset.json").read_text())
    described["options"] |= {"encode": "jpeg", "quality": 80, "pixels": "encoded", "max_side": None}
    (out / "dataset.json").write_text(json.dumps(described))
    return source, out


def test_an_older_dataset_is_read(older):
    """Its three options of encoding are one."""
    _, out = older
    assert recordgen.read_dataset(out).options["encode"] == "jpeg:80"


def test_an_older_dataset_is_not_appended_to(older):
    source, out = older
    with pytest.raises(UsageError, match="max_side"):
        recordgen.convert(source, out, append=True, encode="jpeg:80")
