"""Options that cannot act in a task are refused, and no message names one as a remedy."""

from dataclasses import replace

import pytest

import recordgen
from recordgen.errors import UsageError
from recordgen.options import OPTIONS, make_options
from recordgen.registry import CHECKS, OWN
from recordgen.tables.columns import Column, Table
from recordgen.tasks import task_for
from recordgen.tasks.suiting import options_in, remedies_of

# A value of each option other than its default.
VALUES = {
    **{"group_by=content": "content", "group_by=near": "near", "duplicates": "drop"},
    **{"check": "header", "image_size": "8max", "resize": "fit"},
    **{"encode": "jpeg:50", "bad_boxes": "drop"},
    "box_orientation": "upright",
}
IMAGE = {"image_classification", "image_multi_label", "object_detection", "image_segmentation"}
TEXT = {"text_classification", "text_multi_label", "text_sentiment", "text_entities"}
# The tasks of each of them; declared rows have no image here.
ACTS = {
    **dict.fromkeys(VALUES, IMAGE),
    **dict.fromkeys(("group_by=content", "duplicates"), IMAGE | TEXT),
    "bad_boxes": {"object_detection"},
    "box_orientation": {"object_detection", "image_segmentation"},
}
OTHERS = {"resize": {"image_size": "8x8"}}


def options_of(task, **more):
    """Return options with all that the task itself needs."""
    table = Table((Column.of("a", "bytes"), Column.of("y", "bytes")))
    own = {"declared": {"schema": '{"note": "text", "age": "int"}'}}
    own["tabular"] = {"table": table.to_json()}
    return replace(make_options(more), task=task, **own.get(task, {}))


@pytest.mark.parametrize("task", OWN)
@pytest.mark.parametrize("key", VALUES)
def test_each_option_acts_or_is_refused(key, task):
    """The table decides for every task; without the option, each task can be made."""
    name = key.partition("=")[0]
    options = options_of(task, **{name: VALUES[key]}, **OTHERS.get(key, {}))
    assert VALUES[key] != OPTIONS[name].default
    if task in ACTS[key]:
        assert task_for(options).name == task
    else:
        with pytest.raises(UsageError, match=f"^[a-z_]+=.* {task};"):
            task_for(options)
    assert task_for(options_of(task)).name == task


def test_columns_of_images_decide_about_declared_tables():
    """One image has the options of images."""
    one, two = '{"photo": "image"}', '{"day": "image", "night": "image"}'
    for schema, refused in ((one, {"bad_boxes"}), (two, {"bad_boxes", "group_by", "duplicates"})):
        for key, value in VALUES.items():
            name = key.partition("=")[0]
            given = {name: value, **OTHERS.get(key, {}), "schema": schema}
            if name in refused or name == "box_orientation":
                with pytest.raises(UsageError, match=f"^{name}="):
                    task_for(make_options(given))
            else:
                assert task_for(make_options(given)).name == "declared"


# --- remedies -----------------------------------------------------------------------------------


def sources(make_images, make_csv, tmp_path):
    """Return arguments of ``check`` for a small source of each kind of task."""
    images = [str(path) for path in make_images(6)]
    boxes = [f"{path},cat,0.1,0.1,,,0.5,0.5,," for path in images]
    texts = [f"Good and cheap {n}.,{'ab'[n % 2]}" for n in range(6)]
    (tmp_path / "table.csv").write_text(
        "a,y\n" + "".join(f"n{n},{'ab'[n % 2]}\n" for n in range(6))
    )
    schema = {"photo": "image", "kind": "label"}
    labelled = [f"{path},{'ab'[n % 2]}" for n, path in enumerate(images)]
    return {
        "image_classification": {"source": make_csv(labelled), "task": "image_classification"},
        "object_detection": {"source": make_csv(boxes, "b.csv"), "task": "object_detection"},
        "text_classification": {"source": make_csv(texts, "t.csv"), "task": "text_classification"},
        "tabular": {"source": tmp_path / "table.csv", "task": "tabular", "columns": "target=y"},
        "declared": {"source": make_csv(["photo,kind", *labelled], "d.csv"), "schema": schema},
        "no image": {"source": tmp_path / "table.csv", "schema": {"a": "text", "y": "label"}},
    }


def test_each_remedy_can_be_tried(make_images, make_csv, tmp_path):
    """No finding names an option that its task refuses."""
    tried = {}
    for kind, given in sources(make_images, make_csv, tmp_path).items():
        dataset = recordgen.check(**given).dataset
        for code in CHECKS:
            for name, value in options_in(remedies_of(code, dataset)):
                recordgen.check(**given, **{name: value})
                tried.setdefault(f"{name}={value}", set()).add(kind)
    images = {"image_classification", "object_detection", "declared"}
    assert tried == {
        "group_by=content": images | {"text_classification"},
        "group_by=near": images,
        "stratify=label": {"image_classification", "text_classification", "declared"}
        | {"tabular", "no image"},
    }


def test_options_in_messages_about_splits_can_be_tried(tmp_path):
    """``eval_from=train:10`` and ``split=100`` settle the findings that name them."""
    lines = [f"{'TEST' if n % 3 else ''},n{n},{'ab'[n % 2]}" for n in range(40)]
    (tmp_path / "a.csv").write_text("split,a,y\n" + "\n".join(lines))
    given = {"task": "tabular", "columns": "target=y"}

    def codes(**more):
        result = recordgen.check(tmp_path / "a.csv", **given, **more)
        return set(result.lint.counts) & {"NO_EVAL", "MIXED_SPLITS"}

    assert codes(split="1,0,1") == {"NO_EVAL", "MIXED_SPLITS"}
    assert codes(split="100") == {"NO_EVAL"}
    assert codes(split="100", eval_from="train:50") == set()


def test_every_need_has_a_value_here():
    """A new need must be added to the table."""
    declared = {
        f"{name}={value}" if value else name
        for name, option in OPTIONS.items()
        for value in option.needs
    }
    assert declared == VALUES.keys()
