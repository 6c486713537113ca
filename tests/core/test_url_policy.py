from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.network.url_policy import (
    AddressPolicy,
    BadAddress,
    NotAllowed,
    Resolver,
    check_uri,
    file_path,
    is_in_object_store,
    is_public,
    may_name_loopback,
    reachable_addresses,
    resolve,
)

STRICT = AddressPolicy()


def resolver_returning(*answers: list[str]) -> Resolver:
    """Return a resolver that returns these addresses call by call, and the last ones from then on."""
    following = list(answers)

    def resolver(host: str, port: int) -> list[str]:
        return following.pop(0) if len(following) > 1 else following[0]

    return resolver


public_resolver = resolver_returning(["93.184.215.14"])


PORT = 18999
HOSTILE = [
    f"http://127.0.0.1:{PORT}/",
    f"https://127.0.0.1:{PORT}/",
    f"HTTP://127.0.0.1:{PORT}/",
    f"http://localhost:{PORT}/",
    f"http://LOCALHOST:{PORT}/",
    f"http://localhost.:{PORT}/",
    f"http://127.1:{PORT}/",
    f"http://127.0.1:{PORT}/",
    f"http://0:{PORT}/",
    f"http://0.0.0.0:{PORT}/",
    f"http://2130706433:{PORT}/",
    f"http://0x7f000001:{PORT}/",
    f"http://0x7f.1:{PORT}/",
    f"http://0177.0.0.1:{PORT}/",
    f"http://017700000001:{PORT}/",
    f"http://127.127.127.127:{PORT}/",
    f"http://１２７.0.0.1:{PORT}/",
    f"http://127。0。0。1:{PORT}/",
    f"http://ⓛocalhost:{PORT}/",
    f"http://[::1]:{PORT}/",
    f"http://[::]:{PORT}/",
    f"http://[0:0:0:0:0:0:0:1]:{PORT}/",
    f"http://[::ffff:127.0.0.1]:{PORT}/",
    f"http://[::ffff:7f00:1]:{PORT}/",
    f"http://[::127.0.0.1]:{PORT}/",
    f"http://[64:ff9b::127.0.0.1]:{PORT}/",
    f"http://[64:ff9b:1::1]:{PORT}/",
    f"http://[2002:7f00:1::]:{PORT}/",
    f"http://[fec0::1]:{PORT}/",
    f"http://[fe80::1]:{PORT}/",
    f"http://[fe80::1%25lo]:{PORT}/",
    f"http://[fd00::1]:{PORT}/",
    f"http://[ff02::1]:{PORT}/",
    f"http://a@127.0.0.1:{PORT}/",
    f"http://a:b@127.0.0.1:{PORT}/",
    f"http://example.org@127.0.0.1:{PORT}/",
    f"http://127.0.0.1:{PORT}\\@example.org/",
    f"http://example.org\\@127.0.0.1:{PORT}/",
    "https://…presigned…/chart.png",  # normalized to dots, which no name server takes
    f" http://127.0.0.1:{PORT}/",
    f"ht\ttp://127.0.0.1:{PORT}/",
    f"http://127.0.0.1:{PORT}/\n",
    f"http://127.0.0.1%2f@example.org:{PORT}/",
    f"http://127.0.0.1%00.example.org:{PORT}/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://100.64.0.1/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://192.0.0.192/",
    "http://",
    "http:///path",
    "http://[::1/",
    "http://example.org:99999/",
    "FILE:///etc/passwd",
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "gopher://127.0.0.1:70/",
    "ftp://127.0.0.1/",
    "dict://127.0.0.1:11211/",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "resource://alice/r_1",
    "//127.0.0.1/",
    "/etc/passwd",
    "minio://user:password@bucket/file",
    "minio:///file",
    "",
    "http://example.org/" + "x" * 2048,
]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A socket that accepts connections to the port of the hostile addresses."""
    with socket.create_server(("127.0.0.1", PORT)) as server:
        server.settimeout(0)
        yield server


@pytest.mark.parametrize("uri", HOSTILE)
def test_hostile_addresses_are_refused_without_a_connection(uri: str, listener: socket.socket) -> None:
    with pytest.raises(BadAddress):
        check_uri(uri, STRICT)
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize(
    "uri",
    [
        "https://minio.example/presigned/chart.png?X-Amz-Signature=abc%20d",
        "http://example.org:8080/a?b=c#d",
        "HTTPS://Example.org/",
        "https://例え.example/",
    ],
)
def test_public_addresses_are_returned_unchanged(uri: str) -> None:
    assert check_uri(uri, STRICT, resolver=public_resolver) == uri


@pytest.mark.parametrize(
    "host",
    ["minio", "ip6-localhost", "a.localhost", "localhost.localdomain", "metadata.internal", "nas.local", "x.lan."],
)
def test_names_of_local_networks_are_refused_though_the_gateway_cannot_resolve_them(host: str) -> None:
    """EverOS, which fetches the address, may be in a network that can."""
    unresolved = resolver_returning([])
    with pytest.raises(BadAddress, match="private network"):
        check_uri(f"http://{host}/secret", STRICT, resolver=unresolved)
    allowed = AddressPolicy(allowed_hosts=frozenset({host.rstrip(".")}))
    assert check_uri(f"http://{host}/file", allowed, resolver=unresolved)
    assert check_uri("https://gone.example/", STRICT, resolver=unresolved)


def test_a_host_with_one_private_address_is_refused() -> None:
    with pytest.raises(BadAddress, match="private network"):
        check_uri("http://example.org/", STRICT, resolver=resolver_returning(["93.184.215.14", "10.0.0.1"]))


def test_a_host_is_resolved_again_for_each_check() -> None:
    resolver = resolver_returning(["93.184.215.14"], ["127.0.0.1"])
    assert check_uri("http://rebind.example/", STRICT, resolver=resolver)
    with pytest.raises(BadAddress):
        reachable_addresses("http://rebind.example/", STRICT, resolver=resolver)


def test_reachable_addresses_are_the_checked_ones() -> None:
    assert reachable_addresses("http://example.org/", STRICT, resolver=public_resolver) == ["93.184.215.14"]


def test_a_host_that_does_not_resolve_is_accepted() -> None:
    assert check_uri("https://nowhere.invalid/a.pdf", STRICT, resolver=resolver_returning([]))


def test_an_allowed_host_may_have_a_private_address() -> None:
    policy = AddressPolicy(allowed_hosts=frozenset({"minio.internal"}))
    private = resolver_returning(["10.0.0.7"])
    assert check_uri("http://MINIO.internal:9000/a", policy, resolver=private)
    with pytest.raises(BadAddress):
        check_uri("http://minio.internal.example/a", policy, resolver=private)


OUTSIDE = {
    "elsewhere": "file:///etc/passwd",
    "the root's parent": "file://{parent}/secret.txt",
    "nothing": "file:///nowhere/at/all",
    "upper case": "FILE:///etc/passwd",
    "mixed case": "fIlE:///etc/passwd",
    "one slash": "file:/etc/passwd",
    "no slash": "file:etc/passwd",
    "relative": "file:a.txt",
    "four slashes": "file:///{root}/a.txt",
    "five slashes": "file:////{root}/a.txt",
    "encoded double slash": "file:///%2f{root}/a.txt",
    "parent": "file://{root}/../secret.txt",
    "parent inside": "file://{root}/../open/a.txt",
    "encoded dots": "file://{root}/%2e%2e/secret.txt",
    "half encoded dots": "file://{root}/.%2E/secret.txt",
    "encoded slash": "file://{root}/..%2fsecret.txt",
    "encoded twice": "file://{root}/%252e%252e/secret.txt",
    "encoded thrice": "file://{root}/%25252e%25252e/secret.txt",
    "overlong dots": "file://{root}/%c0%ae%c0%ae/secret.txt",
    "full-width dots": "file://{root}/\uff0e\uff0e\uff0fsecret.txt/../../secret.txt",
    "backslashes": "file://{root}/..\\secret.txt",
    "all backslashes": "file:\\\\\\etc\\passwd",
    "encoded backslash": "file://{root}/..%5csecret.txt",
    "nul": "file://{root}/a.txt%00",
    "line feed": "file://{root}/a.txt%0a",
    "tab in the scheme": "fi\tle:///etc/passwd",
    "leading space": " file:///etc/passwd",
    "leading control": "\x01file:///etc/passwd",
    "host": "file://elsewhere{root}/a.txt",
    "loopback host": "file://127.0.0.1{root}/a.txt",
    "host with port": "file://localhost:80{root}/a.txt",
    "user": "file://me@localhost{root}/a.txt",
    "encoded host": "file://localhos%74{root}/a.txt",
    "query": "file://{root}/a.txt?/../../secret.txt",
    "fragment": "file://{root}/a.txt#/../../secret.txt",
    "link to a file": "file://{root}/link.txt",
    "link to a folder": "file://{root}/up/secret.txt",
    "link that loops": "file://{root}/loop",
    "beginning of the name": "file://{root}-too/a.txt",
    "home": "file:///~/a.txt",
    "netdoc": "netdoc:///etc/passwd",
    "jar": "jar:file:///etc/passwd!/",
    "local file": "local_file:///etc/passwd",
}
INSIDE = ["{root}/a.txt", "localhost{root}/a.txt", "LOCALHOST{root}/a.txt", "{root}/%61.txt", "{root}/./sub//b%20c.txt"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An allowed root next to a secret file, with symbolic links that lead out of it."""
    return file_root(tmp_path)


def file_root(parent: Path) -> Path:
    root = parent / "open"
    (root / "sub").mkdir(parents=True)
    for path in (root / "a.txt", root / "sub" / "b c.txt", parent / "secret.txt"):
        path.write_text("a secret")
    (parent / "open-too").mkdir()
    (parent / "open-too" / "a.txt").write_text("a secret")
    (root / "link.txt").symlink_to(parent / "secret.txt")
    (root / "up").symlink_to(parent)
    (root / "loop").symlink_to(root / "loop")
    return root


@pytest.mark.parametrize("uri", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_files_outside_the_roots_are_refused_in_every_spelling(folder: Path, uri: str) -> None:
    for roots in ((folder,), ()):
        with pytest.raises(BadAddress):
            check_uri(uri.format(root=folder, parent=folder.parent), AddressPolicy(file_roots=roots))


@pytest.mark.parametrize("rest", INSIDE)
def test_files_below_a_root_are_allowed(folder: Path, rest: str) -> None:
    uri = f"file://{rest.format(root=folder)}"
    policy = AddressPolicy(file_roots=(folder.parent / "other", folder))
    assert check_uri(uri, policy) == uri
    assert file_path(uri, policy) in {folder / "a.txt", folder / "sub" / "b c.txt"}
    with pytest.raises(BadAddress, match="a folder that the operator allows"):
        check_uri(uri, AddressPolicy())


def test_a_root_may_be_a_symbolic_link(folder: Path) -> None:
    (folder.parent / "alias").symlink_to(folder)
    policy = AddressPolicy(file_roots=(folder.parent / "alias",))
    assert file_path(f"file://{folder.parent}/alias/a.txt", policy) == folder / "a.txt"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("93.184.215.14", True),
        ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", True),
        ("::ffff:93.184.215.14", True),
        ("64:ff9b::93.184.215.14", True),
        ("2002:5db8:d70e::1", True),
        ("2002:a00:1::", False),
        ("64:ff9b::10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("2001::1", False),
        ("2001:db8::1", False),
        ("192.88.99.1", False),
    ],
)
def test_wrapped_addresses_are_public_if_the_inner_address_is(address: str, expected: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is expected


def test_the_policy_is_read_from_the_settings(settings: Any) -> None:
    settings.MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS = ["Minio.Internal."]
    settings.MEMORY_GATEWAY_FILE_URI_ROOTS = [Path("/srv/shared")]
    settings.MEMORY_GATEWAY_EXTERNAL_BUCKETS = ["documents"]
    expected = AddressPolicy((Path("/srv/shared"),), frozenset({"minio.internal"}), frozenset({"documents"}))
    assert AddressPolicy.from_settings() == expected
    settings.MEMORY_GATEWAY_FILE_URI_ROOTS = []
    assert AddressPolicy.from_settings().file_roots == ()


@pytest.mark.parametrize(
    ("uri", "expected"),
    [("minio://b/k", True), ("S3://b/k", True), ("https://minio.example/b/k", False), ("file:///b/k", False)],
)
def test_object_store_addresses_are_recognized(uri: str, expected: bool) -> None:
    assert is_in_object_store(uri) is expected


def test_the_system_resolver_returns_no_address_for_an_invalid_name() -> None:
    assert "127.0.0.1" in resolve("127.0.0.1", 80)
    assert resolve("nowhere.invalid", 80) == []


BUCKETS = AddressPolicy(buckets=frozenset({"documents"}))
OTHER_BUCKETS = (
    "s3://files/a.txt",
    "S3://files/a.txt",
    "MiniO://files/a.txt",
    "s3://Documents/a.txt",
    "s3://documents./a.txt",
    "s3://documents:443/a.txt",
    "s3://%64ocuments/a.txt",
    "s3://documents.files/a.txt",
    "s3://files/../documents/a.txt?x=1#f",
    "s3://files",
)


@pytest.mark.parametrize("uri", OTHER_BUCKETS)
def test_other_buckets_are_not_allowed_in_any_spelling(uri: str) -> None:
    for policy in (BUCKETS, AddressPolicy()):
        with pytest.raises(NotAllowed, match="MEMORY_GATEWAY_EXTERNAL_BUCKETS"):
            check_uri(uri, policy)


@pytest.mark.parametrize(
    "rest",
    [
        "",
        "/",
        "/../files/a.txt",
        "/x/../../files/a.txt",
        "/./a.txt",
        "/%2e%2e/files/a.txt",
        "/..%2ffiles/a.txt",
        "/%252e%252e/files/a.txt",
        "/a.txt%00",
        "/a%5c..%5cb.txt",
        "/%ff.txt",
        "/a.txt?versionId=1",
        "/a.txt#1",
    ],
)
def test_a_key_in_an_allowed_bucket_is_plain(rest: str) -> None:
    for scheme in ("s3", "MINIO"):
        with pytest.raises(BadAddress, match="must name an object") as raised:
            check_uri(f"{scheme}://documents{rest}", BUCKETS)
        assert not isinstance(raised.value, NotAllowed)


@pytest.mark.parametrize("rest", ["/a.txt", "/%E5%90%88/a%20b%3F.txt", "/100%25.txt", "//a..b/...txt"])
def test_a_key_in_an_allowed_bucket_is_allowed(rest: str) -> None:
    assert check_uri(f"s3://documents{rest}", BUCKETS)


@pytest.mark.parametrize("listed", ["files", "Files", "FILES."])
def test_the_own_bucket_is_never_allowed(settings: Any, listed: str) -> None:
    settings.MEMORY_GATEWAY_STORAGE_URL = "s3://files/gateway"
    settings.MEMORY_GATEWAY_EXTERNAL_BUCKETS = [listed, "documents"]
    policy = AddressPolicy.from_settings()
    assert check_uri("s3://documents/a.txt", policy)
    with pytest.raises(NotAllowed):
        check_uri(f"s3://{listed}/gateway/a.txt", policy)


@pytest.mark.parametrize(
    ("host", "token", "expected"),
    [
        ("127.0.0.1", "", True),
        ("::1", "", True),
        ("localhost", "", True),
        ("127.0.0.1", "a token", False),
        ("::", "a token", False),
        ("::", "", False),
        ("10.0.0.5", "", False),
    ],
)
def test_loopback_is_for_gateways_on_loopback_without_token(
    settings: Any, host: str, token: str, expected: bool
) -> None:
    settings.MEMORY_GATEWAY_HOST, settings.MEMORY_GATEWAY_PROVISIONING_TOKEN = host, token
    assert may_name_loopback() is expected
