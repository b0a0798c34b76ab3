"""Every lesson opens, in either language by turns, shows the article's numbers, and can be read by everybody."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.readable import LOOKS, PARTS, assert_readable, shown_numbers, wait_for_parts
from tests.browser.support import (
    ATTENTION,
    LESSONS,
    OTHER_LESSONS,
    Reader,
    by_turns,
    label,
    lesson_title,
)
from ui import glosses

# What the article prints, as the cells of each lesson show it: the tensor, the cells' common index,
# and the numbers along the last axis.
EMBEDDING = {
    ("embedding.output", "0,0"): "0.2000 −0.1000 0.4000 0.3000",
    ("embedding.output", "0,1"): "−0.3000 0.5000 0.1000 0.2000",
    ("embedding.output", "0,2"): "0.1000 0.2000 −0.2000 0.6000",
}
LAYER_2 = {
    ("layers.1.output", "0,0"): "3.1458 −0.1000 6.2916 4.7187",
    ("layers.1.output", "0,1"): "−0.2929 6.6708 3.4566 3.6111",
    ("layers.1.output", "0,2"): "−0.0134 4.1119 −0.1371 7.4768",
}
LAYER_1_ON = {("layers.0.output", "0,2"): "−0.0551 2.0614 −0.1897 4.0226"}
NORM1_ON = {("layers.0.norm1.output", "0,2"): "0.2981 0.5963 −0.5963 1.7888"}
ATTENTION_ON = {(f"{ATTENTION}.output", "0,2"): "−0.3108 0.9856 −0.5261 1.7135"}
MLP_ON = {("layers.0.mlp.output", "0,2"): "0.1557 0.8758 0.5364 1.7091"}
NORM2_ON = {("layers.0.norm2.output", "0,2"): "−0.1557 0.8758 −0.5364 1.7091"}
WEIGHTS_ON = {(f"{ATTENTION}.weights", "0,0,2"): "0.1571 0.5376 0.3053"}
FINAL_NORM = {
    ("final_norm.output", "0,0"): "0.7427 −0.0236 1.4855 1.1141",
    ("final_norm.output", "0,1"): "−0.0702 1.5995 0.8288 0.8659",
    ("final_norm.output", "0,2"): "−0.0031 0.9637 −0.0321 1.7522",
}
FINAL_NORM_ON = {key: numbers for key, numbers in FINAL_NORM.items() if key[1] == "0,2"}
LOGITS = {("logits", "0,2,90"): "0.9073", ("logits", "0,2,91"): "−0.0911", ("logits", "0,2,92"): "0.0000"}
IDENTITY = ("1.0000 0.0000 0.0000 0.0000", "0.0000 1.0000 0.0000 0.0000",
            "0.0000 0.0000 1.0000 0.0000", "0.0000 0.0000 0.0000 1.0000")
V_HEADS = {
    (f"{ATTENTION}.v_heads", "0,0,0"): "0.7303 −0.3651", (f"{ATTENTION}.v_heads", "0,0,1"): "−0.9608 1.6013",
    (f"{ATTENTION}.v_heads", "0,0,2"): "0.2981 0.5963",
}
TURNED = {
    (f"{ATTENTION}.k_heads", "0,0,0"): "0.7303 −0.3651", (f"{ATTENTION}.k_heads", "0,0,1"): "−0.9608 1.6013",
    (f"{ATTENTION}.k_heads", "0,0,2"): "0.2981 0.5963", (f"{ATTENTION}.q_heads", "0,0,2"): "0.2981 0.5963",
    (f"{ATTENTION}.k_rotated", "0,0,0"): "0.7303 −0.3651", (f"{ATTENTION}.k_rotated", "0,0,1"): "−1.8665 0.0567",
    (f"{ATTENTION}.k_rotated", "0,0,2"): "−0.6663 0.0230", (f"{ATTENTION}.q_rotated", "0,0,2"): "−0.6663 0.0230",
}
PRINTED = {
    "overview": {
        ("input_ids", "0"): "12 45 78", **ATTENTION_ON, **MLP_ON, **LAYER_1_ON, **FINAL_NORM_ON, **LOGITS,
        ("embedding.output", "0,2"): EMBEDDING["embedding.output", "0,2"],
        ("layers.1.output", "0,2"): LAYER_2["layers.1.output", "0,2"],
    },
    "embedding": {
        ("input_ids", "0"): "12 45 78",
        ("embedding.weight", "0"): "0.1000 0.3000 0.2000 0.5000",
        ("embedding.weight", "12"): "0.2000 −0.1000 0.4000 0.3000",
        ("embedding.weight", "45"): "−0.3000 0.5000 0.1000 0.2000",
        ("embedding.weight", "78"): "0.1000 0.2000 −0.2000 0.6000",
        ("embedding.weight", "255"): "0.4000 0.1000 0.3000 0.2000",
        **EMBEDDING,
    },
    "layer": {**EMBEDDING, **NORM1_ON, **ATTENTION_ON, **NORM2_ON, **MLP_ON, **LAYER_1_ON},
    "rmsnorm": {
        **EMBEDDING, **NORM1_ON, ("norm_epsilon", ""): "1.0e−6",
        ("layers.0.norm1.weight", ""): "1.0000 1.0000 1.0000 1.0000",
    },
    "qkv": {
        **NORM1_ON,
        **{(f"{ATTENTION}.{name}", "0,2"): "0.2981 0.5963 −0.5963 1.7888" for name in "qkv"},
        **{(f"{ATTENTION}.{name}_heads", "0,0,2"): "0.2981 0.5963" for name in "qkv"},
        **{(f"{ATTENTION}.{name}_heads", "0,1,2"): "−0.5963 1.7888" for name in "qkv"},
        **{(f"{ATTENTION}.W{name}", str(row)): IDENTITY[row] for name in "qkv" for row in range(4)},
    },
    "rope": {
        **TURNED, **V_HEADS, ("rope.positions", ""): "0 1 2", ("rope.frequencies", ""): "1.0000",
    },
    "scores": {
        **{key: numbers for key, numbers in TURNED.items() if "rotated" in key[0]}, **WEIGHTS_ON,
        (f"{ATTENTION}.scores", "0,0,2"): "−0.3500 0.8803 0.3143",
        (f"{ATTENTION}.masked_scores", "0,0,2"): "−0.3500 0.8803 0.3143",
        ("causal_mask", "0"): "0.0000 −∞ −∞", ("causal_mask", "1"): "0.0000 0.0000 −∞",
        ("causal_mask", "2"): "0.0000 0.0000 0.0000",
        # 9 %, 24 %, 67 % and 0 %, 0 %, 100 %
        ("softmax_demo.small", ""): "1.0000 2.0000 3.0000",
        ("softmax_demo.small_weights", ""): "0.0900 0.2447 0.6652",
        ("softmax_demo.large", ""): "10.0000 20.0000 30.0000",
        ("softmax_demo.large_weights", ""): "2.1e−9 4.5e−5 1.0000",
    },
    "values": {
        **WEIGHTS_ON, **V_HEADS, **ATTENTION_ON,
        (f"{ATTENTION}.head_output", "0,0,2"): "−0.3108 0.9856",
        (f"{ATTENTION}.head_output", "0,1,2"): "−0.5261 1.7135",
        (f"{ATTENTION}.merged", "0,2"): "−0.3108 0.9856 −0.5261 1.7135",
        **{(f"{ATTENTION}.Wo", str(row)): IDENTITY[row] for row in range(4)},
    },
    "residual": {**EMBEDDING, **ATTENTION_ON, **MLP_ON, **LAYER_1_ON},
    "mlp": {
        **NORM2_ON, **MLP_ON,
        ("layers.0.mlp.up", "0,2"): "−0.1557 0.8758 −0.5364 1.7091 0.1557 −0.8758 0.5364 −1.7091",
        ("layers.0.mlp.activation", "0,2"): "0.0000 0.8758 0.0000 1.7091 0.1557 0.0000 0.5364 0.0000",
        **{("layers.0.mlp.W_up", str(row)): f"{IDENTITY[row]} {IDENTITY[row].replace('1.', '−1.')}"
           for row in range(4)},
        **{("layers.0.mlp.W_down", str(row)): IDENTITY[row % 4] for row in range(8)},
    },
    "layers": {**EMBEDDING, **LAYER_1_ON, **LAYER_2},
    "final_norm": {
        **LAYER_2, **FINAL_NORM, ("final_norm.rms", "0"): "4.2354 4.1705 4.2670",
        ("final_norm.weight", ""): "1.0000 1.0000 1.0000 1.0000",
    },
    "lm_head": {
        **FINAL_NORM_ON, **LOGITS,
        ("lm_head.weight", "90"): "0.2000 0.4000 0.1000 0.3000",
        ("lm_head.weight", "91"): "−0.2000 0.1000 0.4000 −0.1000",
        ("lm_head.weight", "92"): "0.0000 0.0000 0.0000 0.0000",
        # printed as −0.00062, 0.38548, −0.00321, 0.52566, made of rounded factors
        ("contributions", "90"): "−0.0006 0.3855 −0.0032 0.5257",
    },
}


@pytest.mark.parametrize(("lesson", "language"), by_turns(LESSONS))
def test_lesson(visit: Visit, lesson: str, language: str) -> None:
    """One opening of the page serves all of this: words, numbers, structure, contrast, screenshots."""
    reader = visit(color_scheme="light")
    reader.open(lesson, lang=language)

    expect(reader.page.locator("h1")).to_have_text(lesson_title(lesson, language), use_inner_text=True)
    wait_for_parts(reader)
    headings = reader.page.locator("h5").all_inner_texts()
    example = label("example_cats", language)
    assert headings == [label(f"part_{part}", language).format(example=example).replace("*", "") for part in PARTS]
    assert reader.tokens == ["Cats 12", "sit 45", "on 78"]
    assert re.fullmatch(
        rf"{label('next_token', language)} mats 0\.9073 \(0\.96\s?%\)", reader.in_strip(".gb-prediction").inner_text()
    )
    assert shown_numbers(reader, PRINTED[lesson]) == PRINTED[lesson]
    assert_readable(reader, f"{lesson}-{language}", LOOKS[language])


# What the second article prints, to its digits: rows of embeddings, the query, scores, probabilities.
TODAY = {
    "embedding": {
        ("embedding.weight", "1024"): "0.1000 −0.2000 0.3000", ("embedding.weight", "2048"): "0.4000 0.1000 −0.5000",
        ("embedding.weight", "3072"): "0.2000 0.7000 0.1000", ("embedding.weight", "4096"): "−0.3000 0.5000 0.2000",
    },
    "block": {
        (f"{ATTENTION}.scores", "0,0,0"): "2.3000", (f"{ATTENTION}.scores", "0,0,1"): "0.5000 3.1000",
        (f"{ATTENTION}.scores", "0,0,2"): "0.1000 2.2000 1.8000",
        (f"{ATTENTION}.scores", "0,0,3"): "0.2000 1.1000 2.0000 2.5000",
        (f"{ATTENTION}.scores", "0,0,4"): "0.3000 0.8000 0.9000 1.2000 1.5000",
        (f"{ATTENTION}.weights", "0,0,4"): "0.0976 0.1608 0.1778 0.2399 0.3239",
        (f"{ATTENTION}.q", "0,4"): "0.8000 0.1000",
        ("probabilities", "0,4,5120"): "0.8500", ("probabilities", "0,4,6144"): "0.1000",
        ("probabilities", "0,4,7168"): "0.0200",
    },
}


@pytest.mark.parametrize(("lesson", "language"), by_turns(OTHER_LESSONS))
def test_other_lesson(visit: Visit, lesson: str, language: str) -> None:
    """The same for the second article's lessons and the labs, with its own model."""
    reader = visit(color_scheme="light")
    reader.open(lesson, lang=language, preset="today")
    expect(reader.page.locator("h1")).to_have_text(lesson_title(lesson, language), use_inner_text=True)
    wait_for_parts(reader)
    # with their meaning, where it is not the reader's language
    meanings = glosses.read("today", language)
    assert reader.tokens == [
        " ".join(filter(None, [word, token, meanings.get(word)]))
        for word, token in (("今", "1024"), ("天", "2048"), ("天", "2048"), ("气", "3072"), ("真", "4096"))
    ]
    prediction = reader.in_strip(".gb-prediction").inner_text()
    # where a token is chosen, the strip says that its percentage is before the filters
    start = rf"{label('next_token', language)} 好 (?:good )?"
    assert re.fullmatch(start + r"\d+\.\d{4} \(85\.00\s?%(?:[,，] ?.+)?\)", prediction)
    printed = TODAY.get(lesson, {})
    assert shown_numbers(reader, printed) == printed
    assert_readable(reader, f"{lesson}-{language}", LOOKS[language])


@pytest.mark.parametrize("lesson", TODAY)
def test_numbers_of_the_second_article(reader: Reader, lesson: str) -> None:
    reader.open(lesson, preset="today")
    assert shown_numbers(reader, TODAY[lesson]) == TODAY[lesson]
