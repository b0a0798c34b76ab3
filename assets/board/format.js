// Numbers, references and text as the board shows and reads them.

const MINUS = "\u2212";
const FIXED_DECIMALS = 4;
const SMALLEST_FIXED = 0.00005;
const FIXED_LIMIT = 1e5;
// below this a formula could not be checked with four decimals
const SMALLEST_IN_FORMULA = 0.001;
const STEPS_PER_RANGE = 80;
const COMPARED_DIGITS = 10;

/** Little-endian Float64 numbers out of base64. */
function decodeFloats(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return new Float64Array(bytes.buffer);
}

/** Single numbers come as JSON, in which infinities and NaN are words. */
function numberFromWire(value) {
  return { inf: Infinity, "-inf": -Infinity, nan: NaN }[value] ?? value;
}

/** Equality in which NaN equals itself and −0 equals 0, as a reader would say. */
function sameNumber(a, b) {
  return a === b || (a !== a && b !== b);
}

function withTypographicMinus(text) {
  return text.replace(/-/g, MINUS);
}

function formatNumber(value, isInteger = false) {
  if (value === null || value === undefined) return "";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : MINUS + "∞";
  if (isInteger && Number.isInteger(value)) return withTypographicMinus(String(value));
  const size = Math.abs(value);
  if (size === 0) return (0).toFixed(FIXED_DECIMALS);
  if (size < SMALLEST_FIXED) return formatExponential(value, 1);
  if (size >= FIXED_LIMIT) return formatExponential(value, 1);
  return withTypographicMinus(value.toFixed(FIXED_DECIMALS));
}

/** As operands and results of a formula are written: three digits at least, however small the number. */
function formatInFormula(value, isInteger = false) {
  const size = Math.abs(value);
  return size > 0 && size < SMALLEST_IN_FORMULA ? formatExponential(value, 2) : formatNumber(value, isInteger);
}

function formatExponential(value, decimals) {
  return withTypographicMinus(value.toExponential(decimals).replace("e+", "e"));
}

/** As many digits as two ways to one number are compared in. */
function formatLong(value) {
  return Number.isFinite(value) ? withTypographicMinus(String(Number(value.toPrecision(COMPARED_DIGITS)))) : formatNumber(value);
}

/** A difference always carries its sign. */
function formatDelta(difference) {
  return (difference < 0 ? MINUS : "+") + formatNumber(Math.abs(difference));
}

/** All digits, for tooltips. */
function formatExact(value) {
  return Number.isFinite(value) ? withTypographicMinus(String(value)) : formatNumber(value);
}

/** Short enough for a narrow field; an entry left as it was is never sent, so no digit is lost. */
function formatForEntry(value) {
  return Number.isFinite(value) ? String(Number(value.toPrecision(6))) : formatNumber(value);
}

function formatPercent(share) {
  const percent = share * 100;
  if (percent !== 0 && percent < 0.005) return formatExponential(percent, 1);
  return percent.toFixed(2);
}

const NUMBER_PATTERN = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const MINUS_INFINITY_PATTERN = /^-(inf|infinity|∞)$/i;

/** What was typed: `{value}`, or `{refusal}` with the key of the label that says why not. */
function parseNumber(text, allowsMinusInfinity) {
  const plain = text.trim().normalize("NFKC").replaceAll(MINUS, "-");
  if (MINUS_INFINITY_PATTERN.test(plain)) {
    return allowsMinusInfinity ? { value: -Infinity } : { refusal: "minus_infinity_not_here" };
  }
  if (/[,，]/.test(plain)) {
    // 1,5 may mean 1.5 or 15: the reader has to say which.
    const looksLikeNumber = NUMBER_PATTERN.test(plain.replace(/[,，]/g, ""));
    return { refusal: looksLikeNumber ? "comma" : "number" };
  }
  const value = NUMBER_PATTERN.test(plain) ? Number(plain) : NaN;
  return Number.isFinite(value) ? { value } : { refusal: "number" };
}

/** Additions of steps leave a tail of binary noise (0.30000000000000004): cut it off. */
function tidy(value) {
  return Number(value.toPrecision(12));
}

/** A step of 1, 2 or 5 times a power of ten, so that stepping lands on round numbers; whole numbers go one by one. */
function stepOf([low, high], isWhole = false) {
  if (isWhole) return 1;
  const rough = (high - low) / STEPS_PER_RANGE;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= rough * 0.999) ?? 10;
  return tidy(factor * power);
}

/** Where the last step ends that is needed to reach the high end: beyond it, where the steps do not divide the range. */
function lastStep([low, high], step) {
  return tidy(low + Math.ceil(tidy((high - low) / step)) * step);
}

function stepFactor(event) {
  return event.shiftKey ? 10 : event.altKey ? 0.1 : 1;
}

/** The ends of a slider: short. */
function formatBound(value) {
  return withTypographicMinus(String(Number(value.toPrecision(3))));
}

function referenceOf(tensor, index) {
  return `${tensor}[${index.join(",")}]`;
}

/** One DOM element. Text goes in as text, never as markup. */
function element(tag, className = "", text = null) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== null) node.textContent = text;
  return node;
}

function button(className, text, onClick, title = null) {
  const node = element("button", className, text);
  node.type = "button";
  if (title) {
    node.title = title;
    node.setAttribute("aria-label", title);
  }
  node.addEventListener("click", onClick);
  return node;
}

/** Writing the same text again would still cost a layout, so compare first. */
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Keeps `data-theme` in step with Streamlit's theme, which exists only as variables inside the
 * component. The probe's colour is one of them, and a transition reports that it changed.
 */
function watchTheme(root) {
  const probe = element("i", "gb-theme-probe");
  probe.setAttribute("aria-hidden", "true");
  const apply = () => {
    const theme = isDark(getComputedStyle(probe).backgroundColor) ? "dark" : "light";
    if (root.dataset.theme !== theme) root.dataset.theme = theme;
  };
  probe.addEventListener("transitionend", apply);
  root.querySelector(":scope > .gb-theme-probe")?.remove();
  root.append(probe);
  apply();
}

function isDark(color) {
  const [red, green, blue, alpha = 1] = (color.match(/[\d.]+/g) ?? []).map(Number);
  return alpha > 0 && 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128;
}
