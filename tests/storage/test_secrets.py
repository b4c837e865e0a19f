# ruff: noqa: E501 - tables with a case on each line
"""Planted secrets: no output or message contains one, and signatures do not change rows."""

import base64
import json
import logging
import traceback
from importlib.util import find_spec
from tempfile import mkdtemp
from urllib.parse import urlsplit

import fsspec
import pandas as pd
import pytest
from aiohttp import web
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image
from pyarrow.parquet import read_table

import recordgen
from recordgen.cli import main
from recordgen.core.dataset.vocabulary import Vocabulary
from recordgen.core.records import RECORDS
from recordgen.core.records.example import parse_example
from recordgen.core.rows.row import PlannedRow
from recordgen.errors import RecordgenError
from recordgen.kubeflow import convert as step
from recordgen.kubeflow.__main__ import main as run_step
from recordgen.kubeflow.execution import Artifact, StepInput
from recordgen.lineage import dataset_id
from recordgen.messages.masking import is_secret, masked, masked_values, without_secrets
from recordgen.storage.access import host_of
from recordgen.storage.retries import shown_cause
from recordgen.tasks import ImageClassification
from tests.conftest import convert_lines, encoded, error_of, noise, tree_bytes, write_file
from tests.planned import planned
from tests.servers import serving

# The apostrophe ends a quoted text, but not a password.
USER, PASSWORD, SIGNED = "pl4nted-user", "pl4nted'pl4nted-password", "pl4nted-signature"
NAMES = ("clientSecret", "apitoken", "token[]", "accessKey")
OPTIONS = {"allow": "http", "max_reject_fraction": 1, "fail_on": "none"}
IMAGES = {f"/{number}.png": encoded(noise(seed=number), "PNG") for number in range(4)}
MASK = encoded(Image.new("L", (16, 12), 1), "PNG")
SOUND = ("/0.png", "/2.png", "/3.png")  # the second one has two labels

# A URL, the name of its payload in data, data shown to people, and a message; `=`: as before it.
TEXTS = [
    ("1.jpg", "=", "=", "="),
    ("a@b.jpg?sig=1", "=", "a@b.jpg?sig=***", "="),
    ("a//b@2x.jpg", "=", "=", "="),
    ("https://h/1.jpg", "=", "=", "="),
    ("https://h/1.jpg?", "=", "=", "="),
    ("https://h/1.jpg?v=2&w=a=b", "=", "=", "https://h/1.jpg?***"),
    ("https://h/1.jpg#top", "=", "=", "https://h/1.jpg#***"),
    ("gs://b/1#2?.jpg", "=", "=", "="),
    # users and passwords
    ("https://me:pw@h/1.jpg", "https://h/1.jpg", "https://***@h/1.jpg", "="),
    ("https://token@h/1.jpg", "https://h/1.jpg", "https://***@h/1.jpg", "="),
    ("https://me:p@w@h/1@2x.jpg", "https://h/1@2x.jpg", "https://***@h/1@2x.jpg", "="),
    ("https://me:p'w@h/1.jpg", "https://h/1.jpg", "https://***@h/1.jpg", "="),
    ('https://me:p"<w>@h/1.jpg', "https://h/1.jpg", "https://***@h/1.jpg", "="),
    ("https://me:p w@h/1.jpg", "https://h/1.jpg", "https://***@h/1.jpg", "="),
    ("https://me:p/w?#@h/1.jpg", "https://h/1.jpg", "https://***@h/1.jpg", "="),
    ("abfs://box@account/1.jpg", "=", "=", "="),
    ("s3://KEY:SECRET@b/1.jpg", "s3://b/1.jpg", "s3://***@b/1.jpg", "="),
    ("zip://a.zip::s3://me:pw@b/c", "zip://a.zip::s3://b/c", "zip://a.zip::s3://***@b/c", "="),
    ("https://h/https://me:pw@i/1", "https://h/https://i/1", "https://h/https://***@i/1", "="),
    ("https://me:pass…", "=", "https://***", "="),  # a message has truncated the rest
    ("https://me:0pa", "=", "https://***", "="),
    ("http://[::1]:80/1.jpg", "=", "=", "="),
    ("http://h:8080: gone", "=", "=", "="),
    ("zip://a.zip::gs://b/c", "=", "=", "="),
    # slashes that a tool has normalised, and those that JSON escapes
    ("a.tar/https:/me:pw@h/1.jpg", "a.tar/https:/h/1.jpg", "a.tar/https:/***@h/1.jpg", "="),
    ("gs:/b/1.jpg?token=1", "gs:/b/1.jpg", "gs:/b/1.jpg?token=***", "="),
    (r"https:\/\/me:pw@h\/1?v=2", r"https:\/\/h\/1?v=2", r"https:\/\/***@h\/1?v=2", r"https:\/\/***@h\/1?***"),
    (r"https:\\me:pw@h\1.jpg", r"https:\\h\1.jpg", r"https:\\***@h\1.jpg", "="),
    (r"\\me:pw@h\1.jpg", r"\\h\1.jpg", r"\\***@h\1.jpg", "="),
    (r"\/me:pw@h/1.jpg", r"\/h/1.jpg", r"\/***@h/1.jpg", "="),
    (r"/\me:pw@h/1.jpg", r"/\h/1.jpg", r"/\***@h/1.jpg", "="),
    ("https:%5C%5Cme:pw@h/1.jpg", "https:%5C%5Ch/1.jpg", "https:%5C%5C***@h/1.jpg", "="),
    ("https%3a//me:pw@h/1.jpg", "https%3a//h/1.jpg", "https%3a//***@h/1.jpg", "="),
    ("a.tar///me:pw@h/1.jpg", "a.tar///h/1.jpg", "a.tar///***@h/1.jpg", "="),
    (r"a.tar/\\me:pw@h\1.jpg", r"a.tar/\\h\1.jpg", r"a.tar/\\***@h\1.jpg", "="),
    (r"C:\me@h:2x.jpg", "=", "=", "="),
    (r"\\h\me@2x.jpg", "=", "=", "="),
    ("//me:pw@h/1.jpg", "//h/1.jpg", "//***@h/1.jpg", "="),
    ("https%3A%2F%2Fme%3Apw%40h%2F1", "https%3A%2F%2Fh%2F1", "https%3A%2F%2F***@h%2F1", "="),
    ("https://me%3Apw%40h/1.jpg", "https://h/1.jpg", "https://***@h/1.jpg", "="),
    ("https://h/a%40b:2.jpg", "=", "=", "="),
    ("file:///a@b/1.jpg?token=1", "=", "file:///a@b/1.jpg?token=***", "="),
    # parameters
    ("https://h/?token=1&v=2", "https://h/?v=2", "https://h/?token=***&v=2", "https://h/?***"),
    ("https://h/?v=2&TOKEN=1", "https://h/?v=2", "https://h/?v=2&TOKEN=***", "https://h/?***"),
    ("https://h/?%73ig=1#a", "https://h/#a", "https://h/?%73ig=***#a", "https://h/?***"),
    ("https://h/?token=1'2", "https://h/", "https://h/?token=***", "https://h/?***"),
    ("https://h/a#access_token=1", "https://h/a", "https://h/a#access_token=***", "https://h/a#***"),
    ("https://h/a;b&c?d;auth=1", "https://h/a;b&c?d", "https://h/a;b&c?d;auth=***", "https://h/a;b&c?***"),
    ("https://h/a;jsessionid=1", "https://h/a", "https://h/a;jsessionid=***", "="),
    ("https://h/a;token=1/b", "https://h/a/b", "https://h/a;token=***", "="),
    ("https://h/a;v=1;sig=2/b;jwt=3", "https://h/a;v=1/b", "https://h/a;v=1;sig=***;jwt=***", "="),
    ("https://h/?X-Goog-Date=1&x-goog-signature=2&v=3", "https://h/?v=3", "https://h/?X-Goog-Date=***&x-goog-signature=***&v=3", "https://h/?***"),
    ("https://h/?sv=1&se=2&sig=3", "https://h/", "https://h/?sv=1&se=2&sig=***", "https://h/?***"),
    ("https://h/?SV=1&SIG=3", "https://h/", "https://h/?SV=1&SIG=***", "https://h/?***"),
    ("https://h/?se=2&Expires=3", "=", "=", "https://h/?***"),
    ("https://h/a&v=1&token=2", "https://h/a&v=1", "https://h/a&v=1&token=***", "="),
    ("https://h/?v=1&sig%3d2", "https://h/?v=1", "https://h/?v=1&sig%3d***", "https://h/?***"),
    ("https://h/1%3Ftoken%3D2%26v=3", "https://h/1?v=3", "https://h/1%3Ftoken%3D***%26v=3", "="),
    ("https://h/?u=//i%3fsig%3d1", "https://h/?u=//i", "https://h/?u=//i%3fsig%3d***", "https://h/?***"),
    ("https://h/?Expires=1&Sig=2", "https://h/", "https://h/?Expires=1&Sig=***", "https://h/?***"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "data", "message"), TEXTS, ids=range(len(TEXTS)))
def test_what_is_secret(text, name, data, message):
    """Parameter names decide; parameters that accompany a signature are removed with it."""
    name = text if name == "=" else name
    data = text if data == "=" else data
    message = data if message == "=" else message
    assert without_secrets(text) == name
    assert without_secrets(name) == name
    assert masked_values(text) == data
    assert masked(text) == message
    assert masked(message) == message
    assert masked(f"HTTP 503: '{text}', again") == f"HTTP 503: '{message}', again"


SECRET_NAMES = """token apitoken access_token token[] token[0] user[token] id.token Token2 tokens
    clientSecret client-secret CLIENTSECRET secret accessKey access_key ACCESSKEY accessKeyId apiKey
    api.key AWSAccessKeyId GoogleAccessId secretkey password db_passwd userPwd pwd pass sig X-Sig
    Signature hmac jwt auth x-auth oauth Authorization credentials subscription-key sas hdnts
    X-Amz-Date X-Goog-Expires"""
PLAIN_NAMES = (
    "v key id file design author tokenizer passage bypass authkeys2d x-goog signs keyboard"
)


def test_names_of_secret_parameters():
    """The end of a name decides, in any case and with any words before it."""
    assert [name for name in SECRET_NAMES.split() if not is_secret(name)] == []
    assert [name for name in PLAIN_NAMES.split() if is_secret(name)] == []


# Every character that ends a part of a URL, or of a text about it.
_PARTS = st.text(st.sampled_from("ab0:/?#@;&=[]'\" .%\n"), max_size=12)


@given(_PARTS, _PARTS, _PARTS)
@example(":@@/:", "@", "")
def test_users_are_where_the_standard_library_finds_them(user, host, rest):
    """A user and password that urlsplit finds are in no name of a payload and in no message."""
    url = f"https://{user}@{host}/{rest}"
    try:
        found = urlsplit(url)
        secret = found.username, found.password
    except ValueError:
        return
    if "\n" in url or not secret[1] or secret[1].isdigit():
        return
    whole = f"{secret[0]}:{secret[1]}@"
    if url.count(whole) > 1:
        return  # the path or the query holds the same characters, and keeps them
    assert whole not in without_secrets(url).replace(rest, "")
    if " " not in user:  # in a text, an address may end at a blank
        assert whole not in masked_values(url).replace(rest, "")


@pytest.fixture(scope="module")
def server():
    """A server that requires the password and the signature for its files."""
    known = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    rows = "TRAIN,0.png,a\nTRAIN,gone.png?token=pl4nted-token,a\n"
    answers = {
        "/rows.csv": {"text": rows},
        "/broken.png": {"status": 501},
        "/text.png": {"text": "no image"},
        "/mask.png": {"body": MASK},
        **{path: {"body": data, "headers": {"ETag": path}} for path, data in IMAGES.items()},
    }

    async def answer(request):
        if request.headers.get("Authorization") != known:
            return web.Response(status=401)
        is_signed = request.query.get("X-Amz-Signature", "").startswith(SIGNED)
        if not is_signed and request.path not in ("/rows.csv", "/0.png"):
            return web.Response(status=403)
        return web.Response(**answers.get(request.path, {"status": 404}))

    with serving(answer) as url:
        yield url
    fsspec.get_filesystem_class("https").clear_instance_cache()


def signed(server, path, signature=""):
    """Return a URL with a password and a signature; ``signature`` makes it different."""
    place = server.replace("//", f"//{USER}:{PASSWORD}@")
    date = f"X-Amz-Date=pl4nted-{signature}"
    more = "".join(f"&{name}=pl4nted" for name in NAMES)
    return f"{place}{path}?from=rows&{date}&X-Amz-Signature={SIGNED}-{signature}{more}"


def rows_of(server, signature="", *more):
    """Return lines: four good ones, two equal ones, and several with faults."""
    good = [f"TRAIN,{signed(server, path, signature)},a" for path in IMAGES]
    wrong = [
        f"TRAIN,{signed(server, '/gone.png', signature)},a",
        f"TEST,{signed(server, '/text.png', signature)},a",
        f"TRIAN,{signed(server, '/0.png', signature)},a",
        f"TRAIN,{signed(server, '/0.png', signature)},a,b,c",
        f"TRAIN,{signed(server, '/1.png', 'x' + signature)},b",
        f"TRAIN,{signed(server, '/2.png', 'x' + signature)},a",
        f"TRAIN,{server}/9.png;token=pl4nted-token,a",
        f"TRAIN,{server.replace('//', f'//{USER}:pl4nted/pl4nted@')}/0.png,a",
        f"TRAIN,ftp://{USER}:{PASSWORD}@host/1.png?token=pl4nted-token,a",
    ]
    return "\n".join([*good, *wrong, *more]) + "\n"


def by_command(server, folder):
    """The command: a conversion, a check, both as JSON, and the commands that show a dataset."""
    rows, flags = str(folder / "rows.csv"), ["--allow", "http", "--max-reject-fraction", "1"]
    (folder / "rows.csv").write_text(rows_of(server))
    for out in (str(folder / "out"), f"memory://{USER}:{PASSWORD}@box/out"):
        assert main(["convert", rows, out, *flags, "--json"]) == 0
        for command in ("export croissant", "export lineage", "report", "inspect"):
            assert main([*command.split(), out, "--json"]) == 0
        assert main(["inspect", out, "--to", mkdtemp(dir=folder)]) == 0
        assert main(["diff", out, out, "--json"]) == 0
        assert main(["convert", rows, out, *flags]) == 2
        assert main(["convert", rows, out, *flags, "--resume"]) == 0
    memory = fsspec.filesystem("memory")
    memory.get(f"{USER}:{PASSWORD}@box/out/", str(folder / "memory"), recursive=True)
    memory.rm("/", recursive=True)
    out = str(folder / "out")
    assert main(["check", rows, *flags, "--json"]) == 0
    assert main(["convert", rows, out, *flags, "--overwrite", "--log-format", "json"]) == 0
    assert main(["convert", rows, str(folder / "never"), *flags, "--dry-run"]) == 0
    assert main(["inspect", out]) == 0
    assert main(["export", "lineage", out]) == 0
    assert main(["convert", signed(server, "/rows.csv"), str(folder / "far"), *flags]) == 0
    assert main(["convert", signed(server, "/none.csv"), str(folder / "none")]) == 1
    (folder / "broken.csv").write_text(f"TRAIN,{signed(server, '/broken.png')},a\n")
    main(["convert", str(folder / "broken.csv"), str(folder / "broken"), *flags])
    (folder / "plain.csv").write_text("0.png,a\n1.png,b\n")
    pattern = ["--group-by", f"https://{USER}:({PASSWORD})@host"]
    assert main(["convert", str(folder / "plain.csv"), str(folder / "plain"), *flags, *pattern]) > 0
    assert (folder / "plain" / "rejects.jsonl").exists()
    for option in ("--vocabulary", "--schema", "--schema"):
        assert main(["check", rows, *flags, option, signed(server, "/none"), "--debug"]) > 0
    url = signed(server, "/1.png")  # in a message about columns, truncated if it is long
    (folder / "odd.csv").write_text(f"image,cls\n{url},{url}\n{url},{url}\n")
    assert main(["check", str(folder / "odd.csv"), *flags]) == 2


def by_python(server, folder):
    """Python: a DataFrame, errors with tracebacks, and records written and read."""
    lines = [line.split(",") for line in rows_of(server).splitlines()]
    frame = pd.DataFrame(
        [line[:3] for line in lines if len(line) == 3], columns=["split", "image_uri", "label"]
    )
    result = recordgen.convert(frame, folder / "out", **OPTIONS)
    print(result.rejects, result.dataset, recordgen.check(frame, **OPTIONS))
    # A frame of records goes through write: the values of its columns are data; errors are not.
    place = signed(server, "/out")
    write, load, diff = recordgen.write, recordgen.load, recordgen.diff
    for call, *places in ((write, [{"uri": "a"}], place), (load, place), (diff, place, place)):
        print("".join(traceback.format_exception(error_of(RecordgenError, call, *places))))
    for path in ("/broken.png", "/none.png", "/rows.csv"):
        (folder / "rows.csv").write_text(f"TRAIN,{signed(server, path)},a\n")
        for source in (folder / "rows.csv", signed(server, path)):
            arguments = source, folder / "none"
            error = error_of(RecordgenError, recordgen.convert, *arguments, allow="http")
            print("".join(traceback.format_exception(error)))


def by_step(server, folder):
    """The Kubeflow step: its parameters, and the metadata of its artifacts."""
    (folder / "rows.csv").write_text(rows_of(server))
    outputs = {
        name: Artifact(name, str(folder / name)) for name in ("dataset", "report", "metrics")
    }
    given = {**OPTIONS, "source": str(folder / "rows.csv"), "allow": f"http,{folder},{server}"}
    call = StepInput(given, {}, outputs, frozenset({"digest"}), str(folder / "output.json"))
    step.run(call).write(call)
    there = {name: {"artifacts": [{"uri": str(folder / name)}]} for name in ("dataset", "findings")}
    for name, path, code in (("check", "/rows.csv", 0), ("convert", "/none.csv", 1)):
        text = json.dumps(
            {
                "inputs": {"parameterValues": {**given, "source": signed(server, path)}},
                "outputs": {"artifacts": there, "outputFile": str(folder / "output.json")},
            }
        )
        assert run_step([name, "--executor-input", text]) == code


def by_component(server, folder):
    """The ExampleGen's executor, which describes its artifact."""
    from tfx.types import standard_artifacts

    from recordgen.examplegen import AutoMLExampleGen
    from recordgen.examplegen.executor import AutoMLExampleGenExecutor

    (folder / "rows.csv").write_text(rows_of(server))
    given = {**OPTIONS, "max_reject_fraction": 1.0, "allow": ["http", str(folder), server]}
    spec = AutoMLExampleGen(str(folder), **given).spec
    examples = standard_artifacts.Examples()
    examples.uri = str(folder / "examples")
    AutoMLExampleGenExecutor().Do({}, {"examples": [examples]}, dict(spec.exec_properties))
    print(examples)


DOORS = [by_command, by_python, by_step]
if find_spec("tfx"):
    DOORS.append(by_component)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_no_output_holds_a_secret(door, server, tmp_path, monkeypatch, caplog, capfd):
    """No secret is in files, stdout, logs, events, properties or errors; records name files."""
    events = tmp_path / "events.jsonl"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(events))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    monkeypatch.setenv("RECORDGEN_STORAGE_ATTEMPTS", "1")
    caplog.set_level(logging.INFO)
    door(server, tmp_path)
    said = "".join(capfd.readouterr()) + caplog.text
    said += "".join(str(vars(record)) for record in caplog.records)
    assert "pl4nted" not in said
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    tables = [path for path in written if path.suffix == ".parquet"]
    inputs = {tmp_path / name for name in ("rows.csv", "broken.csv", "odd.csv")}
    assert events in written
    assert tables
    holding = [path for path in written if b"pl4nted" in path.read_bytes()]
    assert set(holding) <= inputs
    assert not any("pl4nted" in str(read_table(path).to_pylist()) for path in tables)
    shards = [path for path in written if path.name.startswith("data_tfrecord")]
    named = {uri for path in shards for uri in source_ids(path)}
    assert {f"{server}{path}?from=rows" for path in SOUND} <= named


def test_names_of_hosts_and_causes():
    """The name of a host has no user; a library's error with a user is not shown as a cause."""
    assert host_of(f"ftp://{USER}:{PASSWORD}@host/1.png") == "ftp://host"
    assert dataset_id(f"ftp://{USER}:{PASSWORD}@host/out") == ("ftp://host", "out")
    assert shown_cause(ValueError(f'Invalid bucket name "{USER}:{PASSWORD}@bucket"')) is None
    plain = ValueError("host:80 is down: ask me@host")
    assert shown_cause(plain) is plain


def source_ids(shard):
    records = map(parse_example, RECORDS.read(str(shard)))
    return [record["image/source_id"][0].decode() for record in records]


def test_a_row_stays_itself_however_it_is_signed(server, tmp_path):
    """Another signature moves no row, adds none, and keeps the shards of a run."""
    source = write_file(tmp_path / "rows.csv", rows_of(server, "monday"))
    monday = recordgen.convert(source, tmp_path / "out", **OPTIONS)
    assert monday.dataset.rows.duplicates == 1
    source.write_text(rows_of(server, "tuesday"))
    assert recordgen.convert(source, tmp_path / "out", resume=True, **OPTIONS).unchanged
    other = recordgen.convert(source, tmp_path / "other", **OPTIONS)
    assert other.dataset.digest == monday.dataset.digest
    source.write_text(f"TRAIN,{signed(server, '/3.png', 'wednesday')},a\n")
    added = recordgen.convert(source, tmp_path / "out", append=True, **OPTIONS)
    assert (added.dataset.examples, added.dataset.rows.existing) == (monday.dataset.examples, 1)


def test_images_of_a_declared_table(server, tmp_path):
    """In rows with several images, each image is requested with its own signature."""
    lines = ["day,night,note", f"{signed(server, '/0.png')},{signed(server, '/1.png')},x"]
    schema = {"day": "image", "night": "image", "note": "text"}
    out = convert_lines(tmp_path, lines, schema=schema, **OPTIONS)
    assert recordgen.read_dataset(out).examples == 1
    [shard] = (tmp_path / "out").glob("Split-*/data*")
    assert b"pl4nted" not in shard.read_bytes()
    assert f"{server}/1.png?from=rows".encode() in shard.read_bytes()


def test_masks(server, tmp_path):
    """An image and its mask are requested with their own signatures, which no output has."""
    source, image, mask = tmp_path / "rows.csv", IMAGES["/0.png"], f"{server}/mask.png?from=rows"
    (tmp_path / "0.png").write_bytes(image)
    rows = [("0.png", signed(server, "/mask.png")), *[(signed(server, "/1.png"),) * 2]]
    source.write_text("".join(f"TRAIN,{','.join(row)}\n" for row in rows))
    run = recordgen.convert(source, tmp_path / "out", task="image_segmentation", **OPTIONS)
    assert run.dataset.examples == 1
    assert not any(b"pl4nted" in data for data in tree_bytes(tmp_path / "out").values())
    [table] = (tmp_path / "out").glob("examples*.parquet")
    assert mask in str(read_table(table).to_pylist())
    assert [reject.uri for reject in run.rejects] == [f"{server}/1.png?from=rows"]


def test_a_url_made_of_columns(server, tmp_path):
    """The template of --columns is recorded, shown and compared without secrets."""
    source, out = tmp_path / "rows.csv", tmp_path / "out"
    for signature, ids in (("monday", (0, 1)), ("tuesday", (2,))):
        source.write_text("id,label\n" + "".join(f"{number},a\n" for number in ids))
        columns = {"path": signed(server, "/{id}.png", signature), "label": "label"}
        run = recordgen.convert(
            source, out, columns=columns, append=signature == "tuesday", **OPTIONS
        )
    assert run.dataset.examples == 3
    assert not any(b"pl4nted" in data for data in tree_bytes(out).values())


def test_a_shard_stays_itself_however_its_rows_are_signed():
    """A resumed run finds its shards again."""

    def identity(signature):
        addresses = f'["https://host/1.png?sig={signature}"]'
        row = PlannedRow(1, "a.csv", 1, "https://host/1.png", None, 9, "v1", False, addresses)
        return planned([row]).identity(Vocabulary("text", ()), ImageClassification())

    assert identity("monday") == identity("tuesday")
