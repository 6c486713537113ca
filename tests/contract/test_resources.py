"""`/resources`: upload, list, detail, content, delete."""

from __future__ import annotations

import hashlib
import re

import pytest
import requests

from tests.contract.caller import Caller, Gateway, field_errors, require_shape
from tests.contract.conftest import MAX_UPLOAD_BYTES
from tests.contract.test_users import TIME

pytestmark = pytest.mark.usefixtures("writes")

CONTRACT = "付款期限为收到发票后 30 天内。\n\nThe seller delivers in Hamburg.\n".encode()
PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj "
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj "
    b"4 0 obj<</Length 62>>stream\nBT /F1 12 Tf 20 200 Td (Payment is due within 30 days) Tj ET   \nendstream endobj "
    b"5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)
RESOURCE = {
    "resource_id": str,
    "user_id": str,
    "filename": str,
    "content_type": str,
    "mime_type": (str, type(None)),
    "uri": str,
    "session_id": str,
    "status": str,
    "title": (str, type(None)),
    "description": (str, type(None)),
    "created_at": str,
    "updated_at": str,
}


def test_an_upload_is_extracted_and_answers_as_documented(alice: Caller) -> None:
    answer = alice.upload(CONTRACT, title="合同文件", description="2026 年付款合同")
    assert set(answer) == {"resource_id", "session_id", "uri", "status"}
    assert re.fullmatch(r"r_[0-9a-f]+", answer["resource_id"])
    assert answer["session_id"] == f"resource:{alice.user_id}:{answer['resource_id']}"
    assert answer["uri"] == f"resource://{alice.user_id}/{answer['resource_id']}"
    assert answer["status"] == "extracted"


def test_a_resource_is_listed_and_shown_with_all_its_fields(alice: Caller) -> None:
    answer = alice.upload(CONTRACT, "合同.txt", title="合同文件", description="2026 年付款合同")
    [listed] = alice.get("/resources")["resources"]
    require_shape(listed, RESOURCE)
    assert {name: listed[name] for name in answer} == answer
    assert (listed["user_id"], listed["filename"]) == (alice.user_id, "合同.txt")
    assert (listed["content_type"], listed["mime_type"]) == ("text", "text/plain")
    assert (listed["title"], listed["description"]) == ("合同文件", "2026 年付款合同")
    assert TIME.fullmatch(listed["created_at"])
    assert TIME.fullmatch(listed["updated_at"])
    assert alice.resource(answer["resource_id"]) == listed


def test_title_and_description_may_be_left_out(alice: Caller) -> None:
    resource = alice.resource(alice.upload(CONTRACT)["resource_id"])
    assert (resource["title"], resource["description"]) == (None, None)


def test_a_user_without_uploads_gets_an_empty_list(alice: Caller) -> None:
    assert alice.get("/resources") == {"resources": []}
    assert alice.get("/resources/r_nothing") == {"resources": []}


def test_resources_of_others_look_like_none(alice: Caller, bob: Caller) -> None:
    resource_id = alice.upload(CONTRACT)["resource_id"]
    assert bob.get("/resources") == bob.get(f"/resources/{resource_id}") == {"resources": []}
    bob.get(f"/resources/{resource_id}/content", status=404)
    bob.delete(f"/resources/{resource_id}", status=404)
    assert alice.resource(resource_id)["status"] == "extracted"


@pytest.mark.parametrize(
    ("filename", "data", "mime_type", "content_type"),
    [
        ("notes.md", b"# Rent\n\nIt is 700 euros.", "text/markdown", "text"),
        ("rows.csv", b"what,price\nrent,700 euros\n", "text/csv", "text"),
        ("server.log", b"2026-06-10 started\n", "text/plain", "text"),
        ("page.html", b"<html><body><p>The rent is 700 euros.</p></body></html>", "text/html", "html"),
        ("contract.pdf", PDF, "application/pdf", "pdf"),
    ],
)
def test_every_type_has_its_content_type_and_is_extracted(
    alice: Caller, filename: str, data: bytes, mime_type: str, content_type: str
) -> None:
    resource = alice.resource(alice.upload(data, filename, mime_type)["resource_id"])
    assert (resource["content_type"], resource["status"]) == (content_type, "extracted")


def test_the_same_file_again_is_the_same_resource_in_its_scope_alone(alice: Caller, bob: Caller) -> None:
    first = alice.upload(CONTRACT)
    assert alice.upload(CONTRACT, "renamed.txt") == first
    assert alice.upload(CONTRACT, project_id="other")["resource_id"] != first["resource_id"]
    assert bob.upload(CONTRACT)["resource_id"] != first["resource_id"]
    assert len(alice.get("/resources")["resources"]) == 2


def test_a_file_above_the_limit_is_413_and_leaves_no_resource(alice: Caller) -> None:
    assert alice.upload(b"x" * (MAX_UPLOAD_BYTES + 1), status=413)["code"] == "too_large"
    assert alice.get("/resources") == {"resources": []}


def test_a_type_that_is_not_allowed_is_415_and_leaves_no_resource(alice: Caller) -> None:
    alice.upload(b"MZ\x90\x00\x03\x00\x00\x00", "setup.exe", "application/x-msdownload", status=415)
    assert alice.get("/resources") == {"resources": []}


def test_an_upload_without_a_file_is_422(alice: Caller, gateway: Gateway) -> None:
    form = {name: (None, value) for name, value in alice.credentials.items()}
    assert field_errors(gateway.ask("POST", "/resources", status=422, files=form)) == ["file"]


def test_the_file_comes_back_as_it_was(alice: Caller, gateway: Gateway) -> None:
    resource_id = alice.upload(CONTRACT, "合同.txt")["resource_id"]
    url = f"{gateway.url}/resources/{resource_id}/content"
    response = requests.get(url, params=alice.credentials, timeout=30)
    assert (response.status_code, response.content) == (200, CONTRACT)
    assert response.headers["Content-Disposition"].startswith("attachment")
    assert alice.resource(resource_id)["sha256"] == hashlib.sha256(CONTRACT).hexdigest()


def test_a_deleted_resource_is_gone_from_lists_and_search(alice: Caller) -> None:
    answer = alice.upload(CONTRACT)
    assert alice.found("Hamburg", scope=["resources"])
    deleted = alice.delete(f"/resources/{answer['resource_id']}")
    assert deleted == {**answer, "status": "deleted"}
    assert alice.get("/resources") == alice.get(f"/resources/{answer['resource_id']}") == {"resources": []}
    assert alice.found("Hamburg", scope=["resources", "all_user_memory"]) == []
    alice.get(f"/resources/{answer['resource_id']}/content", status=404)
    alice.delete(f"/resources/{answer['resource_id']}", status=404)


def test_a_deleted_file_can_be_uploaded_again(alice: Caller) -> None:
    first = alice.upload(CONTRACT)["resource_id"]
    alice.delete(f"/resources/{first}")
    again = alice.upload(CONTRACT)
    assert again["resource_id"] != first
    assert again["status"] == "extracted"
    assert [item["resource_id"] for item in alice.found("Hamburg", scope=["resources"])] == [again["resource_id"]]


def test_a_client_that_does_not_wait_gets_202(alice: Caller, gateway: Gateway) -> None:
    response = requests.post(
        f"{gateway.url}/resources",
        data=alice.credentials,
        files={"file": ("contract.txt", CONTRACT)},
        headers={"Prefer": "respond-async"},
        timeout=30,
    )
    assert response.status_code == 202
    assert response.json()["status"] in {"ingesting", "extracted"}
    assert response.headers["Location"] == f"/resources/{response.json()['resource_id']}"


def test_a_list_has_pages(alice: Caller) -> None:
    for number in range(3):
        alice.upload(f"File number {number}.".encode(), f"{number}.txt")
    first = alice.get("/resources", limit=2)
    rest = alice.get("/resources", limit=2, cursor=first["next_cursor"])
    names = [item["filename"] for page in (first, rest) for item in page["resources"]]
    assert names == ["2.txt", "1.txt", "0.txt"]
    assert rest["next_cursor"] is None
