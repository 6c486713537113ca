"""An embedding model in the process: its vectors, its identity, and folders that are no model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.embedded import health
from engines.embedded.engine import EmbeddedEngine
from store.models import Embedding, EmbeddingSpace, PendingEmbedding
from store.vectors import fill
from store.vectors.local_model import LocalModel, WrongModelError, local_model
from tests import local_models
from tests.conftest import Person
from tests.store.conftest import remember, search, texts

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return local_models.make_folder(tmp_path / "minilm")


@pytest.fixture
def model(folder: Path) -> LocalModel:
    return local_model(str(folder))


def with_settings(folder: Path, **settings: Any) -> LocalModel:
    (folder / "memory_gateway.json").write_text(json.dumps(settings))
    local_model.cache_clear()
    return local_model(str(folder))


def test_texts_of_one_meaning_are_near_each_other(model: LocalModel) -> None:
    car, auto, soup = (
        one.pooled for one in model.encode(["My car broke down.", "The automobile failed.", "Hot soup."])
    )
    assert car @ auto > car @ soup + 0.3
    assert np.linalg.norm(car) == pytest.approx(1.0, abs=1e-5)


def test_a_text_has_the_same_vectors_alone_and_beside_longer_ones(model: LocalModel) -> None:
    sentences = ["She moved.", "She moved to Lisbon last year with her sister.", "a", ""]
    for alone, beside in zip([model.encode([one])[0] for one in sentences], model.encode(sentences), strict=True):
        assert alone.pooled @ beside.pooled == pytest.approx(1.0, abs=1e-3)
        assert alone.tokens.shape == beside.tokens.shape


def test_the_tokens_of_a_word_share_its_place(model: LocalModel) -> None:
    query = "Where is Krzysztof?"
    words = [query[slice(*span)] for span in model.encode_query(query).spans]
    assert (words[0], words[1], words[2], words[-2], words[-1]) == ("", "Where", "is", "?", "")
    assert set(words[3:-2]) == {"Krzysztof"}


def test_prefixes_change_the_vectors_and_the_name(folder: Path, model: LocalModel) -> None:
    prefixed = with_settings(folder, query_prefix="query: ")
    assert prefixed.name != model.name
    assert prefixed.name.startswith("local:minilm@")
    assert prefixed.encode_query("tea").pooled @ model.encode_query("tea").pooled < 0.99
    assert prefixed.encode_query("tea").spans[-2] == (0, 3)
    assert prefixed.encode(["tea"])[0].pooled @ model.encode(["tea"])[0].pooled == pytest.approx(1.0, abs=1e-5)


def test_long_texts_are_cut_and_the_first_token_can_be_the_vector(folder: Path) -> None:
    cut = with_settings(folder, max_tokens=16, pooling="first").encode(["word " * 500])[0]
    assert len(cut.tokens) == 16
    assert cut.pooled @ cut.tokens[0] == pytest.approx(1.0, abs=1e-5)


def test_threads_share_a_model(model: LocalModel) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(model.encode_query, ["tea"] * 16))
    assert all(one.pooled @ found[0].pooled > 0.999 for one in found)


def test_a_folder_without_a_model_is_refused(folder: Path, tmp_path: Path) -> None:
    def refused(path: Path) -> str:
        local_model.cache_clear()
        with pytest.raises(WrongModelError) as caught:
            local_model(str(path)).load()
        return str(caught.value)

    assert refused(tmp_path / "none").endswith("there is no folder " + str(tmp_path / "none") + ".")
    (folder / "memory_gateway.json").write_text('{"poolin": "mean"}')
    assert "poolin" in refused(folder)
    (folder / "memory_gateway.json").unlink()
    (folder / "model.onnx").unlink()
    assert "model.onnx" in refused(folder)
    (folder / "model.onnx").write_bytes(b"<html>not found</html>")
    assert "has no embedding model that can be used" in refused(folder)
    (folder / "tokenizer.json").unlink()
    assert "tokenizer.json" in refused(folder)


def test_a_wrong_folder_prevents_the_start(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "memory_gateway.settings",
        "MEMORY_GATEWAY_ENV_FILE": "",
        "MEMORY_GATEWAY_DB_PATH": str(tmp_path / "db.sqlite3"),
        "MEMORY_GATEWAY_STORAGE_DIR": str(tmp_path / "files"),
        "MEMORY_GATEWAY_MODELS": f"embedding=local:{tmp_path}/absent",
    }
    ended = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode != 0
    assert f"MEMORY_GATEWAY_MODELS (embedding): there is no folder {tmp_path}/absent." in ended.stdout + ended.stderr


def test_memories_are_found_by_meaning_without_an_endpoint(
    settings: Any, folder: Path, engine: EmbeddedEngine, alice: Person
) -> None:
    local_models.use(settings, folder)
    remember(engine, alice.owner, "The automobile failed on the motorway.", "We cook soup on Sundays.")
    assert not PendingEmbedding.objects.exists()
    assert texts(search(engine, alice.owner, "my car broke down", method="vector", top_k=1)) == [
        "The automobile failed on the motorway."
    ]
    state = health.check(1.0).data["embeddings"]
    assert (state["status"], state["dimensions"]) == ("ok", 384)
    assert state["model"] == EmbeddingSpace.objects.get().model == local_model(str(folder)).name


def test_another_model_in_the_folder_needs_a_new_space(
    settings: Any, folder: Path, engine: EmbeddedEngine, alice: Person
) -> None:
    local_models.use(settings, folder)
    remember(engine, alice.owner, "We cook soup on Sundays.")
    with_settings(folder, text_prefix="passage: ")
    assert health.check(1.0).data["embeddings"]["status"] == "reembed_needed"


def test_a_failing_model_leaves_vectors_pending(
    settings: Any, folder: Path, engine: EmbeddedEngine, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_models.use(settings, folder)

    def fail(*_args: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(LocalModel, "encode", fail)
        remember(engine, alice.owner, "We cook soup on Sundays.")
        assert PendingEmbedding.objects.exists()
        assert health.check(1.0).data["embeddings"]["error"] == "The local embedding model failed."
        assert texts(search(engine, alice.owner, "soup", method="hybrid")) == ["We cook soup on Sundays."]
    assert fill.fill(5.0) == 1
    assert Embedding.objects.count() == 1
