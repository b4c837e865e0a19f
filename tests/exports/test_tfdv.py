"""schema.pbtxt: its own dataset has no anomaly, a drifted span has."""

from dataclasses import replace

import pytest

from recordgen import read_dataset
from recordgen.core.records import RECORDS
from recordgen.errors import SourceError
from recordgen.exports.descriptions import Tfdv
from recordgen.exports.export import Output
from recordgen.features import statistics_features
from tests.conftest import convert_lines
from tests.exports.conftest import KINDS
from tests.golden import ROOT

# Old versions of NumPy in TFDV warn about quantiles of infinite times.
pytestmark = [pytest.mark.inside, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


@pytest.fixture(scope="module")
def tfdv():
    return pytest.importorskip("tensorflow_data_validation", reason="needs TFX")


def statistics_of(output, **options):
    """Return the statistics that a pipeline of TFDV gives, without Beam: a second less each."""
    import tensorflow_data_validation as tfdv
    from tensorflow_data_validation.statistics.stats_impl import generate_statistics_in_memory
    from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

    shards = read_dataset(str(output)).splits["train"].shards
    records = [record for shard in shards for record in RECORDS.read(f"{output}/{shard.file}")]
    batch = ExamplesToRecordBatchDecoder().DecodeBatch(records)
    return generate_statistics_in_memory(batch, tfdv.StatsOptions(**options))


@pytest.fixture
def anomalies(tfdv):
    """Validate a split of an output with another output's schema; return anomalies by feature."""

    def validate(schema_of, output):
        dataset = read_dataset(str(output))
        allowed = statistics_features(dataset.task, dataset.features)
        statistics = statistics_of(output, feature_allowlist=allowed)
        schema = tfdv.load_schema_text(str(schema_of / "schema.pbtxt"))
        found = tfdv.validate_statistics(statistics, schema).anomaly_info
        return {name: info.short_description for name, info in found.items()}

    return validate


@pytest.mark.parametrize("name", KINDS)
def test_a_dataset_fits_its_own_schema(sample, anomalies, name):
    """TFDV finds no anomaly in any kind of dataset."""
    assert anomalies(sample(name), sample(name)) == {}


@pytest.mark.parametrize("name", ["object_detection", "raw"])
def test_payloads_may_have_statistics(sample, tfdv, name):
    """Statistics of all features, including payloads, also give no anomaly."""
    output = sample(name)
    statistics = tfdv.generate_statistics_from_tfrecord(str(output / "Split-train/*"))
    schema = tfdv.load_schema_text(str(output / "schema.pbtxt"))
    assert not tfdv.validate_statistics(statistics, schema).anomaly_info
    assert statistics.ByteSize() < 50_000


def test_a_drifted_span_of_images(sample, tmp_path, anomalies):
    """Detect a new label, and missing labels."""
    images = sorted((ROOT / "examples/image_classification/images").rglob("*.png"))[:4]
    labels = ("3", "3", "", "77")
    lines = [f"TRAIN,{path},{label}" for path, label in zip(images, labels, strict=True)]
    found = anomalies(sample("image_classification"), convert_lines(tmp_path, lines))
    assert found == {
        "image/class/text": "Multiple errors",  # unexpected, out of range, missing
        "image/class/label": "Multiple errors",
    }


def test_a_drifted_span_of_tables(tmp_path, anomalies):
    """Detect a new class, a missing column, and a column of another type."""
    old = ["ml_use,size,age,kind", *["TRAIN,1.5,3,a", "TRAIN,2.5,4,b"] * 3]
    new = ["ml_use,size,kind,more", *["TRAIN,large,a,1.5", "TRAIN,small,c,2.5"] * 3]
    spans = {"old": old, "new": new}
    given = {"columns": "target=kind"}
    found = anomalies(*(convert_lines(tmp_path, spans[to], to, **given) for to in spans))
    assert found == {
        "kind": "Unexpected string values",
        "age": "Column dropped",
        "size": "Unexpected data type",
        "more": "New column",
    }


@pytest.mark.once
def test_what_the_schema_says(sample):
    """Types, presence, ranges, domains and features without validation, checked without TFDV."""
    text = (sample("image_classification") / "schema.pbtxt").read_text()
    assert (
        'feature {\n  name: "image/class/text"\n  type: BYTES\n  value_count { min: 1 max: 1 }\n'
        '  presence { min_fraction: 1 min_count: 1 }\n  domain: "labels"\n}\n'
    ) in text
    assert 'name: "image/encoded"\n  type: BYTES\n}' in text
    assert "int_domain { min: 0 max: 9 }" in text
    assert 'string_domain {\n  name: "formats"\n  value: "png"\n}' in text
    boxes = (sample("object_detection") / "schema.pbtxt").read_text()
    assert boxes.count("float_domain { min: 0.0 max: 1.0 }") == 4
    named = 'name: "image/object/class/'
    assert f'{named}text"\n  type: BYTES\n  domain: "labels"\n}}' in boxes
    assert f'{named}label"\n  type: INT\n  int_domain {{ min: 0 max: 9 }}\n}}' in boxes
    assert (sample("text_entities") / "schema.pbtxt").read_text().count('domain: "tags"') == 1


@pytest.mark.once
def test_unlabelled_examples_may_stay_so(sample):
    """A label is required only where all examples have one."""
    dataset = read_dataset(str(sample("image_classification")))
    train = replace(dataset.splits["train"], unlabelled=1)
    text = Tfdv().text(Output("", replace(dataset, splits={"train": train})))
    assert 'domain: "labels"' in text
    before = text.partition('domain: "labels"')[0].rpartition("feature {")[2]
    assert "presence { min_count: 1 }" in before


@pytest.mark.once
def test_a_long_vocabulary_is_no_domain(sample):
    """Above 10,000 labels their names are left out, but not the range of their numbers."""
    dataset = read_dataset(str(sample("image_classification")))
    for count, is_domain in ((10_000, True), (10_001, False)):
        text = Tfdv().text(Output("", replace(dataset, labels=tuple(map(str, range(count))))))
        assert ('domain: "labels"' in text) == is_domain
        assert f"int_domain {{ min: 0 max: {count - 1} }}" in text


def test_names_are_quoted(sample):
    """Protobuf's text format reads any names back."""
    metadata = pytest.importorskip("tensorflow_metadata.proto.v0.schema_pb2", reason="needs TFX")
    from google.protobuf import text_format

    labels = ('"', "\\", "a\tb", "é 猫", "\\n", "it's")
    dataset = replace(read_dataset(str(sample("image_classification"))), labels=labels)
    schema = text_format.Parse(Tfdv().text(Output("", dataset)), metadata.Schema())
    assert [tuple(it.value) for it in schema.string_domain if it.name == "labels"] == [labels]


def test_a_schema_gives_the_types_of_the_next_table(sample, tmp_path):
    """``--schema`` accepts it, and the columns keep their types."""
    pytest.importorskip("tensorflow_metadata", reason="needs TFX")
    first = convert_lines(tmp_path, ["ml_use,size", "TRAIN,1.5", "TRAIN,2.5"], task="tabular")
    whole, schema = ["ml_use,size", "TRAIN,1", "TRAIN,2"], str(first / "schema.pbtxt")
    second = convert_lines(tmp_path, whole, "second", schema=schema)
    assert read_dataset(second).features["size"].dtype == "float32"
    with pytest.raises(SourceError, match=r"none\.pbtxt"):
        convert_lines(tmp_path, whole, "third", schema="none.pbtxt")
