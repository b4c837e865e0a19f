"""CoNLL's files: a token and its tag on each line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordgen
from recordgen.errors import SourceError, UsageError
from recordgen.formats.conll import Conll
from recordgen.formats.listing import Listing
from recordgen.tasks.texts.tags import spans_of, split_at_blanks, tags_of
from tests.formats.sources import Reading, refusal, write_files


def tagged(out, split="train"):
    """Return the tags of each text of a split."""
    return {
        " ".join(example["tokens"]): " ".join(example["tags/text"])
        for example in recordgen.source(out, split)
    }


@pytest.fixture
def convert(tmp_path):
    def of(files, name="", **options):
        source = f"{write_files(tmp_path / 'in', files)}/{name}"
        return recordgen.convert(source, tmp_path / "out", fail_on="none", **options).dataset

    return of


def test_a_folder_of_files(convert, tmp_path):
    """Columns between, documents and comments are skipped; names give the splits; only blanks and
    tabs separate columns."""
    files = {
        "eng.train": "-DOCSTART- -X- O\n\nAnna NNP I-PER\r\nflew VBD O\r\n\r\nCome VB O\n",
        "eng.testa": "# id 7\nKöln\tB-LOC\n# O\n\n10\u00a0000 O\nbis B-X\n",
        "eng.testb": "\ufeffNew B-LOC\nYork I-LOC\n\n\n \n",
        "README.md": "These are names.\n",
    }
    dataset = convert(files)
    assert (dataset.task, dataset.options["format"]) == ("text_entities", "conll")
    assert tagged(tmp_path / "out") == {"Anna flew": "B-PER O", "Come": "O"}
    assert tagged(tmp_path / "out", "eval") == {"Köln #": "B-LOC O", "10\u00a0000 bis": "O B-X"}
    assert tagged(tmp_path / "out", "test") == {"New York": "B-LOC I-LOC"}
    assert "tags_begun" not in dataset.rows.adjusted


# the tags of a sentence, and those of its record
SCHEMES = [
    ("I-A I-A B-A O", "B-A I-A B-A O"),
    ("B-A E-A S-A O", "B-A I-A B-A O"),
    ("B-A L-A U-A I-A", "B-A I-A B-A B-A"),
    ("B-A B-A I-B", "B-A B-A B-B"),
    ("B-A-B I-A-B O", "B-A-B I-A-B O"),
    ("B-A M-A E-A E-A", "B-A I-A I-A B-A"),
    (f"B-A {'O ' * 9_000}O", f"B-A {'O ' * 9_000}O"),  # a long sentence, before short ones
]


@pytest.mark.parametrize(("tags", "expected"), SCHEMES)
def test_schemes_of_tags(tags, expected, convert, tmp_path):
    """IOB1, IOB2, BIOES and BILOU give the same entities."""
    tokens = ["token"] * len(tags.split())
    lines = map(" ".join, zip(tokens, tags.split(), strict=True))
    convert({"train.txt": "\n".join(lines) + "\n\nz O\n"}, "train.txt")
    assert tagged(tmp_path / "out") == {" ".join(tokens): expected, "z": "O"}


def test_files_of_any_suffix_are_read_and_others_are_named(convert, tmp_path):
    """Nothing is lost in silence: a file that repeats two splits is skipped, like notes."""
    one = "Anna B-PER\n\n{} O\n"
    files = {"a.train.conll": "left", "a.dev.conll": "came", "test.annotated": "stayed"}
    files = {name: one.format(word) for name, word in files.items()}
    copies = dict.fromkeys(
        ["train_dev.tsv", "a.dev.iob1", "a.dev.conll~", "my.pred"], one.format("x")
    )
    convert({**files, **copies, "notes.md": "These are names.\n"})
    found = [len(tagged(tmp_path / "out", split)) for split in ("train", "eval", "test")]
    assert found == [2, 2, 2]
    skipped = "a.dev.conll~, a.dev.iob1, my.pred, notes.md, train_dev.tsv"
    assert (tmp_path / "out/lint.jsonl").read_text().count(skipped) == 1
    others = dict.fromkeys(["train.txt", "dev.txt", "dev_test.txt", "a/train_dev.txt"], one)
    found = Reading(write_files(tmp_path / "others", others))
    assert len(found.rows) == 8  # no other file has these sentences
    assert len(Reading(tmp_path / "in/a.dev.conll").items) == 2  # nothing beside a file is skipped


def test_sentences_in_folders_are_no_texts_by_class(convert, tmp_path):
    """Folders of languages have files of the same names."""
    names = [f"{at}/{split}.txt" for at in ("amh", "hau") for split in ("train", "test")]
    dataset = convert({name: f"{name[:3]} B-PER\nleft O\n" for name in names})
    assert (dataset.task, dataset.examples) == ("text_entities", 4)


def test_entities_that_begin_with_i_are_odd_only_in_iob2(convert):
    """In IOB1 an entity begins so."""
    assert convert({"train.txt": "a I-A\nb B-A\n\nc I-A\n"}, "train.txt").rows.adjusted == {}
    rows = convert({"train.txt": "d I-A\n\na B-A\n\nb I-A\n"}, "train.txt", overwrite=True).rows
    assert rows.adjusted == {"tags_begun": 1}


# a sentence, and its code
REJECTED = [
    ("a B-A\nb\nc O", "bad_annotation"),
    ("a B-A\nb place", "bad_annotation"),
    ("New York\tB-A", "bad_annotation"),
    ("in B-A\nNew York I-A", "bad_annotation"),
    (f"{'a' * 90} B-A\n" * 3_000, "bad_line"),
]


@pytest.mark.parametrize(("sentence", "code"), REJECTED)
def test_a_sentence_is_used_as_a_whole(sentence, code, tmp_path):
    """A bad tag or line rejects its sentence, at its first line."""
    good = "".join(f"{word} B-A\nO O\n\n" for word in "abcdefghijklm")
    root = write_files(tmp_path, {"train.txt": f"{good}{sentence}\n\nz O\n"})
    found = Reading(root / "train.txt")
    assert (len(found.rows), found.codes) == (14, [code])
    assert found.rejects[0].line == 40


# files that are not CoNLL's
OTHERS = [
    {"labels.txt": "B-person O\nO\n", "sentences.txt": "Anna flew\nAway\n"},
    {"labels.txt": "B-person O\nO O\n", "sentences.txt": "Anna flew\nGo away\n"},
    {"a.txt": "a O\nb O\n"},
    {"a.txt": ""},
]


@pytest.mark.parametrize("files", OTHERS)
def test_other_files_are_not_taken(files, tmp_path):
    """No other text is taken for tagged words."""
    assert Conll().detect(Listing.of(f"{write_files(tmp_path, files)}/")) is None


def test_a_file_of_another_name_says_the_option(convert):
    """The format is read on request."""
    files = {"a.csv": "a B-A\nb O\n"}
    with pytest.raises(SourceError, match="conll"):
        convert(files, "a.csv")
    assert convert(files, "a.csv", format="conll").examples == 1


# lines that are not a token and, at the end, its tag, and the columns that read them
ELSEWHERE = [
    ("1\tAnna\tB-PER\tO\n2\tflew\tO\tO\n", "text=2,label=3"),  # nested tags
    ("# web [2009]\n1\tAnna\tB-PER\tB-X\n2\tflew\tO\tO\n", "text=2,label=3"),
    ("1 Anna B-PER\n2 flew O\n", "text=2,label=3"),
    ("B-PER\tAnna\nO\tflew\n", "text=2,label=1"),
    ("Anna B-PER NNP\nflew O VBD\n", "text=1,label=2"),
]


@pytest.mark.parametrize("options", [{}, {"format": "conll"}])
@pytest.mark.parametrize(("lines", "columns"), ELSEWHERE)
def test_tokens_in_other_columns_stop(lines, columns, options, convert, tmp_path):
    """No column is guessed: the proposed options, and only these, give the tokens."""
    refused = refusal(convert, {"train.txt": lines}, "train.txt", **options)
    assert refused.options == {"format": "conll", "columns": columns}
    convert({"train.txt": lines}, "train.txt", **refused.options)
    assert tagged(tmp_path / "out") == {"Anna flew": "B-PER O"}


# lines of tokens and tags that no option reads
UNREAD = [
    ("Anna\tB-P\n" + "left\tO\n" * 6_000 + "\n\n", {}),  # no line between is empty
    ("Anna/B-PER flew/O\nCome/O\n", {}),
    ("1\tAnna\tAnna\tPROPN\t_\t_\t0\troot\t_\tname=B-PER|SpaceAfter=No\n", {"format": "conll"}),
]


@pytest.mark.parametrize(("lines", "options"), UNREAD)
def test_other_forms_of_tags_stop(lines, options, convert):
    """A form that is not read proposes no command."""
    assert refusal(convert, {"train.txt": lines}, "train.txt", **options).options == {}


@pytest.mark.parametrize("columns", ["text=1", "text=word,label=2", "text=0,label=1", "path=1"])
def test_columns_of_tokens_and_tags_are_two_numbers(columns, convert):
    """Any other mapping is refused."""
    with pytest.raises(UsageError):
        convert({"train.txt": "Anna B-PER\n"}, "train.txt", format="conll", columns=columns)


def test_a_number_sign_is_a_token_in_given_columns(convert, tmp_path):
    """A line is a comment only if the given column holds no tag."""
    files = {"train.txt": "# brave words\n#\tO\tX\nAnna\tB-PER\tX\n"}
    convert(files, "train.txt", format="conll", columns="text=1,label=2")
    assert tagged(tmp_path / "out") == {"# Anna": "O B-PER"}


def test_files_without_a_suffix(convert, tmp_path):
    """Their whole names name the splits."""
    convert({"train": "Anna B-PER\n", "dev": "Ben B-PER\n", "test": "Ada B-PER\n"})
    found = [tagged(tmp_path / "out", split) for split in ("train", "eval", "test")]
    assert found == [{"Anna": "B-PER"}, {"Ben": "B-PER"}, {"Ada": "B-PER"}]


TAG = st.sampled_from(["O", *(head + "-A" for head in "BIESUL"), "B-B", "I-B"])


@given(st.lists(TAG, min_size=1))
def test_tags_of_any_scheme_become_the_same_spans_again(tags):
    """Spans, written as IOB2 and read again, are the same."""
    tokens = split_at_blanks(" ".join("a" * len(tags)))
    spans, _ = spans_of(tokens, tags)
    assert spans_of(tokens, tags_of(tokens, spans)) == (spans, [])
    assert [tag != "O" for tag in tags] == [tag != "O" for tag in tags_of(tokens, spans)]


def test_the_format_alone_says_the_task(tmp_path):
    """Lines without tags are no images."""
    (tmp_path / "a.tsv").write_text("Good\tpraise\n" * 3)
    found = recordgen.check(tmp_path / "a.tsv", format="conll", max_reject_fraction=1)
    assert found.dataset.task == "text_entities"
