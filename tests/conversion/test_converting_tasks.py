"""Datasets of all tasks: counts, appended rows, and agreement of entry points and formats."""

import pytest

import recordgen
from recordgen.errors import DataError


def test_appending_goes_by_the_dataset(make_images, make_csv, tmp_path):
    """Appended rows are read with the dataset's task, even if they look like another task."""
    first, second, third = make_images(3)
    output, known = tmp_path / "out", f"TRAIN,{first},cat,dog"
    recordgen.convert(make_csv([known]), output)
    later = make_csv([known, f"TRAIN,{second},cat", f"TRAIN,{third},cat"], "later.csv")
    planned = recordgen.plan(later, append_to=output)
    assert (planned.rows, planned.existing) == (2, 1)
    dataset = recordgen.convert(later, output, append=True).dataset
    assert (dataset.task, dataset.examples) == ("image_multi_label", 3)


# --- classes ------------------------------------------------------------------------------------


def number_findings(source, **options):
    """Return the number of classes, and the findings about their numbers."""
    result = recordgen.check(source, **options)
    found = [item.message for item in result.lint.findings() if item.code == "MISSING_CLASS"]
    return len(result.dataset.labels), found


# labels, number of classes, numbers without an example
NUMBERS = [(("0", "255"), 256, 254), (("1", "2", "3", "4"), 5, 1), (("0", "1"), 2, 0)]


@pytest.mark.parametrize(("labels", "classes", "unused"), NUMBERS)
def test_numbers_without_examples_are_said(labels, classes, unused, make_csv):
    """They are outputs of a model. labels=text removes them, labels=integer confirms them."""
    texts = make_csv([f"Good and cheap {n}.,{labels[n % len(labels)]}" for n in range(12)])
    rows = [f"n{n},{labels[n % len(labels)]}" for n in range(12)]
    given = [
        (texts, {"task": "text_classification"}),
        (make_csv(["a,y", *rows], "rows.csv"), {"task": "tabular", "columns": "target=y"}),
        (make_csv(["a,y", *rows], "r.csv"), {"schema": {"a": "text", "y": "int_label"}}),
    ]
    for source, options in given:
        count, found = number_findings(source, **options)
        assert (count, len(found)) == (classes, int(unused > 0))
        if found:
            assert f"{classes} outputs, {unused} of them " in found[0]
            assert number_findings(source, **options, labels="text") == (len(labels), [])
            assert number_findings(source, **options, labels="integer") == (classes, [])


def test_no_label_at_all_is_an_error(make_images, make_csv):
    """labels=none confirms data to predict, and refuses labels; one label is enough."""
    images = [str(path) for path in make_images(4)]
    given = [
        (make_csv(images), {"task": "image_classification"}),
        (make_csv(images, "several.csv"), {"task": "image_multi_label"}),
        (make_csv(["Good and cheap.", "Bad."], "t.csv"), {"task": "text_classification"}),
        (make_csv(["1.mp4", "2.mp4"], "v.csv"), {"task": "video_classification"}),
        (make_csv(["a,y", "1,", "2,"], "y.csv"), {"task": "tabular", "columns": "target=y"}),
        (make_csv(["photo,y", *(f"{path}," for path in images)], "d.csv"),
         {"schema": {"photo": "image", "y": "label"}}),
    ]  # fmt: skip
    for source, options in given:
        for call in (recordgen.plan, recordgen.check):
            with pytest.raises(DataError, match="labels=none"):
                call(source, **options)
        assert recordgen.check(source, **options, labels="none").dataset.labels == ()
    one = make_csv([f"{images[0]},cat", *images[1:]], "one.csv")
    assert recordgen.check(one, task="image_classification").dataset.labels == ("cat",)
    with pytest.raises(DataError, match=r"labels=none.*'cat'"):
        recordgen.check(one, task="image_classification", labels="none")
    boxes = make_csv(images, "boxes.csv")
    assert recordgen.check(boxes, task="object_detection").dataset.examples == 4
