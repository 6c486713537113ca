"""`POST /resources/external`."""

from __future__ import annotations

import secrets
import time
from typing import Any

import pytest

from tests.contract.caller import TIMEOUT_SECONDS, Caller, Gateway, field_errors, require_shape
from tests.contract.test_resources import PDF, RESOURCE
from tests.web import page

pytestmark = pytest.mark.usefixtures("writes")

SOURCE = "minio://beaver-user-files/users/u_123/outputs/contract.pdf"


@pytest.fixture
def presigned(gateway: Gateway) -> str:
    """An address at which either engine can read the file now."""
    path = f"/{secrets.token_hex(4)}/contract.pdf"
    gateway.web.pages[path] = page(PDF, content_type="application/pdf")
    return gateway.web.url(f"{path}?X-Amz-Signature=s3cret")


def register(caller: Caller, presigned: str, *, status: int = 200, **values: Any) -> Any:
    body = {"filename": "contract.pdf", "mime_type": "application/pdf", "source_uri": SOURCE, "ingest_uri": presigned}
    return caller.post("/resources/external", status=status, **{**body, **values})


def test_a_registered_file_is_extracted_and_answers_as_documented(alice: Caller, presigned: str) -> None:
    answer = register(alice, presigned)
    assert set(answer) == {"resource_id", "session_id", "uri", "status"}
    assert answer["session_id"] == f"resource:{alice.user_id}:{answer['resource_id']}"
    assert answer["uri"] == f"resource://{alice.user_id}/{answer['resource_id']}"
    assert answer["status"] == "extracted"


def test_all_that_was_said_of_it_is_listed(alice: Caller, presigned: str) -> None:
    said: dict[str, Any] = {
        "size_bytes": 12345,
        "sha256": "ab" * 32,
        "title": "contract",
        "description": "outputs/contract.pdf",
    }
    answer = register(alice, presigned, **said)
    resource = alice.resource(answer["resource_id"])
    require_shape(resource, RESOURCE)
    assert {name: resource[name] for name in said} == said
    assert (resource["filename"], resource["mime_type"]) == ("contract.pdf", "application/pdf")
    assert (resource["content_type"], resource["uri"]) == ("pdf", answer["uri"])


def test_it_is_found_with_its_lasting_address_and_never_the_presigned_one(alice: Caller, presigned: str) -> None:
    answer = register(alice, presigned)
    search = alice.search("payment", scope=["resources"], method="keyword")
    [found] = [item for item in search["results"] if item["memory_type"] == "episode"]
    assert (found["resource_id"], found["resource_uri"]) == (answer["resource_id"], answer["uri"])
    assert found["attachments"] == [{"type": "pdf", "name": "contract.pdf", "internal_uri": SOURCE}]
    assert "s3cret" not in str(search) + str(alice.get("/resources"))


def test_the_same_digest_is_the_same_resource(alice: Caller, presigned: str) -> None:
    first = register(alice, presigned, sha256="cd" * 32)
    assert register(alice, presigned, sha256="cd" * 32) == first


def test_the_type_is_inferred_where_nothing_is_said(alice: Caller, presigned: str) -> None:
    answer = register(alice, presigned, mime_type=None, content_type="doc")
    assert alice.resource(answer["resource_id"])["content_type"] == "pdf"


def test_a_source_that_can_be_read_needs_no_other_address(alice: Caller, gateway: Gateway) -> None:
    address = f"/{secrets.token_hex(4)}/contract.pdf"
    gateway.web.pages[address] = page(PDF, content_type="application/pdf")
    answer = register(alice, presigned="", ingest_uri=None, source_uri=gateway.web.url(address))
    assert answer["status"] == "extracted"


def test_a_local_file_is_read_where_the_operator_allows_it(alice: Caller, gateway: Gateway) -> None:
    file = gateway.files / "contract.pdf"
    file.write_bytes(PDF)
    answer = register(alice, presigned="", ingest_uri=None, source_uri=file.as_uri())
    assert answer["status"] == "extracted"
    [found] = alice.found("payment", scope=["resources"])
    assert found["attachments"][0]["internal_uri"] == file.as_uri()


def test_an_unreadable_source_fails_with_its_cause(alice: Caller, gateway: Gateway) -> None:
    answer = register(alice, gateway.web.url("/expired.pdf"))
    assert answer["status"] in {"failed", "ingesting"}
    resource = alice.resource(answer["resource_id"])
    until = time.monotonic() + TIMEOUT_SECONDS  # the first EverOS takes seconds to say no, and is asked three times
    while resource["status"] == "ingesting" and time.monotonic() < until:
        time.sleep(1)
        resource = alice.resource(answer["resource_id"])
    assert resource["status"] == "failed"
    assert resource["error_message"]


def test_an_unsupported_object_store_fails_with_its_cause(alice: Caller) -> None:
    answer = register(alice, presigned="", ingest_uri=None)
    assert answer["status"] == "failed"
    assert alice.resource(answer["resource_id"])["error_message"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("filename", None),
        ("filename", ""),
        ("source_uri", None),
        ("source_uri", "ftp://example.org/a.pdf"),
        ("ingest_uri", "http://169.254.169.254/latest/meta-data"),
        ("size_bytes", -1),
        ("sha256", 123),
        ("content_type", "video"),
    ],
)
def test_a_wrong_field_is_422_by_name(alice: Caller, presigned: str, field: str, value: Any) -> None:
    assert field_errors(register(alice, presigned, status=422, **{field: value})) == [field]
    assert alice.get("/resources") == {"resources": []}


def test_a_type_that_is_not_allowed_is_415(alice: Caller, presigned: str) -> None:
    register(alice, presigned, status=415, filename="setup.exe", mime_type="application/x-msdownload")
