// The board of a page: takes frame and live state, draws, and sends events back one at a time.


const REDUCED_MOTION = window.matchMedia("(prefers-reduced-motion: reduce)");

class Board {
  constructor() {
    this.parcels = {}; // kind → the component that came last
    this.outbox = new Outbox((event) => this.parcels.board.setTriggerValue("event", event), () => this.drawStrip());
    this.pending = new Map(); // reference → edit without an answer
    this.local = {}; // selection and mode that have not been answered yet
    this.gestures = Date.now(); // a page that is loaded anew must not repeat earlier numbers
    this.root = element("div", "gb gb-board");
    this.listeners = new AbortController();
    this.addressBar = new AddressBar(this.listeners.signal);
    this.presentation = new Presentation(this);
    this.portions = new Portions(this, this.listeners.signal);
    this.words = new Words(this, this.listeners.signal);
    document.addEventListener("keydown", (event) => handlePageKey(this, event), { signal: this.listeners.signal });
    document.addEventListener("click", (event) => this.strip?.more.onClick(event), { signal: this.listeners.signal });
    attachCellEvents(this, this.root);
    enableDragging(this, this.root);
  }

  get live() {
    return this.parcels.board?.data;
  }

  receive(kind, component) {
    const before = this.live?.session;
    this.parcels[kind] = component;
    if (kind === "board") {
      const { address, session, seq = 0 } = component.data;
      // A restarted server starts with what the page was opened with; the address knows better.
      if (before && session !== before) return void this.outbox.restart({ type: "open", address: this.addressBar.query });
      this.outbox.acknowledge(seq);
      this.addressBar.show(address);
    }
    this.update();
  }

  /** Draws when everything of one version is there; until then the old picture stays. */
  update() {
    const { strip, frame, board } = this.parcels;
    if (!strip || !frame || !board) return;
    if (frame.data.version === board.data.version) {
      const isOld = this.frame?.version === frame.data.version;
      if (!isOld) this.build(frame.data);
      // Appended, never replaced: Streamlit keeps the component's style sheet in the same element.
      if (this.root.parentElement !== board.parentElement) board.parentElement.append(this.root);
      if (!isOld) watchTheme(this.root);
      this.draw({ isDatum: true });
    }
    this.portions.draw(board.data.more);
    this.drawStrip();
    this.presentation.draw();
  }

  build(frame) {
    const focused = cellAt(document.activeElement)?.reference;
    Object.assign(this, { frame, labels: frame.labels, grids: [], controls: [], revealed: undefined });
    this.message?.host.remove();
    this.message = this.buildMessage();
    this.explanation = new ExplanationPanel(this);
    this.editorBar = new EditorBar(this);
    this.offers = new Offers(this);
    this.dock = element("div", "gb-dock");
    this.dock.append(this.offers.root, this.explanation.root, this.editorBar.root, button("gb-close", "×", () => this.unselect(), this.labels.close));
    this.dock.addEventListener("keydown", (event) => event.key === "Escape" && this.unselect());
    const sections = frame.layout.map((section) => buildSection(this, section));
    // a glossary has no numbers to be helped with
    const help = frame.layout.some(({ items }) => items.some(({ type }) => type === "glossary")) ? [] : [this.buildHelp()];
    this.root.replaceChildren(...sections, ...help, this.dock);
    this.cells = this.grids.filter((grid) => grid.isShown).flatMap((grid) => grid.cells);
    this.cellsByReference = new Map(this.cells.map((cell) => [cell.reference, cell]));
    this.marks = new Marks(frame, this.cells);
    this.words.draw();
    this.cellsByReference.get(focused)?.td.focus();
  }

  buildMessage() {
    const host = element("div", "gb-message");
    host.setAttribute("role", "status");
    const text = element("span");
    host.append(text, button("gb-close", "×", () => this.send({ type: "dismiss", text: text.textContent }), this.labels.dismiss));
    return { host, text };
  }

  /** What the marks mean and what the keys do, folded away. */
  buildHelp() {
    const help = element("details", "gb-help");
    const list = element("ul");
    for (const line of this.labels.help.split("|")) list.append(element("li", "", line));
    help.append(element("summary", "", this.labels.help_title), list);
    return help;
  }

  addGrid(key, { isShown = true, ...options } = {}) {
    const specification = this.frame.grids[key];
    const editable = specification.editable && !this.hides("editing");
    const grid = new Grid(key, { ...specification, editable }, this.labels, options);
    grid.isShown = isShown;
    this.grids.push(grid);
    return grid;
  }

  /** `draw` brings a control in line with its cell, after every drawing of the grids. */
  addControl(draw) {
    this.controls.push(draw);
  }

  // ---- drawing

  draw({ isDatum = false } = {}) {
    if (!this.frame || this.frame.version !== this.live.version) return;
    this.forgetAnswered();
    const { values, edited } = this.live;
    const view = { mode: this.mode, pending: this.pending, names: this.live.names };
    for (const grid of this.grids) {
      grid.receive(values[grid.key], edited[grid.key]);
      grid.draw(view);
    }
    for (const drawControl of this.controls) drawControl();
    this.drawMessage(this.live.message);
    this.explanation.draw(this.live.explanation);
    this.editorBar.draw(this.live.editor);
    this.offers.draw(this.live.removal?.offers);
    this.dock.hidden = !this.live.explanation && !this.live.editor && this.offers.root.hidden;
    this.marks.draw(this.selected);
    if (isDatum) this.reveal(this.live.selected);
  }

  /** The dock must not lie over the cell that it speaks about. A page that opens does not scroll. */
  reveal(selected) {
    const reference = selected && referenceOf(selected.tensor, selected.index);
    if (reference === this.revealed) return;
    const isOpening = this.revealed === undefined;
    this.revealed = reference;
    this.root.style.setProperty("--gb-dock-height", `${this.dock.offsetHeight}px`);
    const behavior = REDUCED_MOTION.matches ? "instant" : "smooth";
    if (!isOpening) this.cellsByReference.get(reference)?.td.scrollIntoView({ block: "nearest", inline: "nearest", behavior });
  }

  drawMessage(message) {
    const { host } = this.message;
    host.hidden = !message;
    host.dataset.kind = message?.kind ?? "";
    setText(this.message.text, message?.text ?? "");
  }

  drawStrip() {
    const { strip } = this.parcels;
    const labels = strip.data.labels ?? this.labels;
    if (this.strip?.labels !== labels && JSON.stringify(this.strip?.labels) !== JSON.stringify(labels)) {
      this.strip?.root.remove();
      this.strip = new Strip(this, labels);
    }
    const { root } = this.strip;
    if (root.parentElement !== strip.parentElement) {
      strip.parentElement.append(root);
      watchTheme(root);
    }
    this.strip.draw(this.live.strip, this.mode);
    // on screen wherever the reader is
    if (this.message && this.message.host.parentElement !== root) root.append(this.message.host);
  }

  forgetAnswered() {
    for (const [reference, { event }] of this.pending) {
      if (this.isAnswered(event)) this.pending.delete(reference);
    }
    for (const [name, event] of Object.entries(this.local)) {
      if (this.isAnswered(event)) delete this.local[name];
    }
  }

  isAnswered(event) {
    return event.seq <= this.outbox.answered;
  }

  // ---- what the reader does

  send(event) {
    return this.outbox.send(event);
  }

  /** `place`: the layer and head that are chosen there. */
  go(lesson, place = {}) {
    this.presentation.clear();
    this.send({ type: "go", lesson, ...place });
  }

  newGesture() {
    return ++this.gestures;
  }

  /** `control`: by a slider or switch of the lesson, which a link may leave when it hides editing. */
  edit({ tensor, index }, value, gesture, control = false) {
    const event = this.send({ type: "edit", tensor, index, value: value === -Infinity ? "-inf" : value, gesture, control });
    this.pending.set(referenceOf(tensor, index), { event, shown: value });
    this.draw();
  }

  /** Sets all cells of slices to one value, or (null) leaves them alone again; one step of undo. */
  cover(cells, places, value) {
    const event = this.send({ type: "cover", places, value });
    if (value !== null) for (const cell of cells) this.pending.set(cell.reference, { event, shown: value });
    this.draw();
  }

  /** Takes back a gesture that is still going on. */
  cancel(cell, gesture) {
    this.outbox.drop(gesture);
    this.pending.delete(referenceOf(cell.tensor, cell.index));
    this.send({ type: "cancel", gesture });
    this.draw();
  }

  select(tensor, index, trail) {
    this.strip.more.turn(false);
    this.local.selection = this.send({ type: "select", tensor, index, trail });
    this.marks.draw(this.selected);
  }

  unselect() {
    // The dock is about to vanish, and with it a focus inside it.
    const { selected } = this;
    if (selected) this.cellsByReference.get(referenceOf(selected.tensor, selected.index))?.td.focus();
    this.local.selection = this.send({ type: "unselect" });
    this.marks.draw(this.selected);
  }

  setMode(value) {
    this.local.mode = this.send({ type: "mode", value });
    this.draw();
    this.drawStrip();
  }

  get mode() {
    return this.local.mode?.value ?? this.live.mode;
  }

  get selected() {
    const { selection } = this.local;
    if (!selection) return this.live.selected;
    return selection.type === "select" ? selection : null;
  }

  /** Whether the reader's link leaves something out. */
  hides(name) {
    return this.live.hidden.includes(name);
  }

  /** Leaves the page to a second copy of this module. */
  retire() {
    this.listeners.abort();
    this.presentation.observer.disconnect();
    this.outbox.close();
    this.portions.draw(null);
    this.root.remove();
    this.strip?.root.remove();
  }

  // ---- facts about a cell, on the page or not

  shownValue({ tensor, index }) {
    const reference = referenceOf(tensor, index);
    return this.pending.get(reference)?.shown ?? this.cellsByReference.get(reference)?.value ?? numberFromWire(this.live.editor.value);
  }

  rangeOf({ tensor }) {
    if (this.live.editor?.tensor === tensor) return this.live.editor.range;
    return this.grids.find((grid) => grid.specification.tensor === tensor)?.specification.range ?? DEFAULT_RANGE;
  }

  nameOf({ tensor, index }) {
    return this.live.editor?.title ?? referenceOf(tensor, index);
  }

  allowsMinusInfinity({ tensor }) {
    const grid = this.grids.find(({ specification }) => specification.tensor === tensor);
    return Boolean(grid?.specification.minus_infinity ?? this.live.editor?.minus_infinity);
  }
}

// A second copy of this module (the strip was mounted anew) takes over from the first.
const board = new Board();
const predecessor = window.glassbox;
predecessor?.retire?.();
window.glassbox = {
  push: ([kind, component]) => board.receive(kind, component),
  retire: () => board.retire(),
  parcels: () => Object.entries(board.parcels),
  unsent: () => board.outbox.unsent(),
};
for (const [kind, component] of predecessor?.parcels?.() ?? predecessor ?? []) board.receive(kind, component);
for (const event of predecessor?.unsent?.() ?? []) board.send(event);

export default (component) => board.receive("strip", component);
