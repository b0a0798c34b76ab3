"""A reader's own tokenizer: `tokenizer.json`, or `vocab.json` with `merges.txt`, through the `tokenizers` library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

from engine.gpt2_tokens import BYTE_CHARACTERS

# of all files together; the largest that are in use have some 200 000 tokens
LARGEST_BYTES = 16 * 2**20
MOST_FILES = 2
PATIENCE_SECONDS = 20
# a class that opens its files at once must not fill the machine
_PLACES = BoundedSemaphore(2)
_WORKER = Path(__file__).with_name("tokenizer_worker.py")
_POINTER = "version https://git-lfs"
_BYTES = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}


class FileError(ValueError):
    """Files that are no tokenizer; `code` says what is wrong, `details` holds the facts."""

    def __init__(self, code: str, **details: object) -> None:
        super().__init__(f"{code} {details}")
        self.code = code
        self.details = details


@dataclass(frozen=True)
class Token:
    """A token as its vocabulary writes it, the characters [start, end) that it stands for, and its bytes.

    `spelling` is None where the vocabulary is not written in bytes.
    """

    id: int
    text: str
    start: int
    end: int
    spelling: bytes | None


@dataclass(eq=False)
class ReaderTokenizer:
    """A tokenizer of a reader's: kept as packed files, and loaded for each new text in a process of its own."""

    name: str
    model: str
    vocab_size: int
    _packed: bytes
    # the last text and what became of it, so that looking again costs nothing
    _last: tuple[str, tuple[Token, ...] | FileError] = field(repr=False)

    def encode(self, text: str) -> tuple[Token, ...]:
        """The tokens of a text. Raises `FileError` where the tokenizer fails on it."""
        if self._last[0] != text:
            try:
                self._last = text, _tokens(_ask(text, self._packed))
            except FileError as error:
                self._last = text, error
        outcome = self._last[1]
        if isinstance(outcome, FileError):
            raise outcome
        return outcome


def load(files: Sequence[tuple[str, bytes]], text: str) -> ReaderTokenizer:
    """Read name and content of each file, and split `text` with what they hold.

    Raises `FileError` that says which file is wrong, and how.
    """
    if not 1 <= len(files) <= MOST_FILES:
        raise FileError("count", count=len(files))
    if sum(len(content) for _, content in files) > LARGEST_BYTES:
        raise FileError("too_large", most=LARGEST_BYTES // 2**20)
    packed = zlib.compress(json.dumps([(name, _text(name, content)) for name, content in files]).encode(), level=1)
    told = _ask(text, packed)
    name = " + ".join(name for name, _ in files)
    return ReaderTokenizer(name, told["model"], told["size"], packed, (text, _tokens(told)))


def _text(name: str, content: bytes) -> str:
    """The text of a file. Raises `FileError` for one that holds none."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError("not_text", name=name) from error
    if text.startswith(_POINTER):
        raise FileError("pointer", name=name)
    if not text.strip():
        raise FileError("empty", name=name)
    return text


def _ask(text: str, packed: bytes) -> dict[str, Any]:
    """The worker's answer. Raises `FileError` for a refusal, and where the worker came to grief."""
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "RUST_BACKTRACE": "0"}
    with _PLACES:
        try:
            done = subprocess.run(
                [sys.executable, "-I", str(_WORKER)], input=json.dumps(text).encode() + b"\n" + packed,
                capture_output=True, timeout=PATIENCE_SECONDS, env=environment, check=True,
            )
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
            raise FileError("broke_down") from error
    told: dict[str, Any] = json.loads(done.stdout)
    if "refusal" in told:
        raise FileError(told["refusal"], **told["facts"])
    return told


def _tokens(told: dict[str, Any]) -> tuple[Token, ...]:
    return tuple(
        Token(token_id, text, start, end, _spelling(text) if told["byte_level"] else None)
        for token_id, text, start, end in told["tokens"]
    )


def _spelling(text: str) -> bytes | None:
    """The bytes that a token of a byte-level vocabulary stands for; None for a word added beside it."""
    if all(character in _BYTES for character in text):
        return bytes(_BYTES[character] for character in text)
    return None
