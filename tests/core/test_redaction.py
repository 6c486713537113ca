"""Secrets are removed from everything that may be logged."""

from __future__ import annotations

import logging
import secrets
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.logs import _SECRET_VALUE, MAX_DEPTH, REDACTED, RedactingFilter, is_secret_name, redact, redact_text

SECRET_NAMES = [
    "ingest_uri",
    "ingestUri",
    "user_key",
    "userKey",
    "USER-KEY",
    "key",
    "api_key",
    "apiKey",
    "X-Api-Key",
    "access_key",
    "AWSAccessKey",
    "private_key",
    "privateKey",
    "token",
    "accessToken",
    "refresh_token",
    "X-Auth-Token",
    "secret",
    "client_secret",
    "clientSecret",
    "password",
    "db.password",
    "passwd",
    "pwd",
    "passphrase",
    "authorization",
    "Authorization",
    "proxy-authorization",
    "auth",
    "credential",
    "credentials",
    "cookie",
    "Set-Cookie",
    "signature",
    "X-Amz-Signature",
    "session_key",
    "csrftoken",
    "bearer",
]
HARMLESS_NAMES = [
    "source_uri",
    "uri",
    "user_id",
    "title",
    "monkey",
    "keyboard",
    "tokenizer",
    "description",
    "author",
    "authority",
    "session_id",
    "pass",
    "query",
    "text",
]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_fields_with_secret_names_are_redacted(name: str) -> None:
    assert redact({name: "open sesame"}) == {name: REDACTED}


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_other_fields_are_kept(name: str) -> None:
    assert not is_secret_name(name)
    assert redact({name: "open sesame"}) == {name: "open sesame"}


SECRET = "Zq9-" + "x7Kp" * 8
SENTENCES = (
    f"the key is uk_{SECRET}",
    f"connected with rpc_{SECRET}",
    f"Authorization: Bearer {SECRET}",
    f"authorization: bearer {SECRET}, next",
    f"GET /resources?user_id=a&user_key={SECRET}&x=1",
    f"https://s3.example/a?X-Amz-Signature={SECRET}&b=2",
    f"https://blob.example/a?sv=1&sig={SECRET}",
    f"postgres://gateway:{SECRET}@127.0.0.1/db",
    f'{{"token": "{SECRET}"}}',
    f"access_token={SECRET}",
)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_secrets_inside_texts_are_redacted(sentence: str) -> None:
    assert SECRET not in redact_text(sentence)
    assert SECRET not in str(redact({"note": ["and", {"then": sentence}]}))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=10), children, max_size=4),
    max_leaves=20,
)


@given(json_values, st.sampled_from(SECRET_NAMES), st.lists(st.sampled_from(["list", "dict"]), max_size=MAX_DEPTH + 4))
def test_secrets_are_redacted_at_any_depth(others: Any, name: str, nesting: list[str]) -> None:
    value: Any = {name: SECRET, "beside": others, "said": f"my key is uk_{SECRET}"}
    for kind in nesting:
        value = [others, value] if kind == "list" else {"inner": value, "beside": others}
    assert SECRET not in str(redact(value))


def test_redact_does_not_change_its_input() -> None:
    body = {"user_key": "uk_abc", "list": [{"token": "t"}]}
    redact(body)
    assert body == {"user_key": "uk_abc", "list": [{"token": "t"}]}


def test_log_records_and_tracebacks_of_any_library_are_redacted(caplog: pytest.LogCaptureFixture) -> None:
    key = f"uk_{secrets.token_urlsafe(32)}"
    logger = logging.getLogger("some.library")
    caplog.handler.addFilter(RedactingFilter())
    try:
        raise ValueError(f"refused {key}")
    except ValueError:
        logger.exception("call with %s failed", key)
    assert key not in caplog.text
    assert REDACTED in caplog.text


@given(
    st.text(max_size=10),
    st.sampled_from(
        [
            "uk_",
            "Bearer ",
            "BASIC ",
            "https://u:",
            "sig=",
            "Signature: ",
            "X-Amz-Date=",
            "user_key=",
            "api_key=",
            "apikey=",
            "AWSAccessKeyId=",
            "accessToken%3d",
            "access_token=",
            'token":"',
            "secret = ",
            "PASSWORD:",
        ]
    ),
    st.sampled_from(["p4ssw0rd", "p4ss@host", "p4ss=="]),
)
def test_the_search_for_marks_skips_no_text_that_the_pattern_matches(before: str, mark: str, rest: str) -> None:
    text = before + mark + rest
    assert redact_text(text) == _SECRET_VALUE.sub(REDACTED, text)
