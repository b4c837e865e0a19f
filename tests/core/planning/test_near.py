"""`--group-by near`: images that look nearly the same share a split."""

from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance

import recordgen
from recordgen.core.facts.columns import ExampleNote, FactsBuilder
from recordgen.core.planning.decide import LOOKS, decide
from recordgen.core.rows.row import placing
from recordgen.errors import UsageError
from recordgen.measures.pictures import small_picture
from recordgen.options import ConvertOptions
from recordgen.tasks import task_for
from tests.conftest import encoded
from tests.core.planning.test_eval_from import split_of_each
from tests.planned import alike
from tests.settings import split_settings

PICTURES = 40


@cache
def picture(number):
    """Return a picture of soft shapes; pictures of different numbers are not alike."""
    pixels = np.random.default_rng(number).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize((80, 60), Image.Resampling.BICUBIC)


def files_of(number):
    """Return a picture and its near-duplicates: encoded again, smaller, darker, mirrored."""
    image = picture(number)
    return {
        f"{number}.png": encoded(image, "PNG"),
        f"{number}-again.jpg": encoded(image, "JPEG", quality=60),
        f"{number}-small.png": encoded(image.resize((60, 45)), "PNG"),
        f"{number}-dark.jpg": encoded(ImageEnhance.Brightness(image).enhance(0.8), "JPEG"),
        f"{number}-mirrored.png": encoded(image.transpose(Image.Transpose.FLIP_LEFT_RIGHT), "PNG"),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with 200 images of 40 pictures; rows.csv names them all, turned.csv some."""
    folder = tmp_path_factory.mktemp("near")
    names = []
    for number in range(PICTURES):
        for name, data in files_of(number).items():
            (folder / name).write_bytes(data)
            names.append(name)
    (folder / "rows.csv").write_text("".join(f"{name},x\n" for name in names))
    (folder / "turned.csv").write_text("".join(f"{name},x\n" for name in names[49::-1]))
    return folder


@pytest.fixture(scope="module")
def near(folder):
    """Return the split of each file, and the findings."""
    options = {"group_by": "near", "lint": "ALL"}
    found = recordgen.convert(folder / "rows.csv", folder / "near", **options).dataset
    return split_of_each(folder / "near", "image/source_id"), found.lint


def test_no_near_pair_straddles(folder, near):
    """Pictures that look alike share a split, which equal contents alone do not ensure."""
    splits, findings = near
    for number in range(PICTURES):
        assert len({splits[name] for name in files_of(number)}) == 1
    assert set(splits.values()) == {"train", "eval", "test"}
    assert "NEAR_LEAK" not in findings
    assert findings["NEAR_DUPLICATE"] == 4 * PICTURES
    by_content = recordgen.check(folder / "rows.csv", group_by="content", lint="NEAR_LEAK")
    assert by_content.dataset.lint["NEAR_LEAK"] > PICTURES // 4


def test_neither_order_nor_workers_decide(folder, near):
    """Turned images in another order, on several workers, fall into the same splits."""
    flags = ["--direct_num_workers=2", "--direct_running_mode=multi_threading"]
    given = {"group_by": "near", "lint": "-ALL", "check": "none"}
    recordgen.convert(folder / "turned.csv", folder / "turned", beam_args=flags, **given)
    found = split_of_each(folder / "turned", "image/source_id")
    assert len(found) == 50
    assert found == {name: near[0][name] for name in found}


# --- added rows ---------------------------------------------------------------------------------


@cache
def seen(number):
    return small_picture(picture(number))


FIRST_SEED = placing(0)


def looks_of(pictures):
    """Return the columns of pictures that are compared; None has none."""
    builder = FactsBuilder()
    for picture in pictures:
        builder.add(ExampleNote(0, seen=picture))
    found = builder.columns()
    return {name: found[name] for name in LOOKS}


def facts_of_members(members, place=FIRST_SEED):
    """Return the facts of rows; None is a row whose payload was not read."""
    digests = [None if item is None else item[0].to_bytes(16, "big") for item in members]
    hashes = [place(digest or b"own").split_hash for digest in digests]
    return pa.table(
        {
            "split": pa.nulls(len(members), pa.string()),
            "split_hash": pa.array(hashes, pa.uint64()),
            "content": pa.array(digests, pa.binary()),
            **looks_of(None if item is None else seen(item[1]) for item in members),
        }
    )


def hashes_of(members, buckets=1):
    """Return the hash that decides the split of each row."""
    parts = {at: facts_of_members(members[at::buckets]) for at in range(buckets)}
    found = dict(decide(parts, split_settings(group_by="near"), alike))
    of = {at: iter(table["split_hash"].to_pylist()) for at, table in found.items()}
    return [next(of[at % buckets]) for at in range(len(members))]


def own(digest):
    return placing(0)(digest.to_bytes(16, "big")).split_hash


MEMBERS = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 3)), max_size=12).map(
    lambda found: list(dict(found).items())  # one digest, one picture
)


@given(MEMBERS, st.integers(1, 3))
def test_the_smallest_digest_decides(members, buckets):
    """All members of a group get the hash of its smallest digest."""
    first = {}
    for digest, number in sorted(members, reverse=True):
        first[number] = digest
    expected = [own(first[number]) for _, number in members]
    assert hashes_of(members, buckets) == expected


def test_copies_share_a_hash_and_unread_rows_keep_their_own():
    """Equal pictures share a split; rows without a picture go by their own key."""
    nothing = small_picture(Image.new("RGB", (40, 30), (9, 9, 9)))
    blank, other = (2, 0), (3, 1)
    table = facts_of_members([blank, None, blank, other])
    for name, column in looks_of((nothing, None, nothing, nothing)).items():
        table = table.set_column(table.schema.get_field_index(name), name, column)
    [(_, found)] = decide({0: table}, split_settings(group_by="near"), alike)
    unread = placing(0)(b"own").split_hash
    assert found["split_hash"].to_pylist() == [own(2), unread, own(2), own(3)]
    assert hashes_of([]) == []


# --- whole runs ---------------------------------------------------------------------------------


def rows_csv(folder, rows):
    (folder / "some.csv").write_text("\n".join(rows))
    return str(folder / "some.csv")


def test_rows_that_name_a_split_keep_it(folder, tmp_path):
    """Others like them follow; a broken picture stays by itself."""
    (folder / "broken.png").write_bytes((folder / "0.png").read_bytes()[:200])
    rows = ["TEST,0.png,x", "TRAIN,0-small.png,x", "broken.png,x", "1.png,x", "1-dark.jpg,x"]
    given = {"group_by": "near", "max_reject_fraction": 0.2}
    result = recordgen.convert(rows_csv(folder, rows), tmp_path / "out", **given)
    splits = split_of_each(tmp_path / "out", "image/source_id")
    assert (splits["0.png"], splits["0-small.png"]) == ("test", "train")
    assert splits["1.png"] == splits["1-dark.jpg"]
    assert [(item.line, item.code) for item in result.rejects] == [(3, "truncated")]
    for more in (given, {}):
        with pytest.raises(UsageError, match="group_by=near"):
            recordgen.convert(rows_csv(folder, rows), tmp_path / "out", append=True, **more)


# task, other options, what the error names
REFUSED = [
    ("text_classification", {}, "group_by=near .* text_classification"),
    ("video_classification", {}, "group_by=near .* video_classification"),
    ("declared", {"schema": '{"a": "image", "b": "image"}'}, "group_by=near .* declared"),
]


@pytest.mark.parametrize(("task", "more", "words"), REFUSED, ids=range(len(REFUSED)))
def test_a_task_without_near_duplicates_is_refused(task, more, words):
    """Only pictures can look alike."""
    with pytest.raises(UsageError, match=words):
        task_for(ConvertOptions(task=task, group_by="near", **more))
    schema = '{"photo": "image", "age": "int"}'
    assert task_for(ConvertOptions(schema=schema, group_by="near")).name == "declared"
