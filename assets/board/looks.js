// How the numbers of a grid look: what is written in a cell, and how strongly it is shaded.

const ROUNDING = 1e-12;
const MOVE_STRENGTH = 0.35;

/** The look of one column: usually the grid's own; in a table of several tensors each has its own. */
class Look {
  constructor({ scale, integer = false, names = false, moves = false }, baseline) {
    Object.assign(this, { isShare: scale === "share", isInteger: integer, hasNames: names, isMove: moves, baseline });
    this.largestBaseline = largestMagnitude(baseline);
    // smaller differences are rounding: they are not marked, and Δ does not magnify them
    this.rounding = this.largestBaseline * ROUNDING;
  }

  isUnchanged(value, baseline) {
    return sameNumber(value, baseline) || Math.abs(value - baseline) <= this.rounding;
  }

  /** What full shading stands for. */
  scaleFor(mode, values) {
    if (mode !== "delta") return values === this.baseline ? this.largestBaseline : Math.max(this.largestBaseline, largestMagnitude(values));
    let largest = 0;
    for (let i = 0; i < values.length; i++) {
      const size = Math.abs(values[i] - this.baseline[i]);
      if (Number.isFinite(size) && size > Math.max(largest, this.rounding)) largest = size;
    }
    return largest;
  }

  /** The text of a cell; `names` are the words of token ids. */
  textOf(value, baseline, mode, names) {
    if (this.hasNames) return this.nameOf(value, baseline, mode, names);
    if (this.isMove && mode !== "delta") return moveText(value);
    return mode === "delta" ? deltaText(value, baseline, !this.isUnchanged(value, baseline)) : formatNumber(value, this.isInteger);
  }

  /** A difference of ids says nothing: Δ shows the new token. */
  nameOf(value, baseline, mode, names) {
    const name = names[value] ?? `#${value}`;
    if (mode !== "delta") return name;
    return sameNumber(value, baseline) ? "·" : `→ ${name}`;
  }

  /** Names and counts are not shaded, amounts are. */
  shadeOf(value, baseline, mode, scale) {
    const isBlank = mode === "delta" && this.isUnchanged(value, baseline);
    const shade = mode === "delta" ? value - baseline : value;
    const full = this.isShare && mode !== "delta" ? 1 : scale;
    // up or down says more than how far, which may be tens of thousands of places
    if (this.isMove && mode !== "delta") return { heat: heatOf(value, isBlank), strength: value ? MOVE_STRENGTH : 0 };
    return { heat: heatOf(shade, isBlank), strength: this.isInteger || this.hasNames ? 0 : shadeStrength(shade, full) };
  }
}

/** Places gained or lost, with a sign that needs no colour. */
function moveText(value) {
  const places = formatNumber(Math.abs(value), true);
  return value > 0 ? `▲ ${places}` : value < 0 ? `▼ ${places}` : places;
}

/** Whether a cell holds a count, a seed or a token id. */
function isWhole({ grid, column }) {
  const look = grid.lookOf(column);
  return look.isInteger || look.hasNames;
}

/** What a token means in the reader's language, where it needs that. */
function glossOf({ gloss }) {
  return gloss ? [element("span", "gb-gloss", gloss)] : [];
}

/** A token that may come next, and its logit. */
function candidateOf(tag, css, token, logit) {
  const candidate = element(tag, css, `${token.text} `);
  candidate.append(...glossOf(token).flatMap((gloss) => [gloss, " "]), formatNumber(logit));
  return candidate;
}

function headerCell(scope, { text, sub, gloss }) {
  const header = element("th", "", text);
  header.scope = scope;
  if (sub !== undefined && sub !== null && sub !== "") header.append(" ", element("small", "", sub));
  header.append(...glossOf({ gloss }));
  return header;
}

function largestMagnitude(numbers) {
  let largest = 0;
  for (const number of numbers) {
    const size = Math.abs(number);
    if (size > largest && Number.isFinite(size)) largest = size;
  }
  return largest;
}

function deltaText(value, baseline, changed) {
  if (sameNumber(value, baseline)) return "·";
  if (!Number.isFinite(value) || !Number.isFinite(baseline)) return `→ ${formatNumber(value)}`;
  return changed ? formatDelta(value - baseline) : "·";
}

function heatOf(shade, isBlank) {
  if (isBlank || shade === 0) return "zero";
  if (!Number.isFinite(shade)) return "masked";
  return shade > 0 ? "positive" : "negative";
}

function shadeStrength(shade, scale) {
  return Number.isFinite(shade) && scale > 0 ? Math.min(1, Math.abs(shade) / scale) : 0;
}
