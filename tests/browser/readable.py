"""What every page must be: free of stray words, sound in structure, no wider than the screen, and legible."""

from __future__ import annotations

import os
import re

from tests.browser.support import BUILD, Json, Reader

Looks = tuple[tuple[str, int], ...]
LOOKS: dict[str, Looks] = {"en": (("light", 1440), ("dark", 390)), "zh": (("dark", 1440), ("light", 390))}
SCREENSHOTS = BUILD / "screenshots"
TALLEST = 6000
LEAST_CONTRAST = 4.5
PARTS = ("problem", "idea", "structure", "example", "try")


def wait_for_parts(reader: Reader) -> None:
    """Wait until all parts of the prose are there, which may come after the board."""
    reader.page.locator("h5").nth(len(PARTS) - 1).wait_for()


def assert_readable(reader: Reader, name: str, looks: Looks) -> None:
    """No stray words, sound structure, no scrolling sideways, enough contrast; a picture of each look.

    A look is a scheme and a width. Between them the two languages show all four: colours and breaks hardly
    depend on the words, and these pages are long.
    """
    assert leftovers(reader) == []
    assert reader.message() is None
    assert faults_of_structure(reader) == []
    reader.page.wait_for_function("""() => [...document.querySelectorAll("[data-testid=stPlotlyChart]")]
      .every((chart) => chart.querySelector(".main-svg"))""")
    for scheme, width in looks:
        reader.page.emulate_media(color_scheme=scheme)
        reader.page.wait_for_function(
            "(scheme) => document.querySelectorAll(`.gb[data-theme]:not([data-theme=${scheme}])`).length === 0",
            arg=scheme,
        )
        reader.page.set_viewport_size({"width": width, "height": 900})
        assert sideways(reader) == []
        screenshot(reader, f"{name}-{scheme}-{width}", width)
        # colours on their way from one theme to the other are no colours of the design
        # what follows a scroll position never ends
        reader.page.wait_for_function("""() => document.getAnimations()
          .every((each) => each.timeline !== document.timeline || each.playState !== "running")""")
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
    """The whole page as one picture, where pictures are asked for: they take a third of the time.

    Streamlit scrolls an inner box, so the window grows to hold it.
    """
    if "GLASSBOX_SCREENSHOTS" not in os.environ:
        return
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
        // a table of links has their stops
        if (stops !== 1 && !table.querySelector("button")) faults.push(`${name}: ${stops} tab stops`);
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
