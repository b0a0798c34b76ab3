// A slider for a control of the lesson, and the pace at which a computation that takes long goes on.

const PAGE_LINKS = '[data-testid="stSidebarNav"] a, [data-testid="stPageLink"] a';

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
