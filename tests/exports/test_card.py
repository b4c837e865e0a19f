"""The dataset card: known facts in the hub's format, questions for the rest."""

import re
from dataclasses import replace

import pytest
import yaml

from recordgen import convert, read_dataset, write
from recordgen.cli import main
from recordgen.exports import Output
from recordgen.exports.descriptions import Card
from tests.golden import ROOT, SAMPLES

# The hub's own names (huggingface.co/docs/hub/datasets-cards); it rejects others.
CATEGORIES = {
    "image_segmentation": "image-segmentation",
    "text_entities": "token-classification",
    "video_classification": "video-classification",
}
HUB_KEYS = {"pretty_name", "task_categories", "size_categories", "tags", "dataset_info"}


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    out = tmp_path_factory.mktemp("card") / "out"
    convert(str(ROOT / "examples" / SAMPLES["object_detection"]), out, seed=7, bad_boxes="drop")
    return out


def parts(dataset):
    """Return the parsed head of a dataset's card, and the Markdown after it."""
    _, head, body = Card().text(Output("none", dataset)).split("---\n", 2)
    return yaml.safe_load(head), body


def test_the_head_is_what_the_hub_reads(boxes):
    """Only keys of the hub, with the counts of dataset.json."""
    dataset = read_dataset(str(boxes))
    head, _ = parts(dataset)
    assert head.keys() == HUB_KEYS
    assert head["pretty_name"] == "digits"
    assert head["task_categories"] == ["object-detection"]
    assert head["size_categories"] == ["n<1K"]
    assert head["dataset_info"] == {
        "splits": [
            {"name": name, "num_bytes": split.bytes, "num_examples": split.examples}
            for name, split in dataset.splits.items()
        ],
        "dataset_size": dataset.bytes,
    }


def test_the_card_tells_what_is_known_and_asks_the_rest(boxes):
    """Splits, labels, features, origin, options and warnings; what is unknown is a question."""
    dataset = read_dataset(str(boxes))
    head, body = parts(dataset)
    for name, split in dataset.splits.items():
        assert f"| {name} | {split.examples} | 1 | {split.bytes:,} | {split.assigned} |" in body
    counts = [split.labels.get("3", 0) for split in dataset.splits.values()]
    assert f"| 3 | 3 | {' | '.join(map(str, counts))} |" in body
    assert "| image/encoded | image file | one value |" in body
    assert "| image/object/bbox/xmin | float32 | list |" in body
    assert "- Import files: digits.csv\n" in body
    assert f"Rows: {dataset.rows.read} read" in body
    assert f"`{dataset.digest}`" in body
    assert "seed 7\n" in body
    assert "- Options: bad\\_boxes=drop\n" in body
    issues = body.partition("## Known issues\n\n")[2].partition("\n\n")[0]
    assert len(issues.splitlines()) == 2  # few images of most labels, and labels that are numbers
    assert "?" in body.partition("Open questions")[2]
    assert not {"license", "language"} & head.keys()
    assert "languages" not in body  # only texts have languages


@pytest.mark.parametrize(
    ("examples", "category"), [(999, "n<1K"), (1000, "1K<n<10K"), (5 * 10**6, "1M<n<10M")]
)
def test_the_size_category_is_that_of_all_examples(boxes, examples, category):
    """The hub counts in powers of ten."""
    dataset = read_dataset(str(boxes))
    splits = {"train": replace(dataset.splits["train"], examples=examples)}
    head, _ = parts(replace(dataset, splits=splits))
    assert head["size_categories"] == [category]


def test_names_cannot_become_markup(boxes):
    """Names are escaped: they make no tables, HTML or links, and do not end the head."""
    dataset = read_dataset(str(boxes))
    hostile = "a|b <script> [x](http://y) `z` **w**"
    changed = replace(dataset, labels=(hostile,), source=('"\n---\nlicense: mit\n.csv',))
    head, body = parts(changed)
    assert head.keys() == HUB_KEYS
    assert not re.search(r"(?<!\\)[<`\[*]", body.partition("## Labels")[2].partition("\n## ")[0])
    assert r"a\|b" in body


def test_a_table_is_named_by_what_is_predicted(tmp_path):
    """A table without a target has no category."""
    source = str(ROOT / "examples" / SAMPLES["tabular"])
    convert(source, tmp_path / "class", columns="target=cultivar")
    convert(source, tmp_path / "none", task="tabular")
    head, _ = parts(read_dataset(str(tmp_path / "class")))
    assert head["task_categories"] == ["tabular-classification"]
    assert "task_categories" not in parts(read_dataset(str(tmp_path / "none")))[0]


def test_what_only_some_datasets_have(boxes):
    """URLs are told, folders of this machine are not; texts have a language, tasks a category."""
    source = ("gs://b/a.csv", "/home/me/b.csv")
    changed = replace(read_dataset(str(boxes)), task="text_classification", source=source)
    _, body = parts(changed)
    assert "- Import files: gs://b/a.csv, b.csv\n" in body
    assert "languages" in body
    for task, category in CATEGORIES.items():
        assert parts(replace(changed, task=task))[0]["task_categories"] == [category]


def test_the_command_keeps_answers(tmp_path, out, capsys):
    """Another card is written elsewhere, or replaces the existing one with --overwrite."""
    write([{"x": 1}], out)
    assert main(["export", "card", str(out)]) == 0
    card = out / "README.md"
    assert capsys.readouterr().out == f"wrote {card}\n"
    card.write_text(card.read_text() + "MIT\n")
    assert main(["export", "card", str(out)]) == 2
    assert card.read_text().endswith("MIT\n")
    assert main(["export", "card", str(out), "--output", str(tmp_path / "new.md")]) == 0
    assert main(["export", "card", str(out), "--overwrite"]) == 0
    assert card.read_text() == (tmp_path / "new.md").read_text()
    assert "the source is not on record" in card.read_text()
