"""Access rules: which files rows may reach."""

import os
import pickle
from dataclasses import replace
from ipaddress import IPv6Address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recordgen.cli import main
from recordgen.conversion.api import make_options
from recordgen.errors import SourceError, UsageError
from recordgen.formats.source import open_source
from recordgen.messages.masking import masked
from recordgen.options import ConvertOptions
from recordgen.storage.access import Access, RowUrlPolicy
from recordgen.storage.paths import OBJECT_STORES, is_public, resolve
from tests.conftest import error_of, write_file

LOCAL, GS, HTTPS = "/data/labels.csv", "gs://bucket/labels.csv", "https://web.example/labels.csv"

GITHUB, ZIPPED = "github://owner:repo@main/1.jpg", "zip://1.jpg::/data/secret.zip"
WEB, BLOB = "https://web.example/1.jpg", "abfs://box@account.dfs.core.windows.net/1.jpg"

# import file, schemes, payloads that its rows may reach, payloads that they may not
SCHEMES = [
    (LOCAL, (), ["/data/1.jpg", "file:///data/1.jpg", "FILE:///data/1.jpg", "../1.jpg"], []),
    (LOCAL, (), ["gs://other/1.jpg", "GS://other/1.jpg", "s3://other/1.jpg", BLOB], []),
    (LOCAL, (), [], [WEB, "HTTPS://web.example/1.jpg", "ftp://web.example/1.jpg"]),
    (LOCAL, (), [], ["ssh://host/1.jpg", GITHUB, "memory://1.jpg", "local:///etc/passwd"]),
    (LOCAL, (), [], ["simplecache::gs://bucket/1.jpg"]),
    (LOCAL, ("https",), [WEB, "HTTPS://web.example/1.jpg"], ["http://web.example/1.jpg"]),
    (LOCAL, ("http",), [WEB], []),
    (LOCAL, ("ftp",), ["ftp://web.example/1.jpg"], []),
    (LOCAL, ("simplecache", "gs"), [], ["simplecache::gs://bucket/1.jpg"]),
    (LOCAL, ("zip",), [], [ZIPPED]),
    (GS, (), ["gs://other/1.jpg", "Gs://other/1.jpg", "gcs://other/1.jpg", "1.jpg"], []),
    (GS, (), ["gs://bucket/a::b.jpg"], ["s3://other/1.jpg", WEB, "/etc/passwd"]),
    (GS, ("s3",), ["s3://other/1.jpg"], []),
    (GS, ("https",), [WEB], []),
    (GS, ("https", "s3"), [], ["file:///etc/passwd", "FILE:///etc/passwd"]),
    ("gcs://bucket/labels.csv", (), ["gs://other/1.jpg"], []),
    (HTTPS, (), ["1.jpg", "https://other.example/1.jpg"], []),
    (HTTPS, (), [], ["http://web.example/1.jpg", "gs://bucket/1.jpg"]),
    ("http://web.example/labels.csv", (), ["http://other.example/1.jpg", WEB], []),
    ("DataFrame", (), ["/data/1.jpg"], [WEB]),
]


@pytest.mark.parametrize(("source", "schemes", "reached", "refused"), SCHEMES)
def test_schemes(source, schemes, reached, refused):
    """Rows of local import files reach local files and object stores, others their own storage."""
    access, uris = Access(schemes), [*reached, *refused]
    assert [uri for uri in uris if access.refusal(resolve(uri, source), source) is None] == reached


# import file, payload, schemes, prefixes, refusal of a confined row
CONFINED = [
    (LOCAL, "/data/1.jpg", (), (), None),
    (LOCAL, "/data/images/1.jpg", (), (), None),
    (LOCAL, "/database/1.jpg", (), (), "reach only /data and what allow names; allow=/database a"),
    (LOCAL, "/etc/passwd", (), (), "reach only /data and what allow names; allow=/etc allows it"),
    (LOCAL, "/data/../etc/passwd", (), (), "allow=/etc allows it"),
    (LOCAL, "file:///etc/passwd", (), (), "allow=/etc allows it"),
    (LOCAL, "/etc/passwd", (), ("/etc",), None),
    (LOCAL, "/data/1.jpg", (), ("/etc",), None),
    (LOCAL, "/a/b/1.jpg", (), ("/a/c",), "allow=/a/b allows it"),
    (LOCAL, "gs://bucket/1.jpg", (), (), "allow=gs://bucket allows it"),
    (LOCAL, "gs://bucket/1.jpg", (), ("gs://bucket",), None),
    (LOCAL, "local:///etc/passwd", (), ("/",), "local:// is not supported"),
    (LOCAL, "zip://1.jpg::/data/a.zip", ("zip",), (), "a chain of URLs is not followed"),
    (LOCAL, "https://host/1.jpg", (), (), "allow=https://host:443 allows it"),
    (LOCAL, "https://host/1.jpg", ("https",), (), None),
    (LOCAL, "https://host/1.jpg", (), ("https://host:443",), None),
    (LOCAL, "https://host/1.jpg", ("https",), ("https://other",), "allow=https://host:443"),
    (GS, "gs://bucket/other/1.jpg", (), (), None),
    (GS, "gcs://bucket/1.jpg", (), (), None),
    (GS, "gs://bucket/../other/1.jpg", (), (), "write it plainly"),
    (GS, "gs://bucket2/1.jpg", (), (), "reach only gs://bucket and what allow names; allow=gs"),
    (GS, "/etc/passwd", (), ("/etc",), "reach no local files"),
    (GS, os.path.abspath("1.jpg"), (), (), "reach no local files"),
    (HTTPS, "https://web.example/other/1.jpg", (), (), None),
    (HTTPS, "https://other.example/1.jpg", (), (), "allow=https://other.example:443"),
    ("/gcs/bucket/a/labels.csv", "gs://bucket/1.jpg", (), (), None),
    ("/gcs/bucket/a/labels.csv", "/gcs/bucket/a/1.jpg", (), (), None),
    ("/gcs/bucket/a/labels.csv", "gs://other/1.jpg", (), (), "allow=gs://other allows it"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "path", "schemes", "roots", "message"), CONFINED)
def test_confined_rows_stay_in_their_place(source, path, schemes, roots, message):
    """In a pipeline step, rows reach only their import file's folder, bucket or server."""
    reason = Access(schemes, roots, confined=True).refusal(path, source)
    assert (reason or "").find(message or "") >= 0
    assert (reason is None) == (message is None), reason


_PHOTOS = "https://photos.example"

# image root, import file, payloads that rows reach, payloads that they do not
IMAGE_ROOTS = [
    ("/photos", LOCAL, ["/photos/a/1.jpg"], ["/photos-private/1.jpg", "/photos/../etc/passwd"]),
    ("/photos", GS, ["/photos/1.jpg"], ["/etc/passwd"]),
    ("gs://photos/a", LOCAL, ["gs://photos/a/1.jpg"], ["gs://photos/b/1.jpg"]),
    ("gs://photos/a", LOCAL, [], ["gs://photos/a/../b/1.jpg"]),
    (f"{_PHOTOS}/a", LOCAL, [f"{_PHOTOS}/a/1.jpg"], [f"{_PHOTOS}/b/1.jpg"]),
    (f"{_PHOTOS}/a", LOCAL, [], [f"{_PHOTOS}/a/..;/b/1.jpg"]),
]


@pytest.mark.parametrize(("root", "source", "reached", "refused"), IMAGE_ROOTS)
def test_an_image_root_may_be_reached(root, source, reached, refused):
    """The user names it, so it opens its own files to confined rows, and no others."""
    access = Access.of(("/elsewhere",), confined=True, image_root=root)
    open_to_all = Access((), ("/elsewhere",), image_root=root)
    for path in (*reached, *refused):
        is_reached = path in reached
        assert (access.refusal(path, source) is None) == is_reached
        assert (open_to_all.refusal(path, source) is None) == is_reached
        if path.startswith("https://"):
            assert access.may_be_private(path, source, redirected=False) == is_reached
            assert access.may_get_credentials(path, source) == is_reached


@pytest.mark.parametrize("root", ["gs://photos/../b", "zip://a::/b", "https://me:secret@host/a"])
def test_an_ambiguous_image_root_is_an_error(root):
    """Its secrets are not shown."""
    with pytest.raises(UsageError, match=r"^image_root .*") as caught:
        Access(image_root=root)
    assert "secret" not in str(caught.value)


def test_links_do_not_lead_out(tmp_path):
    """Symlinks are resolved: of roots, of the import file's folder, and in the payload's path."""
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    (tmp_path / "real/in").symlink_to(tmp_path / "real")
    (tmp_path / "real/out").symlink_to("/etc")
    confined = Access(confined=True), f"{tmp_path}/alias/labels.csv"
    rooted = [(Access((), (f"{tmp_path}/{root}",)), LOCAL) for root in ("real", "alias")]
    for access, source in (confined, *rooted):
        for inside in ("alias/1.jpg", "real/1.jpg", "real/in/1.jpg"):
            assert access.refusal(f"{tmp_path}/{inside}", source) is None
        assert access.refusal(f"{tmp_path}/alias/out/passwd", source) is not None


# import file, payload, roots, what the refusal names
REFUSALS = [
    (LOCAL, "https://host/1.jpg", (), "a local import file may not reach https://; --allow https"),
    (GS, "s3://b/1.jpg", (), "an import file on gs:// may not reach s3://; --allow s3"),
    (GS, "/etc/passwd", ("/etc",), "an import file on gs:// reach no local files"),
    (LOCAL, "/b/1.jpg", ("/a", "gs://b/c"), "outside of /a, gs://b/c; "),
]


@pytest.mark.parametrize(("source", "path", "roots", "named"), REFUSALS)
def test_refusals_name_the_remedy(source, path, roots, named):
    """The message contains the option to add, and the policy for requests returns the same."""
    access = Access((), roots)
    message = access.refusal(path, source)
    assert message is not None
    assert named in message
    if path.startswith("https"):
        assert RowUrlPolicy(access, source).refusal(path) == message


# import file, uri, path of the payload
RESOLVED = [
    (LOCAL, "GS://Bucket/A.jpg", "gs://Bucket/A.jpg"),
    (LOCAL, "A/B://1.jpg", "/data/A/B://1.jpg"),
    ("gs://b/d/a?b/labels.csv", "1.jpg", "gs://b/d/a?b/1.jpg"),
    ("https://h/d/labels.csv?sig=a/b", "1.jpg", "https://h/d/1.jpg"),
    ("https://h/d/labels.csv#a/b", "../1.jpg", "https://h/1.jpg"),
    ("https://h?file=a/b.csv", "1.jpg", "https://h/1.jpg"),
]


@pytest.mark.parametrize(("source", "uri", "path"), RESOLVED)
def test_a_uri_is_resolved_against_its_import_file(source, uri, path):
    """A URL begins with a scheme, in any case; a query is not part of an import file's folder."""
    assert resolve(uri, source) == path


NO_SCHEMES = ["file", "local", "file://", "HTTPS://", "a b://"]
NO_ROOTS = ["", "gs://bucket/../other", "https://host/a?b", "https:///a", "zip://a::b", "\0"]


@pytest.mark.parametrize("given", [*NO_SCHEMES, *NO_ROOTS])
def test_what_cannot_be_allowed_is_shown(given):
    """The local scheme is none for remote import files; a root is a clear folder or prefix."""
    error = error_of(UsageError, Access.of, ("https", "/a", given), confined=False, image_root="")
    assert f"(got {masked(repr(given.removesuffix('://')))})" in str(error)


@pytest.mark.parametrize("word", ["images", "data2", "gopher"])
def test_a_word_that_may_be_a_folder_or_a_scheme(word):
    """A folder that was meant to restrict rows is never taken for a scheme."""
    with pytest.raises(UsageError, match=rf"write \./{word} .* or {word}://"):
        make_options({"allow": word})
    assert make_options({"allow": f"./{word}"}).access.prefixes == (os.path.abspath(word),)
    assert make_options({"allow": f"{word}://"}).access.schemes == (word,)


_HOST = "https://host/images"
_ESCAPED = r"""%2e%2e/ ..%2f ..%5c ..;/ ..;v=1/ %252e%252e/ %25252e./ ..%252f ..%20/ %20../ ..%00/
    ..%09/ ..%3b/ %c0%ae%c0%ae/ %u002e%u002e/"""

# root, payloads under it, payloads outside
ROOTS = [
    ("/data/images", ["/data/images/1.jpg", "file:///data/images/1.jpg"], ["/data/images2/1.jpg"]),
    ("/data/images", ["/data/other/../images/1.jpg"], ["/data/images/../secret.jpg"]),
    ("/data/images", [], ["gs://data/images/1.jpg", "/data/images/1\0.jpg"]),
    ("/data/images/", ["/data/images/a/1.jpg"], []),
    ("file:///data/images", ["/data/images/1.jpg"], []),
    ("/", ["/etc/passwd"], []),
    ("gs://bucket", ["gs://bucket/1.jpg", "gcs://bucket/1.jpg"], ["gs://bucket2/1.jpg"]),
    ("gs://bucket", [], ["s3://bucket/1.jpg"]),
    ("gs://bucket/images", ["gs://bucket/images/1.jpg"], ["gs://bucket/images-private/1.jpg"]),
    ("gs://bucket/images", [], ["gs://bucket/images/../1.jpg", "gs://bucket/images/./1.jpg"]),
    (_HOST, [f"{_HOST}/1.jpg?size=3", "https://HOST:443/images/1.jpg"], []),
    (_HOST, [f"{_HOST}/a;v=1/..1.jpg", f"{_HOST}/100%25.jpg"], []),
    (_HOST, [], ["https://host:8443/images/1.jpg", "http://host/images/1.jpg"]),
    (_HOST, [], ["https://host.evil.example/images/1.jpg", "https://host:x/images/1.jpg"]),
    (_HOST, [], ["https://host@evil.example/images/1.jpg", "https://ho st/images/1.jpg"]),
    (_HOST, [], ["https://evil.example\\@host/images/1.jpg", "https://host/images\\1.jpg"]),
    (_HOST, [], [f"{_HOST}/{escaped}secret.jpg" for escaped in _ESCAPED.split()]),
    (_HOST, [], [f"{_HOST}%2fsecret.jpg", f"{_HOST}/\uff0e\uff0e/secret.jpg"]),
    (_HOST, [], [f"{_HOST}/%{'25' * 9}2e.jpg"]),
    ("https://host/a b", ["https://host/a%20b/1.jpg"], []),
    ("https://host/a//", ["https://host/a/1.jpg"], []),
    ("https://host/%61", ["https://host/a/1.jpg"], []),
    ("gs://bucket/a/", ["gs://bucket/a/1.jpg"], []),
    ("gs://bucket/a%20b", [], ["gs://bucket/a b/1.jpg"]),
    ("gs://bucket/a", ["gs://bucket/a/b://1.jpg"], ["gs://bucket//a/1.jpg"]),
    ("abfs://box/a", ["abfss://box/a/1.jpg"], []),
    ("az://box/a", ["abfs://box/a/1.jpg"], []),
    ("s3://b/a", ["s3a://b/a/1.jpg"], []),
]


@pytest.mark.parametrize(("root", "inside", "outside"), ROOTS)
def test_roots(root, inside, outside):
    """Prefixes are compared name by name, after links and dots are resolved or refused."""
    access = Access(("http", "https"), ("/somewhere/else", root))
    assert [path for path in (*inside, *outside) if access.refusal(path, LOCAL) is None] == inside


@pytest.mark.parametrize("value", ["", " , ", [""], ("", " ")])
def test_given_but_empty(value, caplog):
    """An unset variable lifts no restriction, neither in Python nor on the command line."""
    with pytest.raises(UsageError, match="allow"):
        make_options({"allow": value})
    with pytest.raises(UsageError, match="allow"):
        _ = ConvertOptions(allow=("",)).access
    assert main(["check", "labels.csv", "--allow", ""]) == UsageError.exit_code
    assert "allow" in caplog.text


@pytest.mark.parametrize("value", ["none", ["none"], (), []])
def test_no_restriction_can_be_said(value):
    """``none`` and an empty list are the default."""
    assert make_options({"allow": value}) == ConvertOptions()


NAMES = st.sampled_from(["a", "b", "a b", "..", ".", "", "a.b", "…", "%2e%2e", "a%2Fb"])
PATHS = st.lists(NAMES, max_size=6).map("/".join)


@given(root=st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2), path=PATHS)
@example(root=["a"], path="a/../b")
def test_nothing_escapes_a_local_root(root, path):
    """Any allowed path is inside the root after normalisation."""
    folder = "/nowhere/" + "/".join(root)
    if Access((), (folder,)).refusal(f"/nowhere/{path}", LOCAL) is None:
        assert (os.path.normpath(f"/nowhere/{path}") + "/").startswith(f"{folder}/")


@given(
    scheme=st.sampled_from(["gs", "s3", "https"]),
    root=st.lists(st.sampled_from(["a", "b"]), max_size=2),
    path=PATHS,
)
def test_nothing_escapes_a_url_root(scheme, root, path):
    """An allowed URL starts with the root, both literally and with dots resolved."""
    prefix = "/".join([f"{scheme}://host", *root])
    url = f"{scheme}://host/{path}"
    if Access(("https",), (prefix,)).refusal(url, LOCAL) is not None:
        return
    assert (url.rstrip("/") + "/").startswith(f"{prefix}/")
    assert (os.path.normpath("/" + path) + "/").startswith(
        "/".join(["", *root, ""]).replace("//", "/")
    )


@given(
    scheme=st.from_regex(r"[a-z][a-z0-9+.-]{0,8}", fullmatch=True),
    rest=st.text("ab3é:/@?#%.\\ \0", max_size=12),
)
def test_only_object_stores_are_open(scheme, rest):
    """By default, rows of a local import file reach no schemes except object stores'."""
    url = f"{scheme}://{rest}"
    if Access().refusal(url, LOCAL) is None:
        assert scheme in (*OBJECT_STORES, "file")
    assert Access().refusal(resolve(rest, GS), GS) is None or "://" in rest or rest[:1] == "/"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.0", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0",
        "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe", "2002:7f00:1::",
        "::127.0.0.1", "fec0::1", "64:ff9b:1::a9fe:a9fe",
    ],
)  # fmt: skip
def test_no_private_address_is_public(address):
    """Loopback, private and link-local addresses are not public, nor are their embedded forms."""
    assert not is_public(address)


@given(st.ip_addresses(v=4))
def test_an_address_in_another_form(address):
    """An IPv4 address is as public as its IPv6 forms; others are public too."""
    assert is_public(str(address)) == is_public(str(IPv6Address((0xFFFF << 32) | int(address))))
    assert is_public("8.8.8.8")
    assert is_public("2001:4860:4860::8888")


_NAMED = Access(("http",), ("http://intranet/a",))

# import file, access, URL, whether private directly, by a redirect, whether with credentials
PRIVATE = [
    (LOCAL, Access(("http",)), "http://intranet/1.jpg", True, False, False),
    (LOCAL, Access(("http",)), "https://intranet/1.jpg", True, False, False),
    (LOCAL, _NAMED, "http://intranet/a/1.jpg", True, True, True),
    (LOCAL, _NAMED, "http://intranet/b/1.jpg", False, False, False),
    (HTTPS, Access(), WEB, True, False, True),
    (HTTPS, Access(), "https://intranet/1.jpg", False, False, False),
    (HTTPS, Access(("https",)), "https://intranet/1.jpg", True, False, False),
    (HTTPS, Access((), ("/a",), confined=True), WEB, True, False, True),
    (HTTPS, Access((), ("/a",)), WEB, False, False, True),
    (GS, Access(("https",)), WEB, True, False, False),
    (HTTPS, Access(("http",)), "http://web.example:443/1.jpg", True, False, False),
    (GS, replace(_NAMED, confined=True), "http://intranet/a/1.jpg", True, True, True),
]


@pytest.mark.parametrize(("source", "access", "url", "directly", "redirected", "sent"), PRIVATE)
def test_private_servers_and_credentials(source, access, url, directly, redirected, sent):
    """The user allows the scheme or names a prefix; after a redirect, only the prefix counts.

    Credentials go to servers that the user named and the import file's own, and to no redirect.
    """
    policy = RowUrlPolicy(access, source)
    assert policy.may_be_private(url, redirected=False) == directly
    assert policy.may_be_private(url, redirected=True) == redirected
    assert policy.may_get_credentials(url, redirected=False) == sent
    assert not policy.may_get_credentials(url, redirected=True)


def test_a_relative_root_is_resolved_once(tmp_path, monkeypatch):
    """A folder means the same in a worker that runs elsewhere, and in dataset.json."""
    monkeypatch.chdir(tmp_path)
    options = make_options({"allow": ["./images", "../x", "gs://bucket/a", "file:///data"]})
    sent = pickle.loads(pickle.dumps(options))
    monkeypatch.chdir("/")
    parent = tmp_path.parent
    assert sent.allow == (f"{tmp_path}/images", f"{parent}/x", "gs://bucket/a", "/data")
    assert sent.access.refusal(f"{tmp_path}/images/1.jpg", "/a.csv") is None
    assert sent.access.refusal("/images/1.jpg", "/a.csv") is not None


def test_a_linked_import_file(tmp_path):
    """In a pipeline step, an import file may not be a link that leaves its folder."""
    for name in ("inside/rows.csv", "outside/rows.csv"):
        write_file(tmp_path / name, "TRAIN,one text,secret\nTRAIN,two texts,x\n")
    (tmp_path / "inside/near.csv").symlink_to("rows.csv")
    (tmp_path / "inside/far.csv").symlink_to(tmp_path / "outside/rows.csv")
    (tmp_path / "folder").symlink_to(tmp_path / "inside")

    options = make_options({"task": "text_classification"})
    for path in ("inside/near.csv", "folder/near.csv", "folder/rows.csv"):
        open_source(str(tmp_path / path), replace(options, confined=True))
    far = str(tmp_path / "inside/far.csv")
    open_source(far, options)
    with pytest.raises(SourceError, match=rf"far\.csv: .*allow={tmp_path}/outside"):
        open_source(far, replace(options, confined=True))
    open_source(far, replace(options, confined=True, allow=(f"{tmp_path}/outside",)))
