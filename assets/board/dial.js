// Sliders of a lesson, for a cell or for a control, and the pace at which a computation that takes long goes on.

const LOGARITHMIC_STEPS = 100;
const PAGE_LINKS = '[data-testid="stSidebarNav"] a, [data-testid="stPageLink"] a';

/** One drag of a slider, or one key held on it, is one gesture: one step of undo. */
function enableGestures(board, slider, onInput) {
  let gesture = board.newGesture();
  const start = (event) => event.repeat || (gesture = board.newGesture());
  slider.addEventListener("pointerdown", start);
  slider.addEventListener("keydown", start);
  slider.addEventListener("input", () => onInput(gesture));
}

/** A labelled slider bound to one cell; on a logarithmic one each step multiplies by the same ratio. */
function buildSlider(board, item) {
  const cell = board.addGrid(item.grid, { isShown: false }).cells[0];
  const perStep = Math.log(item.max / item.min) / LOGARITHMIC_STEPS;
  const toPosition = item.log ? (value) => Math.log(value / item.min) / perStep : Number;
  const toValue = item.log ? (position) => item.min * Math.exp(position * perStep) : Number;
  const label = element("label", "gb-control");
  const slider = element("input", "gb-slider");
  const shown = element("output", "gb-control-value");
  Object.assign(slider, {
    type: "range",
    min: item.log ? 0 : item.min,
    max: item.log ? LOGARITHMIC_STEPS : item.max,
    step: item.log ? 1 : item.step,
  });
  const unit = cell.grid.specification.integer ? 1 : item.step;
  /** Round numbers. A key moves by one of them at least: at the low end of a logarithmic slider a step is less. */
  const roundFrom = (value) => {
    const round = tidy(Math.round(value / unit) * unit);
    return round === cell.value && !slider.matches(":active") ? round + Math.sign(value - cell.value) * unit : round;
  };
  enableGestures(board, slider, (gesture) => {
    const rounded = roundFrom(toValue(Number(slider.value)));
    board.edit(cell, tidy(Math.min(item.max, Math.max(item.min, rounded))), gesture, true);
  });
  label.append(element("span", "gb-control-label", item.label), slider, shown);
  board.addControl(() => {
    const text = formatNumber(cell.value, cell.grid.specification.integer);
    setText(shown, text);
    slider.setAttribute("aria-valuetext", text);
    if (!slider.matches(":active")) slider.value = toPosition(cell.value);
  });
  return label;
}

/** A labelled slider over whole numbers from 0; how far it goes comes with the live data. */
function buildDial(board, { control, label: words }) {
  const label = element("label", "gb-control gb-dial");
  const slider = element("input", "gb-slider");
  const shown = element("output", "gb-control-value");
  let sent = null;
  Object.assign(slider, { type: "range", min: 0, step: 1 });
  const read = () => {
    const { value, high } = board.live.dials[control];
    return { value: sent && !board.isAnswered(sent) ? sent.value : value, high };
  };
  const draw = () => {
    const { value, high } = read();
    Object.assign(slider, { max: high, disabled: high === 0 });
    if (!slider.matches(":active")) slider.value = value;
    setText(shown, `${value} / ${high}`);
    slider.setAttribute("aria-valuetext", shown.textContent);
  };
  slider.addEventListener("input", () => {
    sent = board.send({ type: "control", name: control, value: Number(slider.value) });
    draw();
  });
  label.append(element("span", "gb-control-label", words), slider, shown);
  board.addControl(draw);
  return label;
}

/** While Python says that there is more to do, asks for it so many milliseconds after each answer; nobody waits. */
class Portions {
  constructor(board, signal) {
    this.board = board;
    // A request that overtakes the way to another page would lead Streamlit back to this one.
    document.addEventListener("click", ({ target }) => target.closest?.(PAGE_LINKS) && clearTimeout(this.timer), { capture: true, signal });
  }

  draw(pause) {
    clearTimeout(this.timer);
    if (pause) this.timer = setTimeout(() => this.ask(), pause);
    // also where the page was left with a request on its way
    else this.board.outbox.giveUp("go_on");
  }

  ask() {
    const { outbox } = this.board;
    if (!outbox.unsent().some(({ type }) => type === "go_on")) outbox.send({ type: "go_on" });
  }
}
