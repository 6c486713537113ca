"""Authentication by header, body, form and query, and by combinations of these."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request

from accounts import services
from accounts.api.authentication import UserKeyAuthentication
from accounts.models import MemoryUser, UserKey
from core.errors import BadRequest, InvalidInput, Unauthenticated
from core.rest import JsonParser
from tests.conftest import Person

URL = "/users/me/keys"
UNKNOWN_KEY = "uk_" + "x" * 43

pytestmark = pytest.mark.django_db


def get(query: dict[str, str] | None = None, **headers: str) -> Any:
    return Client().get(URL, query, headers=headers)


def post(body: dict[str, Any], **headers: str) -> Any:
    return Client().post(URL, body, content_type="application/json", headers=headers)


def test_the_header_authenticates(alice: Person) -> None:
    response = get(Authorization=f"Bearer {alice.user_key}")
    assert response.status_code == 200
    assert "Deprecation" not in response


@pytest.mark.parametrize("scheme", ["bearer", "BEARER"])
def test_the_scheme_may_have_any_case(alice: Person, scheme: str) -> None:
    assert get(Authorization=f"{scheme} {alice.user_key}").status_code == 200


def test_credentials_in_body_and_query_authenticate_and_are_deprecated(alice: Person) -> None:
    for response in (get(alice.credentials), post(alice.credentials)):
        assert response.status_code == 200
        assert "Deprecation" in response


def test_user_id_and_key_may_be_in_different_parts_of_the_request(alice: Person) -> None:
    response = Client().post(
        f"{URL}?user_id={alice.user_id}", {"user_key": alice.user_key}, content_type="application/json"
    )
    assert response.status_code == 200


def test_a_request_without_credentials_is_401_and_names_the_header() -> None:
    response = get()
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == "Bearer"
    assert "Authorization: Bearer uk_" in response.json()["detail"]


def test_an_operators_session_does_not_authenticate(admin_client: Client) -> None:
    assert admin_client.get(URL).status_code == 401


def wrong_credentials(alice: Person, bob: Person) -> list[dict[str, str]]:
    return [
        {"user_id": "nobody", "user_key": UNKNOWN_KEY},
        {"user_id": "nobody", "user_key": alice.user_key},
        {"user_id": bob.user_id, "user_key": alice.user_key},
        {"user_id": alice.user_id, "user_key": UNKNOWN_KEY},
        {"user_id": alice.user_id, "user_key": ""},
        {"user_id": alice.user_id, "user_key": alice.user_key[:-1]},
        {"user_id": alice.user_id, "user_key": alice.user_key + "\n"},
        {"user_id": alice.user_id.upper(), "user_key": alice.user_key},
        {"user_id": alice.user_id, "user_key": alice.user_key.upper()},
        {"user_id": alice.user_id, "user_key": "密钥"},
    ]


def test_all_wrong_credentials_get_the_same_response(alice: Person, bob: Person) -> None:
    answers = {(get(pair).status_code, get(pair).content) for pair in wrong_credentials(alice, bob)}
    answers |= {(post(pair).status_code, post(pair).content) for pair in wrong_credentials(alice, bob)}
    answers.add((401, get(Authorization=f"Bearer {UNKNOWN_KEY}").content))
    UserKey.objects.filter(user_id=alice.user_pk).update(revoked_at=timezone.now())
    UserKey.objects.filter(user_id=bob.user_pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    answers |= {(get(person.credentials).status_code, get(person.credentials).content) for person in (alice, bob)}
    assert len(answers) == 1
    assert answers.pop()[0] == 401


def test_a_user_id_next_to_the_header_must_be_that_of_the_key(alice: Person, bob: Person) -> None:
    header = f"Bearer {alice.user_key}"
    assert get({"user_id": alice.user_id}, Authorization=header).status_code == 200
    assert get({"user_id": bob.user_id}, Authorization=header).status_code == 403
    refused = post({"user_id": bob.user_id}, Authorization=header)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert "belongs to another user: leave out user_id" in refused.json()["detail"]
    assert bob.user_id not in refused.content.decode()
    assert get({"user_id": bob.user_id}, Authorization=f"Bearer {UNKNOWN_KEY}").status_code == 401
    assert (
        Client()
        .delete(
            f"{URL}/{uuid4()}",
            {"user_id": bob.user_id},
            content_type="application/json",
            headers={"Authorization": header},
        )
        .status_code
        == 403
    )


def test_different_credentials_in_one_request_are_refused(alice: Person, bob: Person) -> None:
    header = f"Bearer {alice.user_key}"
    assert get({"user_key": bob.user_key}, Authorization=header).status_code == 400
    assert post({"user_key": bob.user_key}, Authorization=header).status_code == 400
    repeated = f"{URL}?user_id={alice.user_id}&user_id={bob.user_id}&user_key={alice.user_key}"
    assert Client().get(repeated).status_code == 400
    response = Client().post(f"{URL}?user_id={bob.user_id}", alice.credentials, content_type="application/json")
    assert response.status_code == 400
    assert "user_id is given twice" in response.json()["detail"]


def test_repeating_the_key_of_the_header_is_allowed_and_deprecated(alice: Person) -> None:
    response = get(alice.credentials, Authorization=f"Bearer {alice.user_key}")
    assert response.status_code == 200
    assert "Deprecation" in response


@pytest.mark.parametrize("header", ["Bearer", "Bearer  ", "Basic YTpi", "uk_abc", "Bearer a b", "Bearer, x", "\x7f"])
def test_a_malformed_header_is_401_and_names_its_form(alice: Person, header: str) -> None:
    response = get(alice.credentials, Authorization=header)
    assert response.status_code == 401
    assert response.json()["detail"] == "The Authorization header must read: Bearer uk_…."


def test_a_key_outside_the_header_needs_a_user_id(alice: Person) -> None:
    response = get({"user_key": alice.user_key})
    assert response.status_code == 401
    assert "user_id" in response.json()["detail"]


@pytest.mark.parametrize("value", [5, ["a"], {"a": 1}, True])
def test_credentials_that_are_not_text_are_named_as_invalid(alice: Person, value: Any) -> None:
    response = post({"user_id": alice.user_id, "user_key": value})
    assert response.status_code == 422
    assert response.json()["errors"] == [{"field": "user_key", "message": "must be text"}]


def test_a_body_that_is_not_an_object_holds_no_credentials(alice: Person) -> None:
    assert Client().post(URL, [1], content_type="application/json").status_code == 401


def request_of(method: str, content_type: str, body: bytes, **headers: str) -> Request:
    django_request = RequestFactory().generic(method, "/any", body, content_type=content_type, headers=headers)
    return Request(django_request, parsers=[JsonParser(), MultiPartParser()])


def test_a_multipart_body_is_not_read_if_the_header_holds_the_key(alice: Person) -> None:
    header = f"Bearer {alice.user_key}"
    body = b"a file of many megabytes"
    request = request_of("POST", "multipart/form-data; boundary=x", body, Authorization=header)
    principal, _ = UserKeyAuthentication().authenticate(request) or (None, None)
    assert principal is not None
    assert principal.user_id == alice.user_id
    assert request._request.read() == body


def test_credentials_in_a_form_authenticate(alice: Person) -> None:
    django_request = RequestFactory().post("/any", alice.credentials)
    principal, _ = UserKeyAuthentication().authenticate(Request(django_request, parsers=[MultiPartParser()])) or (
        None,
        None,
    )
    assert principal is not None
    assert principal.key_id == UserKey.objects.get().pk


def test_a_form_field_with_two_values_is_refused(alice: Person) -> None:
    django_request = RequestFactory().post("/any", {"user_id": [alice.user_id, "bob"], "user_key": alice.user_key})
    with pytest.raises(BadRequest):
        UserKeyAuthentication().authenticate(Request(django_request, parsers=[MultiPartParser()]))


def test_a_file_as_user_key_is_refused(alice: Person) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="user_key"; filename="a"\r\n\r\nabc\r\n--x--\r\n'
    with pytest.raises((InvalidInput, Unauthenticated)):
        UserKeyAuthentication().authenticate(request_of("POST", "multipart/form-data; boundary=x", body))


def test_authentication_takes_one_statement(alice: Person) -> None:
    services.authenticate(alice.user_key)
    with CaptureQueriesContext(connection) as queries:
        principal = services.authenticate(alice.user_key, alice.user_id)
    assert len(queries) == 1
    assert (principal.user_pk, principal.user_id) == (alice.user_pk, alice.user_id)


def test_wrong_credentials_take_at_most_one_statement(alice: Person, bob: Person) -> None:
    services.authenticate(alice.user_key)
    for pair in wrong_credentials(alice, bob):
        with CaptureQueriesContext(connection) as queries, pytest.raises(Unauthenticated):
            services.authenticate(pair["user_key"], pair["user_id"])
        assert len(queries) <= 1


def test_the_last_use_is_written_once_a_minute(alice: Person) -> None:
    services.authenticate(alice.user_key)
    first = UserKey.objects.get().last_used_at
    assert first is not None
    services.authenticate(alice.user_key)
    assert UserKey.objects.get().last_used_at == first
    UserKey.objects.update(last_used_at=first - timedelta(seconds=61))
    services.authenticate(alice.user_key)
    last = UserKey.objects.get().last_used_at
    assert last is not None
    assert last >= first


def test_a_key_is_invalid_from_its_expiry_on(alice: Person) -> None:
    UserKey.objects.update(expires_at=timezone.now() + timedelta(seconds=60))
    services.authenticate(alice.user_key)
    UserKey.objects.update(expires_at=timezone.now())
    with pytest.raises(Unauthenticated):
        services.authenticate(alice.user_key)


def test_the_key_of_a_deleted_user_is_invalid_at_once(alice: Person) -> None:
    MemoryUser.objects.all().delete()
    with pytest.raises(Unauthenticated):
        services.authenticate(alice.user_key)
