"""Every lesson opens, in both languages, shows the article's numbers, and can be read by everybody."""

from __future__ import annotations

import re

import pytest

from tests.browser.conftest import Visit
from tests.browser.support import ATTENTION, BUILD, LANGUAGES, LESSONS, OTHER_LESSONS, Json, Reader, label, lesson_title

SCREENSHOTS = BUILD / "screenshots"
WIDTHS = (1440, 390)
SCHEMES = ("light", "dark")
TALLEST = 6000
LEAST_CONTRAST = 4.5
PARTS = ("problem", "idea", "structure", "example", "try")

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


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("lesson", LESSONS)
def test_lesson(visit: Visit, lesson: str, language: str) -> None:
    """One opening of the page serves all of this: words, numbers, structure, contrast, screenshots."""
    reader = visit(color_scheme="light")
    reader.open(lesson, lang=language)

    assert reader.page.inner_text("h1") == lesson_title(lesson, language)
    wait_for_parts(reader)
    headings = reader.page.locator("h5").all_inner_texts()
    example = label("example_cats", language)
    assert headings == [label(f"part_{part}", language).format(example=example).replace("*", "") for part in PARTS]
    assert reader.tokens == ["Cats 12", "sit 45", "on 78"]
    assert re.fullmatch(
        rf"{label('next_token', language)} mats 0\.9073 \(0\.96\s?%\)", reader.in_strip(".gb-prediction").inner_text()
    )
    assert shown_numbers(reader, PRINTED[lesson]) == PRINTED[lesson]
    assert_readable(reader, f"{lesson}-{language}")


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


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("lesson", OTHER_LESSONS)
def test_other_lesson(visit: Visit, lesson: str, language: str) -> None:
    """The same for the second article's lessons and the labs, with its own model."""
    reader = visit(color_scheme="light")
    reader.open(lesson, lang=language, preset="today")
    assert reader.page.inner_text("h1") == lesson_title(lesson, language)
    wait_for_parts(reader)
    assert reader.tokens == ["今 1024", "天 2048", "天 2048", "气 3072", "真 4096"]
    prediction = reader.in_strip(".gb-prediction").inner_text()
    # where a token is chosen, the strip says that its percentage is before the filters
    assert re.fullmatch(rf"{label('next_token', language)} 好 \d+\.\d{{4}} \(85\.00\s?%(?:[,，] ?.+)?\)", prediction)
    printed = TODAY.get(lesson, {})
    assert shown_numbers(reader, printed) == printed
    # one scheme a language: these pages are long, and their colours do not depend on the words
    assert_readable(reader, f"{lesson}-{language}", SCHEMES[LANGUAGES.index(language):][:1])


@pytest.mark.parametrize("lesson", TODAY)
def test_numbers_of_the_second_article(reader: Reader, lesson: str) -> None:
    reader.open(lesson, preset="today")
    assert shown_numbers(reader, TODAY[lesson]) == TODAY[lesson]


def wait_for_parts(reader: Reader) -> None:
    """Wait until all parts of the prose are there, which may come after the board."""
    reader.page.locator("h5").nth(len(PARTS) - 1).wait_for()


def assert_readable(reader: Reader, name: str, schemes: tuple[str, ...] = SCHEMES) -> None:
    """No stray words, sound structure, no scrolling sideways, enough contrast; a picture of each look."""
    assert leftovers(reader) == []
    assert reader.message() is None
    assert faults_of_structure(reader) == []
    reader.page.wait_for_function("""() => [...document.querySelectorAll("[data-testid=stPlotlyChart]")]
      .every((chart) => chart.querySelector(".main-svg"))""")
    for scheme in schemes:
        reader.page.emulate_media(color_scheme=scheme)
        reader.page.wait_for_function(
            "(scheme) => document.querySelectorAll(`.gb[data-theme]:not([data-theme=${scheme}])`).length === 0",
            arg=scheme,
        )
        for width in WIDTHS:
            reader.page.set_viewport_size({"width": width, "height": 900})
            assert sideways(reader) == []
            screenshot(reader, f"{name}-{scheme}-{width}", width)
        # colours on their way from one theme to the other are no colours of the design
        reader.page.wait_for_function("document.getAnimations().every((each) => each.playState !== 'running')")
        assert faint_texts(reader) == []


def shown_numbers(reader: Reader, printed: dict[tuple[str, str], str]) -> Json:
    """What the page shows in the places of the article's numbers."""
    texts = dict(reader.page.eval_on_selector_all(
        "td[data-ref]", "(cells) => cells.map((td) => [td.dataset.ref, td.innerText])"
    ))
    shown = {}
    for (tensor, start), numbers in printed.items():
        whole = f"{tensor}[{start}]"
        count = len(numbers.split())
        references = [whole] if whole in texts else [
            f"{tensor}[{','.join(filter(None, [start, str(last)]))}]" for last in range(count)
        ]
        shown[tensor, start] = " ".join(texts.get(reference, "?") for reference in references)
    return shown


def leftovers(reader: Reader) -> list[str]:
    """Words that only a program would write, outside the pseudocode; and Markdown that was not read."""
    text: str = reader.page.evaluate("""() => {
      const copy = document.querySelector('[data-testid="stMain"]').cloneNode(true);
      for (const node of copy.querySelectorAll("pre, style, script, .katex, annotation")) node.remove();
      return copy.textContent;
    }""")
    return re.findall(r".{0,30}(?:\bNone\b|undefined|\bNaN\b|\[object|[{}]|\*\*|`).{0,30}", text)


def sideways(reader: Reader) -> list[str]:
    """What makes the page itself scroll sideways. A wide grid scrolls in its own window instead."""
    return list(reader.page.evaluate("""() => {
      const main = document.querySelector('[data-testid="stMain"]');
      return [document.scrollingElement, main].filter((box) => box.scrollWidth > box.clientWidth)
        .map((box) => `${box.tagName} ${box.scrollWidth} > ${box.clientWidth}`);
    }"""))


def screenshot(reader: Reader, name: str, width: int) -> None:
    """The whole page as one picture: Streamlit scrolls an inner box, so the window grows to hold it."""
    height = reader.page.evaluate("""() => document.querySelector('[data-testid="stMain"]').scrollHeight""")
    reader.page.set_viewport_size({"width": width, "height": min(height + 20, TALLEST)})
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    reader.page.screenshot(path=SCREENSHOTS / f"{name}.png", animations="disabled")


def faults_of_structure(reader: Reader) -> list[str]:
    """What a screen reader or a keyboard would stumble over."""
    return list(reader.page.evaluate("""() => {
      const faults = [];
      for (const table of document.querySelectorAll(".gb-board table")) {
        const name = table.getAttribute("aria-label");
        if (!name) faults.push("a table without a label");
        if (!table.caption?.textContent) faults.push(`${name}: no caption`);
        for (const header of table.querySelectorAll("th")) {
          if (!["row", "col"].includes(header.scope)) faults.push(`${name}: a header without a scope`);
        }
        const stops = table.querySelectorAll('td[tabindex="0"]').length;
        if (stops !== 1) faults.push(`${name}: ${stops} tab stops`);
      }
      for (const control of document.querySelectorAll("button, [role=button], input, select, summary")) {
        if (!control.checkVisibility()) continue;
        const labelled = (control.getAttribute("aria-labelledby") ?? "").split(" ")
          .map((id) => document.getElementById(id)?.textContent);
        const named = [control.textContent, control.getAttribute("aria-label"), control.title, ...labelled,
          ...[...control.labels ?? []].map((label) => label.textContent)];
        if (!named.some((text) => text?.trim())) faults.push(`no name: ${control.outerHTML.slice(0, 200)}`);
      }
      const ids = [...document.querySelectorAll(".gb [id]")].map((node) => node.id);
      if (new Set(ids).size !== ids.length) faults.push("an id twice");
      return faults;
    }"""))


def faint_texts(reader: Reader) -> list[str]:
    """Texts of the page with too little contrast to what is painted behind them."""
    return list(reader.page.evaluate("""(least) => {
      const parse = (text) => {
        const [r, g, b, a = 1] = (text.match(/-?[\\d.]+(e-?\\d+)?/g) ?? [0, 0, 0, 0]).map(Number);
        return text.startsWith("color(srgb") ? { rgb: [r * 255, g * 255, b * 255], a } : { rgb: [r, g, b], a };
      };
      const over = ({ rgb, a }, below) => rgb.map((part, i) => part * a + below[i] * (1 - a));
      const luminance = (rgb) => rgb
        .map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
        .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
      const ratio = (one, other) => {
        const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
        return (high + 0.05) / (low + 0.05);
      };
      const page = parse(getComputedStyle(document.querySelector(".stApp")).backgroundColor).rgb;
      const paintings = (node) => {  // every colour that may lie behind a text: a hatch has two
        if (!node) return [page];
        const style = getComputedStyle(node);
        const behind = paintings(node.parentElement).map((below) => over(parse(style.backgroundColor), below));
        const hatch = (style.backgroundImage.match(/(rgba?|color)\\([^)]*\\)/g) ?? []).map(parse);
        return [...behind, ...hatch.flatMap((colour) => behind.map((below) => over(colour, below)))];
      };
      const opacity = (node) => (node ? Number(getComputedStyle(node).opacity) * opacity(node.parentElement) : 1);
      const passed = `:disabled, .gb-hidden, .katex-mathml, [data-testid=stIconMaterial], svg, option, style, script`;
      const faults = new Set();
      for (const node of document.querySelectorAll(".stApp *")) {
        const text = [...node.childNodes].filter((each) => each.nodeType === 3 && each.data.trim())
          .map((each) => each.data.trim()).join("");
        if (!text || node.closest(passed) || !node.checkVisibility()) continue;
        const style = getComputedStyle(node);
        if (style.color === "rgba(0, 0, 0, 0)") continue;  // the headers that a dense grid leaves out
        const behind = paintings(node);
        const colour = parse(style.color);
        const ink = { rgb: colour.rgb, a: colour.a * opacity(node) };
        const worst = Math.min(...behind.map((below) => ratio(over(ink, below), below)));
        if (worst < least) faults.add(`${worst.toFixed(2)} ${node.tagName}.${node.className}: ${text.slice(0, 30)}`);
      }
      return [...faults];
    }""", LEAST_CONTRAST))
