// Presenting a lesson to a class: the prose part by part, then the board section by section.

// the parts of the prose stand in blocks that hold no other block; cards and the switchboard are a lesson's own
const STEPS = `.st-key-prose [data-testid="stVerticalBlock"]:not(:has([data-testid="stVerticalBlock"])),
  .st-key-switchboard, .st-key-switchboard_report, [class*="st-key-card_"], .gb-board .gb-section,
  .stElementContainer:has(> [data-testid="stFullScreenFrame"] [data-testid="stPlotlyChart"])`;
const SHOWN = "data-glassbox-shown";
// what has a use of its own for Escape
const ESCAPABLE = `${TEXT_ENTRY}, form, dialog, .gb-dock, .gb-table, [role=combobox], [role=option]`;

/** The style sheet hides what is not marked as shown, so that nothing flashes up before its turn. */
class Presentation {
  constructor(board) {
    Object.assign(this, { board, isOn: false, shown: 0, opened: board.addressBar.presented });
    // Streamlit may draw a part of the page anew at any time, and without the mark
    this.observer = new MutationObserver(() => this.mark());
  }

  /** After every answer: a lesson begins with its title alone, or shows everything to those who come back. */
  draw() {
    const { presenting } = this.board.live;
    if (presenting !== this.isOn) {
      this.isOn = presenting;
      this.shown = 0;
      if (presenting) this.observer.observe(document.querySelector('[data-testid="stMain"]') ?? document.body, { childList: true, subtree: true });
      else this.observer.disconnect();
    }
    if (this.path !== location.pathname) {
      const isFirst = this.path === undefined;
      this.path = location.pathname;
      this.shown = this.isGoingBack ? Infinity : isFirst ? this.opened : 0;
      this.isGoingBack = false;
    }
    this.mark();
  }

  get steps() {
    return [...document.querySelectorAll(STEPS)];
  }

  mark() {
    if (!this.isOn) return void this.board.strip?.drawSteps(null);
    const { steps } = this;
    steps.forEach((step, position) => step.toggleAttribute(SHOWN, position < this.shown));
    const shown = Math.min(this.shown, steps.length);
    this.board.strip?.drawSteps({ shown, count: steps.length });
    this.board.addressBar.showPresented(shown);
  }

  /** Space, → and PageDown, as presenters' remote controls send it, lead on; their opposites lead back. */
  onKey({ key, shiftKey, target }) {
    if (key === "Escape") {
      if (target.closest?.(ESCAPABLE)) return false;
      this.turn(false);
      return true;
    }
    const direction = { ArrowRight: 1, PageDown: 1, " ": shiftKey ? -1 : 1, ArrowLeft: -1, PageUp: -1 }[key];
    if (!direction || (shiftKey && key !== " ") || target.closest?.(INTERACTIVE)) return false;
    this.step(direction);
    return true;
  }

  /** One step on or back; beyond the last and before the first is the next lesson. */
  step(direction) {
    const { steps } = this;
    const { previous, next } = this.board.live.strip;
    const shown = Math.min(this.shown, steps.length) + direction;
    if (shown >= 0 && shown <= steps.length) {
      this.shown = shown;
      this.mark();
      this.lookAt(steps[shown - 1] ?? document.querySelector(".st-key-prose"));
      return;
    }
    const lesson = (direction > 0 ? next : previous)?.lesson;
    if (!lesson) return;
    this.isGoingBack = direction < 0;
    this.board.go(lesson);
  }

  /** A word of the prose may point to what has not had its turn. */
  showUpTo(node) {
    if (!this.isOn) return;
    const place = this.steps.findIndex((step) => step.contains(node));
    this.shown = Math.max(this.shown, place + 1);
    this.mark();
  }

  /** Streamlit puts the next lesson's words into the elements of this one: no mark may stay on them. */
  clear() {
    this.shown = 0;
    this.mark();
  }

  lookAt(step) {
    step?.scrollIntoView({ block: "nearest", behavior: REDUCED_MOTION.matches ? "instant" : "smooth" });
  }

  turn(value) {
    this.board.send({ type: "present", value });
  }
}

/** How far the lesson has got, with buttons for those who have no keys; the first steps name the keys. */
function buildSteps(board, labels, { shown, count }) {
  const { presentation } = board;
  const stepper = (text, direction, title) =>
    button("gb-button gb-icon", text, (event) => {
      presentation.step(direction);
      // a click must not take the keys away from the page
      if (event.detail) document.activeElement.blur();
    }, title);
  const place = element("span", "gb-step-place", `${shown} / ${count}`);
  place.setAttribute("aria-live", "polite");
  return [
    ...(shown < 2 ? [element("span", "gb-hint gb-step-keys", labels.present_keys)] : []),
    stepper("‹", -1, labels.step_back), place, stepper("›", 1, labels.step_on),
    button("gb-button gb-quiet gb-icon", "×", () => presentation.turn(false), labels.present_leave),
  ];
}
