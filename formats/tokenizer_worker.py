"""Loads a reader's tokenizer and splits one text with it, in a process of its own.

    python -I formats/tokenizer_worker.py < request > answer

A broken or hostile file can bring the `tokenizers` library to a stop, to endless work or to more
memory than there is, and none of that may reach the server. The request is a line of JSON with the
text, then the packed files (`formats/tokenizer_files.py`); the answer is one line of JSON.
"""

from __future__ import annotations

import json
import sys
import zlib
from contextlib import suppress
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers

MEMORY_BYTES = 2**30
CPU_SECONDS = 10
MOST_TOKENS = 2000
LONGEST_TOKEN = 200
Facts = dict[str, Any]


class RefusalError(Exception):
    """A file that is no tokenizer: a code and the facts, for words in any language."""

    def __init__(self, code: str, **facts: object) -> None:
        super().__init__(code)
        self.code = code
        self.facts = facts


def answer(text: str, files: list[tuple[str, str]]) -> Facts:
    """What the tokenizer in the files is, and the ids, tokens and character spans of the text."""
    loaded, byte_level = _load(files)
    loaded.no_truncation()
    loaded.no_padding()
    try:
        encoding = loaded.encode(text, add_special_tokens=False)
    except Exception as error:
        raise RefusalError("text", reason=str(error)) from error
    if len(encoding.ids) > MOST_TOKENS:
        raise RefusalError("too_many", count=len(encoding.ids))
    return {
        "model": type(loaded.model).__name__, "size": loaded.get_vocab_size(), "byte_level": byte_level,
        "tokens": [
            (token_id, token[:LONGEST_TOKEN], *span)
            for token_id, token, span in zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True)
        ],
    }


def _load(files: list[tuple[str, str]]) -> tuple[Tokenizer, bool]:
    """The tokenizer, and whether its tokens are written in byte characters."""
    vocabulary: tuple[str, Facts] | None = None
    merges: tuple[str, str] | None = None
    for name, content in files:
        if not content.lstrip().startswith("{") and not name.endswith(".json"):
            merges = name, content
            continue
        parsed = _parse(name, content)
        if isinstance(parsed, dict) and "model" in parsed and not isinstance(parsed["model"], int):
            return _whole(content), _is_byte_level(parsed)
        if not isinstance(parsed, dict) or not parsed or not all(type(value) is int for value in parsed.values()):
            raise RefusalError("not_a_tokenizer", name=name)
        vocabulary = name, parsed
    if vocabulary is None:
        raise RefusalError("needs_vocabulary", name=files[0][0])
    if merges is None:
        raise RefusalError("needs_merges", name=vocabulary[0])
    return _pair(vocabulary[1], *merges), True


def _parse(name: str, content: str) -> Any:
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise RefusalError("not_json", name=name, line=error.lineno, column=error.colno) from error
    except RecursionError as error:
        raise RefusalError("not_a_tokenizer", name=name) from error


def _whole(content: str) -> Tokenizer:
    """A `tokenizer.json`."""
    try:
        return Tokenizer.from_str(content)
    except Exception as error:
        raise RefusalError("refused", reason=str(error)) from error


def _is_byte_level(description: Any) -> bool:
    """Whether any part of a `tokenizer.json` but its vocabulary is of the type ByteLevel."""
    if isinstance(description, list):
        return any(map(_is_byte_level, description))
    if not isinstance(description, dict):
        return False
    return description.get("type") == "ByteLevel" or any(
        _is_byte_level(part) for key, part in description.items() if key not in ("model", "added_tokens")
    )


def _pair(vocabulary: dict[str, int], name: str, content: str) -> Tokenizer:
    """`vocab.json` with `merges.txt`, read as GPT-2 writes them."""
    merges: list[tuple[str, str]] = []
    for number, line in enumerate(content.split("\n"), start=1):
        line = line.rstrip("\r")
        if not line or line.startswith("#version"):
            continue
        parts = line.split(" ")
        if len(parts) != 2 or not all(parts):
            raise RefusalError("merges_line", name=name, line=number)
        for token in (*parts, "".join(parts)):
            if token.endswith("</w>"):
                raise RefusalError("word_ends", name=name)
            if token not in vocabulary:
                raise RefusalError("merge_unknown", name=name, line=number, token=token[:LONGEST_TOKEN])
        merges.append((parts[0], parts[1]))
    missing = sum(character not in vocabulary for character in pre_tokenizers.ByteLevel.alphabet())
    if missing:
        raise RefusalError("no_bytes", count=missing)
    if len({*vocabulary.values()}) < len(vocabulary) or not all(0 <= number < 2**32 for number in vocabulary.values()):
        raise RefusalError("ids")
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def main() -> None:
    """Read a request, write the answer or the refusal."""
    with suppress(ImportError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    text = json.loads(sys.stdin.buffer.readline())
    files = json.loads(zlib.decompress(sys.stdin.buffer.read()))
    try:
        told = answer(text, [(name, content) for name, content in files])
    except RefusalError as refusal:
        told = {"refusal": refusal.code, "facts": refusal.facts}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
