"""Lesson prose: the same blocks and places in both languages, and the article's numbers in them."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from engine import Trace
from tests.ui.support import ROOT
from ui import runs
from ui.navigation import LESSONS
from ui.prose import PARTS, fill, read
from ui.text import LANGUAGES

EVERY_LESSON = pytest.mark.parametrize("lesson", LESSONS)
EVERY_LANGUAGE = pytest.mark.parametrize("language", LANGUAGES)
PLACE = re.compile(r"\{\{.*?\}\}")

# What the article prints for its example, as it prints it, by the lesson that has to show it.
ARTICLE: dict[str, list[str]] = {
    "overview": ["0.1, 0.2, −0.2, 0.6", "−0.0551, 2.0614, −0.1897, 4.0226",
                 "−0.0134, 4.1119, −0.1371, 7.4768", "−0.0031, 0.9637, −0.0321, 1.7522",
                 "0.9073", "−0.0911", "0.0000"],
    "embedding": ["0.2, −0.1, 0.4, 0.3", "−0.3, 0.5, 0.1, 0.2", "0.1, 0.2, −0.2, 0.6"],
    "layer": ["0.2981, 0.5963, −0.5963, 1.7888", "−0.3108, 0.9856, −0.5261, 1.7135",
              "−0.1557, 0.8758, −0.5364, 1.7091", "0.1557, 0.8758, 0.5364, 1.7091",
              "−0.0551, 2.0614, −0.1897, 4.0226"],
    "rmsnorm": ["0.2981, 0.5963, −0.5963, 1.7888", "1e−6"],
    "qkv": ["0.2981, 0.5963, −0.5963, 1.7888", "[0.2981, 0.5963]", "[−0.5963, 1.7888]"],
    "rope": ["0.2981, 0.5963", "−0.6663, 0.0230", "0.7303, −0.3651"],
    "scores": ["−0.3500, 0.8803, 0.3143", "0.1571, 0.5376, 0.3053", "−0.6663", "0.0230", "−1.8665", "0.0567"],
    "values": ["0.1571, 0.5376, 0.3053", "0.7303, −0.3651", "−0.9608, 1.6013", "0.2981, 0.5963",
               "−0.3108, 0.9856", "−0.5261, 1.7135", "−0.3108, 0.9856, −0.5261, 1.7135"],
    "residual": ["−0.3108, 0.9856, −0.5261, 1.7135", "−0.0551, 2.0614, −0.1897, 4.0226"],
    "mlp": ["−0.1557, 0.8758, −0.5364, 1.7091, 0.1557, −0.8758, 0.5364, −1.7091",
            "0.1557, 0.8758, 0.5364, 1.7091"],
    "layers": ["−0.0551, 2.0614, −0.1897, 4.0226", "−0.0134, 4.1119, −0.1371, 7.4768"],
    "final_norm": ["−0.0134, 4.1119, −0.1371, 7.4768", "18.2073", "4.2670",
                   "−0.0031, 0.9637, −0.0321, 1.7522"],
    "lm_head": ["−0.0031, 0.9637, −0.0321, 1.7522", "0.2, 0.4, 0.1, 0.3", "0.3855", "0.5257", "0.9073",
                "−0.0911", "0.0000"],
    "positions": ["0.5000, 3.1000", "0.1000, 2.2000, 1.8000"],
    "layernorm": ["1e−5"],
    # printed, and what they really are
    "gelu": ["−0.01", "−0.0036", "2.99", "2.9964"],
    "dropout": ["1.1111"],
    # the article's scores, its weights, and those that softmax gives
    "block": ["−0.3", "0.8000", "[0.3000, 0.8000, 0.9000, 1.2000, 1.5000]", "[0.1, 0.2, 0.2, 0.25, 0.25]",
              "[0.0976, 0.1608, 0.1778, 0.2399, 0.3239]", "85.00", "10.00", "2.00", "50257", "768", "3072"],
    "switchboard": ["1.5000", "3.4641", "14.1689"],
    "choosing": ["85.00", "10.00", "2.00", "123"],
    "generating": ["85.00", "123"],
    "linear": ["f(2 + (−3)) = f(−1) = 0", "f(2) + f(−3) = 2 + 0 = 2"],
    "why_residuals": ["f(x)"], "why_sqrt": ["22.6274"],
    "why_layers": ["0.9073", "1–3", "4–7", "8–12", "8C²", "4C²"],
    "attention_linear": ["0.1571, 0.5376, 0.3053", "−0.3108, 0.9856"],
    # the head that reads `Cats`, the article's figure for `mats`, and its gap to `chairs`
    "wrote": ["0.9073", "0.1571", "0.5376", "4.2670", "0.9984"],
    # mats and chairs in both sentences, and how far apart they are
    "data": ["[12, 45, 78]", "[45, 78, 90]", "0.39", "0.96", "256"],
    "patch": ["0.9073", "0.8220", "−0.0911", "−0.2505", "0.9984", "1.0725"],
    # the whole system quotes what training and inference make of mats; the other, what the head reads
    "system": ["0.96", "0.2, 0.4, 0.1, 0.3", "0.01"],
    "raise_logit": ["0.9073", "−0.0911", "−0.0031, 0.9637, −0.0321, 1.7522"],
    # −ln of three probabilities, ln 256, and (p − 1) ÷ 3 of mats
    "loss": ["5.2490", "5.5452", "−0.3301"], "backward": ["0.3333", "−0.3301", "−0.1319"],
    # −0.5728 × 0.8363, and 0.3 one step of SGD and of AdamW on; 0.4 × (1 − 0.01 × 0.01)¹⁰⁰
    "optimizer": ["−0.5728", "0.8363", "−0.4790", "0.3048", "0.3100"], "training": ["5.2490", "0.96", "0.3960"],
    # no article's: what others have found, and what stands in the place of a score
    "heads": ["Olsson", "induction head"], "remove": ["−∞"], "lens": ["nostalgebraist", "Belrose"],
    "tokens": ["[ 今, 天, 天, 气, 真 ]", "1024", "2048", "3072", "4096", "0.1", "−0.2", "0.3", "−0.5"],
}


def source(lesson: str, language: str) -> str:
    return (ROOT / "assets" / "lessons" / language / f"{lesson}.md").read_text(encoding="utf-8")


def plain(lesson: str, language: str) -> str:
    """The prose as it is read, without code and formulas."""
    prose = read(lesson, language)
    words = "\n".join([prose.title, prose.lead, *prose.parts.values()])
    return re.sub(r"```.*?```|`[^`]*`|\$[^$]*\$", "", words, flags=re.DOTALL)


def test_both_languages_have_all_lessons_and_no_others() -> None:
    for language in LANGUAGES:
        folder = ROOT / "assets" / "lessons" / language
        assert {path.stem for path in folder.iterdir()} == set(LESSONS)


@EVERY_LANGUAGE
@EVERY_LESSON
def test_blocks(lesson: str, language: str) -> None:
    prose = read(lesson, language)
    assert tuple(prose.parts) == PARTS
    assert all(prose.parts.values())
    assert prose.title
    assert prose.lead
    assert re.findall(r"^\[(\w+)\]$", source(lesson, language), re.MULTILINE) == list(PARTS)


@EVERY_LESSON
def test_both_languages_show_the_same_numbers(lesson: str) -> None:
    """Place by place in every block, though a language may order them its own way."""
    english, chinese = (
        re.split(r"^\[\w+\]$", source(lesson, each), flags=re.MULTILINE) for each in LANGUAGES
    )
    for ours, theirs in zip(english, chinese, strict=True):
        assert Counter(PLACE.findall(ours)) == Counter(PLACE.findall(theirs))


@EVERY_LANGUAGE
@EVERY_LESSON
def test_every_place_is_filled(lesson: str, language: str) -> None:
    prose = read(lesson, language)
    words = "\n".join([prose.title, prose.lead, *prose.parts.values()])
    assert "{{" not in words
    assert "}}" not in words


@EVERY_LANGUAGE
@EVERY_LESSON
def test_the_article_s_numbers_are_there(lesson: str, language: str) -> None:
    words = plain(lesson, language)
    assert [numbers for numbers in ARTICLE[lesson] if numbers not in words] == []


@EVERY_LANGUAGE
@EVERY_LESSON
def test_minus_signs_are_minus_signs(lesson: str, language: str) -> None:
    assert re.findall(r"\S*-\d\S*", re.sub(r"GPT-\d", "", plain(lesson, language))) == []
    assert "−0.0000" not in plain(lesson, language)


@EVERY_LANGUAGE
@EVERY_LESSON
def test_four_decimals_are_never_typed(lesson: str, language: str) -> None:
    # a constant of GELU's definition, not a number of the model's
    words = PLACE.sub("", source(lesson, language)).replace("0.044715", "")
    assert re.findall(r"\d\.\d{4,}", words) == []


@EVERY_LESSON
def test_code_is_the_same_in_both_languages(lesson: str) -> None:
    english, chinese = (
        re.findall(r"```.*?```", source(lesson, each), flags=re.DOTALL) for each in LANGUAGES
    )
    without_comments = re.compile(r" *#.*")
    assert [without_comments.sub("", block) for block in english] == [
        without_comments.sub("", block) for block in chinese
    ]
    assert english


@pytest.fixture(scope="module")
def article() -> Trace:
    return runs.article()


@pytest.mark.parametrize(("place", "shown"), [
    ("{{config.V}} {{config.C}} {{config.H}} {{config.D}} {{config.F}} {{config.N}}", "256 4 2 2 8 2"),
    ("{{config.B}} {{config.T}}", "1 3"),
    ("{{logits[0,2,90]}}", "0.9073"), ("{{probabilities[0,2,90]|percent}}", "0.96 %"),
    ("{{norm_epsilon|short}}", "1e−6"), ("{{lm_head.weight[90,:]|short}}", "[0.2, 0.4, 0.1, 0.3]"),
    ("{{ logits[0,2,91] }}", "−0.0911"),
    ("{{layers.0.attention.masked_scores[0,0,0,:]}}", "[0.4714, −∞, −∞]"),
    # five rows of the embedding and two of the head are in the article; the others are zero
    ("{{zero_rows.embedding.weight}} {{zero_rows.lm_head.weight}}", "251 254"),
    ("no place", "no place"), ("{not one}", "{not one}"),
])
def test_places(place: str, shown: str, article: Trace) -> None:
    assert fill(place, article, "en") == shown
    assert fill(place, article, "zh") == shown.replace(" %", "%")


@pytest.mark.parametrize("place", [
    "{{no.such.tensor}}", "{{logits[0,9,0]}}", "{{config.Z}}", "{{logits[a]}}", "{{logits[0,2,90}}",
    "{{zero_rows.no.such.tensor}}", "{{zero_rows.norm_epsilon}}",
])
def test_a_wrong_place_is_an_error(place: str, article: Trace) -> None:
    with pytest.raises((KeyError, IndexError, ValueError)):
        fill(place, article, "en")
