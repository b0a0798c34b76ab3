// Changing a number: typing, stepping, and the bar with the slider.

const SLIDER_STEPS_PER_STEP = 5;
const DEFAULT_RANGE = [-2, 2];

/**
 * Typing into a text field, in a cell or in the editor bar. `field` says where it stands:
 * `cell()` what is edited, `step()` its step, `refuse(text)` shows why an entry is refused
 * ("" clears it), `leave(byKey)` is called when the field is done with.
 */
class NumberEntry {
  constructor(board, input, field) {
    Object.assign(this, { board, input, field, gesture: null });
    input.addEventListener("keydown", (event) => this.onKey(event));
    input.addEventListener("input", () => this.refuse(""));
    input.addEventListener("blur", () => {
      if (this.isOpen && this.commit()) this.close(false);
    });
  }

  begin(value, text = formatForEntry(value)) {
    this.isOpen = true;
    this.gesture = null;
    this.sent = value;
    this.untouched = formatForEntry(value);
    this.input.value = text;
  }

  /** An entry that was refused gives way to a value that came from elsewhere. */
  follow(value) {
    if (this.isOpen && this.isRefused && !sameNumber(value, this.sent)) this.close(true);
  }

  refuse(text) {
    this.isRefused = text !== "";
    this.field.refuse(text);
  }

  close(byKey) {
    this.isOpen = false;
    this.refuse("");
    this.field.leave(byKey);
  }

  onKey(event) {
    if (event.isComposing) return;
    if (event.key === "Enter") {
      if (this.commit()) this.close(true);
    } else if (event.key === "Escape") {
      if (this.gesture !== null) this.board.cancel(this.field.cell(), this.gesture);
      this.close(true);
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      this.step((event.key === "ArrowUp" ? 1 : -1) * stepFactor(event));
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** Steps are sent at once: a held key is a slider. One stay in the field is one gesture, so
   *  that Escape takes all of it back. */
  step(count) {
    const isUntouched = this.input.value === this.untouched;
    const typed = isUntouched ? this.sent : parseNumber(this.input.value, false).value;
    const start = Number.isFinite(typed) ? typed : Number.isFinite(this.sent) ? this.sent : 0;
    this.send(tidy(start + count * this.field.step()));
    this.untouched = this.input.value = formatForEntry(this.sent);
    this.refuse("");
  }

  send(value) {
    this.gesture ??= this.board.newGesture();
    this.sent = value;
    this.board.edit(this.field.cell(), value, this.gesture);
  }

  /** False when the entry is refused; it then stays as it was typed. */
  commit() {
    if (this.input.value === this.untouched) return true;
    const { value, refusal } = parseNumber(this.input.value, this.board.allowsMinusInfinity(this.field.cell()));
    if (refusal) {
      this.refuse(this.board.labels[refusal]);
      return false;
    }
    if (!sameNumber(value, this.sent)) this.send(value);
    return true;
  }
}

/** A field laid over a cell. It is no child of the cell, so patching the cell cannot disturb it. */
function openCellField(board, cell, firstCharacter = null) {
  const scroller = cell.td.closest(".gb-scroller");
  scroller.querySelector(".gb-cell-field")?.focus();
  const input = element("input", "gb-cell-field");
  Object.assign(input, { type: "text", inputMode: "text", autocomplete: "off", spellcheck: false });
  input.setAttribute("aria-label", cell.label.replace("\n", ", "));
  const message = element("div", "gb-refusal");
  message.setAttribute("aria-live", "assertive");
  placeOver(input, cell.td, scroller);

  const entry = new NumberEntry(board, input, {
    cell: () => cell,
    step: () => stepOf(board.rangeOf(cell), isWhole(cell)),
    refuse(text) {
      setText(message, text);
      input.setAttribute("aria-invalid", String(text !== ""));
      const place = cell.td.getBoundingClientRect();
      const host = scroller.parentElement.getBoundingClientRect();
      message.style.left = `${Math.max(0, place.left - host.left)}px`;
      message.style.top = `${place.bottom - host.top + 3}px`;
    },
    leave(byKey) {
      input.remove();
      message.remove();
      if (byKey) cell.td.focus();
    },
  });
  entry.begin(cell.value, firstCharacter ?? undefined);
  scroller.append(input);
  scroller.parentElement.append(message);
  input.focus();
  if (firstCharacter === null) input.select();
}

function placeOver(input, td, scroller) {
  const cell = td.getBoundingClientRect();
  const frame = scroller.getBoundingClientRect();
  input.style.left = `${cell.left - frame.left + scroller.scrollLeft}px`;
  input.style.top = `${cell.top - frame.top + scroller.scrollTop}px`;
  input.style.width = `${Math.max(cell.width, 62)}px`;
  input.style.height = `${Math.max(cell.height, 24)}px`;
}

/** The bar that changes the selected cell: slider, field, steps, resets. */
class EditorBar {
  constructor(board) {
    const { labels } = board;
    this.board = board;
    this.widened = new Map(); // reference → range that the reader asked for
    this.root = element("div", "gb-editor");

    this.name = element("b", "gb-editor-name");
    this.state = element("span", "gb-editor-state");
    this.slider = element("input", "gb-slider");
    this.slider.type = "range";
    this.slider.setAttribute("aria-label", labels.slider);
    this.low = element("span", "gb-bound");
    this.high = element("span", "gb-bound");
    this.field = element("input", "gb-field gb-number");
    Object.assign(this.field, { type: "text", autocomplete: "off", spellcheck: false });
    this.message = element("div", "gb-refusal-inline");
    this.message.setAttribute("aria-live", "assertive");
    this.wider = button("gb-button gb-quiet", labels.wider, () => this.widen());
    this.resetCell = button("gb-button", labels.reset_cell, () => this.reset(this.editor.index));
    this.resetTensor = button("gb-button", labels.reset_tensor, () => this.reset());

    const heading = element("div", "gb-editor-heading");
    heading.append(this.name, this.state);
    const sliding = element("div", "gb-sliding");
    sliding.append(this.low, this.slider, this.high, this.wider);
    const typing = element("div", "gb-typing");
    typing.append(
      button("gb-button gb-step", "−", (event) => this.step(-stepFactor(event)), labels.step_down),
      this.field,
      button("gb-button gb-step", "+", (event) => this.step(stepFactor(event)), labels.step_up),
      this.resetCell,
      this.resetTensor,
    );
    this.root.append(heading, sliding, typing, this.message);
    this.listen();
  }

  listen() {
    enableGestures(this.board, this.slider, (gesture) => {
      this.entry.isOpen = false;
      this.entry.refuse("");
      this.board.edit(this.editor, Math.min(Number(this.slider.value), this.highest), gesture);
    });
    this.entry = new NumberEntry(this.board, this.field, {
      cell: () => this.editor,
      step: () => stepOf(this.range(), this.editor.integer),
      refuse: (text) => {
        setText(this.message, text);
        this.field.setAttribute("aria-invalid", String(text !== ""));
      },
      leave: (byKey) => {
        this.field.value = formatForEntry(this.board.shownValue(this.editor));
        if (byKey && document.activeElement === this.field) this.entry.begin(this.board.shownValue(this.editor));
      },
    });
    this.field.addEventListener("focus", () => {
      if (!this.entry.isOpen) this.entry.begin(this.board.shownValue(this.editor));
      this.field.select();
    });
  }

  step(count) {
    const value = this.board.shownValue(this.editor);
    const next = tidy((Number.isFinite(value) ? value : 0) + count * stepOf(this.range(), this.editor.integer));
    this.board.edit(this.editor, next, this.board.newGesture());
  }

  reset(index) {
    const { tensor } = this.editor;
    this.board.send(index ? { type: "reset", tensor, index } : { type: "reset", tensor });
  }

  widen() {
    const [low, high] = this.range();
    const middle = (low + high) / 2;
    // what starts at zero or above is a size: it grows upwards only
    const wider = low >= 0 ? [low, high + (high - low)] : [middle - (high - low), middle + (high - low)];
    this.widened.set(this.reference, wider.map(tidy));
    this.draw(this.editor);
  }

  /** The grid's range, or the wider one that was asked for, stretched so as to hold the value. */
  range() {
    const [low, high] = this.widened.get(this.reference) ?? this.board.rangeOf(this.editor);
    const value = this.board.shownValue(this.editor);
    return Number.isFinite(value) ? [Math.min(low, value), Math.max(high, value)] : [low, high];
  }

  /** `editor`: the live datum of the selected cell, or null where nothing can be changed. */
  draw(editor) {
    this.root.hidden = !editor?.editable;
    if (this.root.hidden) return;
    const reference = referenceOf(editor.tensor, editor.index);
    if (reference !== this.reference) {
      this.entry.isOpen = false;
      setText(this.message, "");
    }
    this.reference = reference;
    this.editor = editor;
    const value = this.board.shownValue(editor);
    this.entry.follow(value);
    setText(this.name, this.board.nameOf(editor));
    setText(this.state, this.describe(editor, value));
    const [low, high] = this.range();
    if (!this.slider.matches(":active")) {
      const step = editor.integer ? 1 : stepOf([low, high]) / SLIDER_STEPS_PER_STEP;
      const last = lastStep([low, high], step);
      this.highest = high;
      Object.assign(this.slider, { min: low, max: last, step: "any" });
      this.slider.value = value >= high ? last : Number.isFinite(value) ? value : low;
      this.slider.step = step;
    }
    setText(this.low, formatBound(low));
    setText(this.high, formatBound(high));
    if (!this.entry.isOpen) this.field.value = formatForEntry(value);
    this.field.setAttribute("aria-label", this.board.nameOf(editor));
    this.resetCell.disabled = !editor.edited;
    this.resetTensor.disabled = !editor.tensor_edited;
  }

  describe(editor, value) {
    const { labels } = this.board;
    const parts = [];
    const baseline = numberFromWire(editor.baseline);
    if (!sameNumber(value, baseline)) parts.push(`${labels.was} ${formatNumber(baseline, editor.integer)}`);
    if (editor.edited && editor.computed !== null) parts.push(`${labels.computed_would_be} ${formatNumber(numberFromWire(editor.computed), editor.integer)}`);
    return parts.join(" · ");
  }
}
