"""The glossary: both languages, a sentence in each, and a lesson that there is."""

from __future__ import annotations

import re

import pytest

from tests.ui.support import is_chinese, reader
from ui import frame, terms
from ui.board import view
from ui.layout import Glossary, section
from ui.navigation import GLOSSARY, LESSONS, neighbours
from ui.prose import read
from ui.text import LANGUAGES

KEYS = {"en", "zh", "lesson", "explanation_en", "explanation_zh"}
# what the lessons speak of, as the issue lists it and a little more
NEEDED = (
    "token", "token id", "vocabulary", "tokenizer", "BPE", "embedding", "logit", "softmax", "score", "weight", "head",
    "query", "key", "value", "RoPE", "learned positions", "LayerNorm", "RMSNorm", "GELU", "ReLU", "ReLU²", "dropout",
    "residual", "temperature", "top-k", "top-p", "KV cache", "tied head", "bias", "causal mask", "MLP", "gradient",
    "linear", "epsilon", "argmax", "probability", "parameter", "attention", "dot product", "activation", "final norm",
)


def test_every_term_is_complete() -> None:
    for term in terms.read():
        assert set(term) == KEYS, term
        assert all(term[key].strip() == term[key] != "" for key in KEYS), term
        assert term["lesson"] in LESSONS


def test_no_term_comes_twice() -> None:
    for language in LANGUAGES:
        names = [term[language].lower() for term in terms.read()]
        assert len(names) == len(set(names))


def test_each_language_is_its_own() -> None:
    for term in terms.read():
        assert not is_chinese(re.sub(r"今", "", term["en"] + term["explanation_en"])), term["en"]
        assert is_chinese(term["explanation_zh"]), term["zh"]
        assert term["explanation_en"][-1] == "."
        assert term["explanation_en"].count(". ") == 0, "one sentence"
        assert term["explanation_zh"][-2:] == "……" or term["explanation_zh"][-1] == "。"
        assert "。" not in term["explanation_zh"][:-1], "one sentence"
        assert not re.search(r"[\u4e00-\u9fff][,;:?!]", term["explanation_zh"]), "full-width signs"


def test_the_order_is_that_of_the_lessons() -> None:
    places = [LESSONS.index(term["lesson"]) for term in terms.read()]
    assert places == sorted(places)


@pytest.mark.parametrize("needed", NEEDED)
def test_the_terms_of_the_lessons_are_there(needed: str) -> None:
    assert any(needed.lower() in term["en"].lower() for term in terms.read())


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_has_the_reader_s_words(language: str) -> None:
    state = reader(GLOSSARY, language=language)
    data = frame.build(GLOSSARY, (section(None, Glossary()),), view(state)).data
    ((item,),) = (part["items"] for part in data["layout"])
    assert item["type"] == "glossary"
    assert len(item["terms"]) == len(terms.read()) > 50
    for row, term in zip(item["terms"], terms.read(), strict=True):
        assert (row["en"], row["zh"]) == (term["en"], term["zh"])
        assert row["words"] == term[f"explanation_{language}"]
        assert row["title"] == read(term["lesson"], language).title
        assert row["path"] == ("" if term["lesson"] == "overview" else term["lesson"])
    assert neighbours(GLOSSARY, state) == {"previous": None, "next": None}
