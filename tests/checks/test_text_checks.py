"""Checks of texts: near-duplicates, odd texts, and odd classes of texts."""

import random
import re

import numpy as np
import pytest

import recordgen
from recordgen.checks.copies import group_texts
from recordgen.core.facts.columns import SIGNATURE_BYTES
from recordgen.measures.likeness import group_by_keys
from recordgen.measures.texts import MOST_BYTES, SeenText, similarity, words_of
from tests.checks.facts import findings
from tests.checks.test_lint import about_rows

WORDS = [f"{a}{b}{c}" for a in "bdfgklm" for b in "aeiou" for c in "nrst"]

# Correct texts in several languages, which must not be findings.
CLEAN = [
    "FIANCÉ… « déjà vu » à Orléans — où ? Ça coûte 10 €.",
    "„Spaß“ in KÖLN: STRAẞE, GRÜßE” und Öl – 20 °C ± 2",
    "MAÇÃ… e NÃO; ÂNGULO, “à noite” às 10h",
    "Сегодня хорошая погода, и мы идём гулять.",
    "今天天气很好我们去公园散步。",
    "Ñandú, ¿qué tal? ¡Sí! El año 2º",
]


def sentence(draw, words):
    return draw.choices(WORDS, k=words)


def signatures_of(texts):
    """Return the signatures, uint8 [n, 64]; zeros without words."""
    found = SeenText.columns([SeenText(text.encode(), len(text)) for text in texts])["signature"]
    data = b"".join(signature or bytes(SIGNATURE_BYTES) for signature in found)
    return np.frombuffer(data, np.uint8).reshape(-1, SIGNATURE_BYTES)


def test_the_estimate_of_what_texts_share():
    """The estimate has no bias, and an error of less than 0.07; only pairs of words count."""
    draw = random.Random(1)
    ones = [sentence(draw, length) for length in (5, 20, 80) * 100]
    others = [[word if draw.random() > 0.1 else "other" for word in text] for text in ones]
    one, other = (signatures_of(list(map(" ".join, texts))) for texts in (ones, others))
    errors = similarity(one, other) - list(map(shared, ones, others))
    assert abs(errors.mean()) < 0.01
    assert np.sqrt((errors**2).mean()) < 0.07


def shared(one, other):
    """Return the share of common pairs of words of two texts."""
    first, second = ({*zip(text, [*text[1:], ""], strict=True)} for text in (one, other))
    return len(first & second) / len(first | second)


# text, other, words
SPELLINGS = [
    ("Good, AND cheap!", "good and\tcheap", 3),
    ("«naïve» — “Привет”", "naïve Привет", 2),
    ("今天天气。", "今 天 天 气 。", 5),
    ("x😀y", "x 😀 y", 3),
    ("ti\u1ebfng", "ti \u1ebf ng", 3),
    ("…?! ", "", 0),
]


@pytest.mark.parametrize(("text", "other", "words"), SPELLINGS)
def test_capitals_blanks_and_punctuation_do_not_matter(text, other, words):
    """Capitals, blanks and punctuation do not matter; a Chinese character is a word."""
    one, two = (words_of([each.encode()]) for each in (text, other))
    assert one.hashes.tolist() == two.hashes.tolist()
    assert len(one.hashes) == words == one.counts[0]


def test_facts_do_not_depend_on_neighbours():
    """A text gives the same facts alone, among others, and after a long text that is cut."""
    draw = random.Random(2)
    long = ("é" * 50 + " bad ") * (MOST_BYTES // 100)
    texts = [" ".join(sentence(draw, 40)) for _ in range(60)]
    texts += ["It is very good", "not Very, good", "bad", "", "!", "四五六", long, "very", "good"]
    seen = [SeenText(text.encode(), len(text)) for text in texts * 9]
    together = SeenText.columns(seen)
    for number, each in enumerate(seen[: len(texts)]):
        of_all = {name: [column[number]] for name, column in together.items()}
        assert SeenText.columns([each]) == of_all


def test_texts_are_grouped_without_comparing_all():
    """Each of many texts that share a key is compared with few; a chain makes one group."""
    keys = np.zeros(200, np.uint32)
    compared = []

    def alike(first, second):
        compared.append(len(first))
        return np.abs(first - second) == 2

    assert group_by_keys([keys, keys], 200, alike).tolist() == [0, 1] * 100
    assert sum(compared) < 200 * 70


def test_a_text_without_words_is_alone():
    """Texts too short for shingles are alike only with the same words in one order."""
    assert group_texts(signatures_of(["a b", "b a", "A b."]), 0.9).tolist() == [0, 1, 0]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """An import file of texts with a planted fault of each kind, in lines 41 to 45."""
    draw = random.Random(3)
    texts = [sentence(draw, 30) for _ in range(40)]
    rows = [
        f"TRAIN,{' '.join(text)}{' Fine' * (number % 2)},{('fine', 'other')[number % 2 == 0]}"
        for number, text in enumerate(texts)
    ]
    near = ["changed", *texts[4][1:]]
    rows += [
        f"TRAIN,{' '.join(near)},other",
        f"TEST,{' '.join([*texts[5], 'fine', 'too'])},fine",
        f"TEST,{' '.join(reversed(texts[5]))} fine,fine",
        "TRAIN,the caf\u00c3\u00a9 is closed,other",
        "TRAIN,one \ufffd was lost,other",
    ]
    rows += [f'TRAIN,"{text}",other' for text in CLEAN]
    rows += [f"\ufeffTRAIN,{' '.join(sentence(draw, 30))},{WORDS[0]}" for _ in range(12)]
    path = tmp_path_factory.mktemp("texts") / "rows.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def test_what_is_found(source, tmp_path):
    """lint.jsonl has the planted faults, and no other findings about rows."""
    recordgen.convert(source, tmp_path / "out", task="text_classification", lint="ALL", threads=2)
    found = about_rows(tmp_path / "out")
    marks = [line for code, line, _ in found if code == "JOINED_FILES"]
    assert marks == list(range(52, 64))
    facts = [
        (code, line, re.findall(r"(?<![-\d])\d[\d,.]*\b", said.replace(str(source), "")))
        for code, line, said in found[: -len(marks)]
    ]
    assert facts == [
        ("NEAR_LEAK", 42, ["6", "0.92"]),  # the other line, and how similar both are
        ("NEAR_DUPLICATE", 41, ["5", "0.95"]),
        ("MOJIBAKE", 44, []),
        ("MOJIBAKE", 45, []),
    ]


# threshold, codes
THRESHOLDS = [
    (("near_leak=0.99", "NEAR_DUPLICATE=0.9"), {"NEAR_DUPLICATE"}),
    (("near_duplicate=0.99",), {"NEAR_LEAK"}),
]


@pytest.mark.parametrize(("threshold", "codes"), THRESHOLDS)
def test_thresholds(source, threshold, codes):
    """Each code has its own threshold, also if one comparison finds both."""
    wanted = ("NEAR_LEAK", "NEAR_DUPLICATE")
    found = findings(source, task="text_classification", lint=(*wanted, *threshold))
    assert {item.code for item in found} == codes
