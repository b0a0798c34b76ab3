"""A reader's tokenizer: what the library makes of the files, and files that are no tokenizer or mean harm."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from formats import tokenizer_files
from formats.tokenizer_files import LARGEST_BYTES, FileError, load

FORMATS = Path(__file__).parents[2] / "formats"
TEXT = "The cat's mats, 今天天气真 12 😀\n end"
Files = list[tuple[str, bytes]]


@pytest.fixture(scope="module")
def library() -> Tokenizer:
    """A byte-level tokenizer with a few merges, as the library itself makes it."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=True)
    made.train_from_iterator(["the cats the mats 今天天气 今天"], trainers.BpeTrainer(
        vocab_size=280, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
        special_tokens=["<|endoftext|>"],
    ))
    return made


@pytest.fixture(scope="module")
def whole(library: Tokenizer) -> Files:
    return [("tokenizer.json", library.to_str().encode())]


@pytest.fixture(scope="module")
def pair(library: Tokenizer) -> Files:
    merges = json.loads(library.to_str())["model"]["merges"]
    lines = ["#version: 0.2", *(" ".join(parts) for parts in merges), ""]
    return [("vocab.json", json.dumps(library.get_vocab()).encode()), ("merges.txt", "\n".join(lines).encode())]


def described(model: dict[str, Any], **parts: Any) -> Files:
    """A `tokenizer.json` with this model and these parts."""
    usual = dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"))
    content = {"version": "1.0", "added_tokens": [], **usual, **parts, "model": model}
    return [("tokenizer.json", json.dumps(content).encode())]


LETTER = {"type": "BPE", "vocab": {"a": 0}, "merges": []}


def test_a_tokenizer_json(whole: Files, library: Tokenizer) -> None:
    own = load(whole, TEXT)
    assert (own.name, own.model, own.vocab_size) == ("tokenizer.json", "BPE", library.get_vocab_size())
    for text in (TEXT, "", "a", " \n", "<|endoftext|> after"):
        tokens, theirs = own.encode(text), library.encode(text, add_special_tokens=False)
        assert [token.id for token in tokens] == theirs.ids
        assert [token.text for token in tokens] == theirs.tokens
        assert [(token.start, token.end) for token in tokens] == theirs.offsets
        assert b"".join(token.spelling or b"?" for token in tokens) == text.encode()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_vocabulary_with_merges(pair: Files, library: Tokenizer, reverse: bool, ends: str) -> None:
    (_, vocabulary), (_, merges) = pair
    files = [("encoder.json", vocabulary), ("vocab.bpe", merges.replace(b"\n", ends.encode()))]
    own = load(files[::-1] if reverse else files, TEXT)
    assert own.name == ("vocab.bpe + encoder.json" if reverse else "encoder.json + vocab.bpe")
    assert [token.id for token in own.encode(TEXT)] == library.encode(TEXT).ids
    assert [(token.start, token.end) for token in own.encode("晚b")] == [(0, 1)] * 3 + [(1, 2)]


def test_special_tokens_limits_and_padding_stay_out(library: Tokenizer) -> None:
    framed = Tokenizer.from_str(library.to_str())
    framed.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)],
    )
    framed.enable_truncation(2)
    framed.enable_padding(length=50)
    own = load([("tokenizer.json", framed.to_str().encode())], TEXT)
    assert [token.id for token in own.encode(TEXT)] == library.encode(TEXT).ids


def test_a_vocabulary_that_is_not_one_of_bytes() -> None:
    made = Tokenizer(models.WordPiece({"[UNK]": 0, "he": 1, "##llo": 2, "今": 3}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokens = load([("tokenizer.json", made.to_str().encode())], "Hello 今天").encode("Hello 今天")
    assert [(token.id, token.text, token.start, token.end) for token in tokens] == [
        (1, "he", 0, 2), (2, "##llo", 2, 5), (3, "今", 6, 7), (0, "[UNK]", 7, 8),
    ]
    assert [token.spelling for token in tokens] == [None] * 4


def test_a_word_added_beside_the_bytes_has_no_spelling(library: Tokenizer) -> None:
    made = Tokenizer.from_str(library.to_str())
    made.add_tokens(["<｜句子 开始｜>"])
    tokens = load([("t.json", made.to_str().encode())], "").encode("<｜句子 开始｜>a")
    assert [token.spelling for token in tokens] == [None, b"a"]


def refused(files: Files, text: str = TEXT) -> tuple[str, dict[str, object]]:
    with pytest.raises(FileError) as caught:
        load(files, text)
    return caught.value.code, caught.value.details


VOCABULARY = b'{"a": 0, "b": 1, "ab": 2}'


@pytest.mark.parametrize(("files", "code", "facts"), [
    ([], "count", {"count": 0}),
    ([("a", b"{}"), ("b", b"{}"), ("c", b"{}")], "count", {"count": 3}),
    ([("t.json", b"")], "empty", {"name": "t.json"}),
    ([("t.json", b" \n")], "empty", {"name": "t.json"}),
    ([("m.bin", bytes(range(256)))], "not_text", {"name": "m.bin"}),
    ([("t.json", '{"model": {}}'.encode("utf-16"))], "not_text", {"name": "t.json"}),
    ([("t.json", b"version https://git-lfs.github.com/spec/v1\nsize 1\n")], "pointer", {"name": "t.json"}),
    ([("t.json", b'{"model": \n {"type"')], "not_json", {"name": "t.json", "line": 2, "column": 9}),
    ([("t.json", b"hello")], "not_json", {"name": "t.json", "line": 1, "column": 1}),
    ([("t.json", b"{}")], "not_a_tokenizer", {"name": "t.json"}),
    ([("t.json", b"[1, 2]")], "not_a_tokenizer", {"name": "t.json"}),
    ([("t.json", b'{"a": "b"}')], "not_a_tokenizer", {"name": "t.json"}),
    ([("t.json", b'{"a": true}')], "not_a_tokenizer", {"name": "t.json"}),
    ([("t.json", b"[" * 100_000)], "not_a_tokenizer", {"name": "t.json"}),
    ([("v.json", VOCABULARY)], "needs_merges", {"name": "v.json"}),
    ([("m.txt", b"a b\n")], "needs_vocabulary", {"name": "m.txt"}),
    ([("v.json", VOCABULARY), ("m.txt", b"#version: 0.2\na b\nab\n")], "merges_line", {"name": "m.txt", "line": 3}),
    ([("v.json", VOCABULARY), ("m.txt", b"a b c\n")], "merges_line", {"name": "m.txt", "line": 1}),
    ([("v.json", VOCABULARY), ("m.txt", b"a c\n")], "merge_unknown", {"name": "m.txt", "line": 1, "token": "c"}),
    ([("v.json", VOCABULARY), ("m.txt", b"b a\n")], "merge_unknown", {"name": "m.txt", "line": 1, "token": "ba"}),
    ([("v.json", VOCABULARY), ("m.txt", b"a b</w>\n")], "word_ends", {"name": "m.txt"}),
    ([("v.json", VOCABULARY), ("m.txt", b"a b\n")], "no_bytes", {"count": 254}),
])
def test_files_that_are_no_tokenizer(files: Files, code: str, facts: dict[str, object]) -> None:
    assert refused(files) == (code, facts)


def test_a_file_with_a_byte_order_mark(whole: Files) -> None:
    assert load([(name, b"\xef\xbb\xbf" + content) for name, content in whole], "a").model == "BPE"


def test_too_large() -> None:
    half = bytes(LARGEST_BYTES // 2 + 1)
    assert refused([("a", half), ("b", half)]) == ("too_large", {"most": 16})


@pytest.mark.parametrize("ids", [{"a": 1}, {"a": -1}, {"a": 2**32}])
def test_impossible_ids(pair: Files, ids: dict[str, int]) -> None:
    (name, vocabulary), merges = pair
    wrong = json.dumps({**json.loads(vocabulary), **ids}).encode()
    assert refused([(name, wrong), merges]) == ("ids", {})


@pytest.mark.parametrize("files", [
    [("t.json", b'{"model": {}}')], [("t.json", b'{"model": {"type": "None"}}')],
    described({"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}),
    described(LETTER, pre_tokenizer={
        "type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": False,
    }),
])
def test_what_the_library_refuses(files: Files) -> None:
    code, facts = refused(files)
    assert code == "refused"
    assert facts["reason"]


def test_a_text_that_the_tokenizer_cannot_split() -> None:
    files = described({"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"})
    own = load(files, "a")
    for _ in range(2):
        with pytest.raises(FileError, match="text"):
            own.encode("b")
    assert [token.id for token in own.encode("a")] == [0]
    assert refused(files, "b")[0] == "text"


@pytest.mark.parametrize("parts", [
    # the library panics on the first three, runs out of memory on the last
    {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAAAA"}},
    {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
    {"pre_tokenizer": {
        "type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False,
    }},
    {"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000},
    ] * 3}},
])
def test_files_that_mean_harm(parts: dict[str, Any]) -> None:
    assert refused(described(LETTER, **parts), "a" * 199 + "b") == ("broke_down", {})


def test_more_tokens_than_can_be_shown() -> None:
    grown = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000}
    assert refused(described(LETTER, normalizer=grown), "aaa") == ("too_many", {"count": 3000})


def test_the_same_text_is_not_split_twice(whole: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    own = load(whole, TEXT)

    def never(*_: object) -> None:
        raise AssertionError("asked again")

    monkeypatch.setattr(tokenizer_files, "_ask", never)
    assert own.encode(TEXT) is own.encode(TEXT)


def test_a_worker_that_is_stuck(whole: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_files, "PATIENCE_SECONDS", 0.001)
    assert refused(whole) == ("broke_down", {})


def test_every_refusal_is_tried() -> None:
    """So that the words for each can be checked against its facts."""
    sources = [FORMATS / name for name in ("tokenizer_files.py", "tokenizer_worker.py")]
    raised = {
        code for source in sources
        for code in re.findall(r'(?:FileError|RefusalError)\("(\w+)"', source.read_text(encoding="utf-8"))
    }
    tried = set(re.findall(r'"(\w+)"', Path(__file__).read_text(encoding="utf-8")))
    assert raised <= tried
