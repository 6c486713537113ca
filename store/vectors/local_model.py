"""An embedding model that runs in this process: a folder with an ONNX file and a tokenizer. No network, no key.

It returns a vector for each token of a text, and their mean as the vector of the text.

Ours, because the wrappers that exist (fastembed, sentence-transformers) download at run time or need PyTorch.
onnxruntime and tokenizers do all of the work.
"""

import hashlib
import importlib.util
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

Vectors = npt.NDArray[np.float32]

SETTINGS_FILE: Final = "memory_gateway.json"
TOKENIZER_FILE: Final = "tokenizer.json"
_PACKAGES: Final = ("onnxruntime", "tokenizers")
_NAME_CHARS: Final = 100
_DIGEST_CHARS: Final = 16
_BATCH_TEXTS: Final = 16
_READ_BYTES: Final = 2**20
_THREADS: Final = 1
"""Per model. Searches and background work run beside each other already."""


class WrongModelError(Exception):
    """A folder has no model that can be used. The message is a sentence for an operator."""


class ModelSettings(BaseModel):
    """The fields of the optional file `memory_gateway.json` in a folder with a model.

    The prefixes are put before a query and before a stored text, as models such as E5 expect. `pooling` makes a text's
    vector of those of its tokens. `token_vectors`: hybrid search compares tokens (`store.search.late_interaction`).
    """

    model_config = ConfigDict(extra="forbid")

    pooling: Literal["mean", "first"] = "mean"
    query_prefix: str = Field("", max_length=500)
    text_prefix: str = Field("", max_length=500)
    max_tokens: int = Field(256, ge=8, le=8192)
    token_vectors: bool = True


class Encoded(NamedTuple):
    """The vector of a text (length 1), the vectors of its tokens (n x dimensions), and where they are in the text.

    `spans` has the first character of each token's word and the one after its last, (0, 0) for a token of the model or
    of the prefix. Tokens of one word have the same span.
    """

    pooled: Vectors
    tokens: Vectors
    spans: list[tuple[int, int]]


@dataclass(frozen=True)
class LocalModel:
    """A model that is loaded when it is first used, and shared by all threads of the process."""

    folder: Path
    settings: ModelSettings
    model_file: Path
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @cached_property
    def name(self) -> str:
        """The folder's name and a fingerprint of its files, which name the embedding space."""
        digest = hashlib.sha256(self.settings.model_dump_json().encode())
        files = [self.model_file, self.folder / TOKENIZER_FILE, *sorted(self.folder.glob(self.model_file.name + "?*"))]
        for path in files:
            with path.open("rb") as file:
                while block := file.read(_READ_BYTES):
                    digest.update(block)
        return f"local:{self.folder.name[:_NAME_CHARS]}@{digest.hexdigest()[:_DIGEST_CHARS]}"

    def load(self) -> None:
        """Load the model, fingerprint it and try it. Raises: `WrongModelError`."""
        try:
            _ = self.name
            vector = self.encode_query("try").pooled
        except Exception as error:  # whatever the two libraries say of a wrong file
            raise WrongModelError(f"{self.folder} has no embedding model that can be used: {_line(error)}") from error
        if not np.isfinite(vector).all():
            raise WrongModelError(f"{self.folder} has a model that returns no valid vectors.")

    def encode_query(self, text: str) -> Encoded:
        return next(iter(self._encode([text], self.settings.query_prefix)))

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Return the vectors of texts to store, in order."""
        return list(self._encode(texts, self.settings.text_prefix))

    def _encode(self, texts: Sequence[str], prefix: str) -> Iterable[Encoded]:
        session, tokenizer = self._loaded
        read = tokenizer.encode_batch([prefix + text for text in texts])
        by_length = sorted(range(len(read)), key=lambda place: len(read[place].ids))
        found: dict[int, Encoded] = {}
        for start in range(0, len(read), _BATCH_TEXTS):
            places = by_length[start : start + _BATCH_TEXTS]
            hidden = self._run(session, [read[place].ids for place in places])
            for place, states in zip(places, hidden, strict=True):
                found[place] = self._encoded(read[place], states, len(prefix))
        return [found[place] for place in range(len(texts))]

    @staticmethod
    def _run(session: Any, ids: Sequence[Sequence[int]]) -> Iterator[Vectors]:
        """Yield the last hidden states of each text's tokens."""
        tokens = np.zeros((len(ids), max(map(len, ids))), np.int64)
        mask = np.zeros_like(tokens)
        for row, own in enumerate(ids):
            tokens[row, : len(own)], mask[row, : len(own)] = own, 1
        known = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        states = session.run(None, {one.name: known[one.name] for one in session.get_inputs()})[0]
        for row, own in enumerate(ids):
            yield states[row, : len(own)].astype(np.float32)

    def _encoded(self, read: Any, states: Vectors, skipped: int) -> Encoded:
        pooled = states.mean(axis=0) if self.settings.pooling == "mean" else states[0]
        tokens = states / np.maximum(np.linalg.norm(states, axis=1, keepdims=True), 1e-9)
        return Encoded(pooled / max(float(np.linalg.norm(pooled)), 1e-9), tokens, list(_spans(read, skipped)))

    @cached_property
    def _session_and_tokenizer(self) -> tuple[Any, Any]:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # its threads do not survive a fork, and it says so
        import onnxruntime  # noqa: PLC0415  of the extra `local-models`
        from tokenizers import Tokenizer  # noqa: PLC0415

        tokenizer = Tokenizer.from_file(str(self.folder / TOKENIZER_FILE))
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.settings.max_tokens)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = _THREADS
        options.enable_cpu_mem_arena = False  # which keeps the memory of the largest batch
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(self.model_file), options, providers=["CPUExecutionProvider"])
        return session, tokenizer

    @property
    def _loaded(self) -> tuple[Any, Any]:
        with self._lock:
            return self._session_and_tokenizer


def _spans(read: Any, skipped: int) -> Iterator[tuple[int, int]]:
    """Yield the span of the word of each token, without the prefix's characters."""
    words: dict[int, tuple[int, int]] = {}
    for word, (start, end) in zip(read.word_ids, read.offsets, strict=True):
        if word is not None:
            first, last = words.get(word, (start, end))
            words[word] = min(first, start), max(last, end)
    for word in read.word_ids:
        start, end = words.get(word, (0, 0))
        yield (start - skipped, end - skipped) if start >= skipped else (0, 0)


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{lines[0][:200] if lines else type(error).__name__}"


@cache
def local_model(folder: str) -> LocalModel:
    """Return the model of a folder, which is not loaded yet. Raises: `WrongModelError`."""
    path = Path(folder)
    if missing := [name for name in _PACKAGES if importlib.util.find_spec(name) is None]:
        raise WrongModelError(f"a local model needs the package {missing[0]}: install memory-gateway[local-models].")
    if not path.is_dir():
        raise WrongModelError(f"there is no folder {path}.")
    if not (path / TOKENIZER_FILE).is_file():
        raise WrongModelError(f"{path} has no {TOKENIZER_FILE}.")
    files = sorted(path.glob("*.onnx"))
    chosen = path / "model.onnx"
    if chosen not in files and len(files) != 1:
        raise WrongModelError(f"{path} must have one file model.onnx, not {len(files)} other .onnx files.")
    return LocalModel(path, _settings(path), chosen if chosen in files else files[0])


def _settings(folder: Path) -> ModelSettings:
    path = folder / SETTINGS_FILE
    if not path.exists():
        return ModelSettings()
    try:
        return ModelSettings.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise WrongModelError(f"{path} is wrong: {place}: {first['msg']}.") from None
