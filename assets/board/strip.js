// The strip that stays on screen: sentence, prediction, edits, view, snapshots, lessons.

const MODES = ["values", "delta", "both"];
const PHONE_WIDTH = 768;
const FOCUSABLE = "button, input, select, summary";
// part of the strip → the name under which a link may hide it, where that is another
const HIDDEN_AS = { sentence: "strip", history: "undo", changed: "strip", place: "layer" };

class Strip {
  constructor(board, labels) {
    this.board = board;
    this.labels = labels;
    this.states = new Map();
    this.root = element("div", "gb gb-strip");
    this.more = new More(this.root, labels.more);
    this.hosts = {};
    for (const name of ["sentence", "prediction"]) this.root.append(this.addHost(name));
    this.root.append(this.addHost("steps"), this.more.button, this.more.rest);
    for (const name of ["history", "changed", "view", "place", "snapshots", "class", "lessons"]) this.more.rest.append(this.addHost(name));
    this.handingOut = new HandingOut(board, labels);
    this.root.append(this.handingOut.root);
  }

  addHost(name) {
    return (this.hosts[name] = element("div", `gb-strip-part gb-strip-${name}`));
  }

  draw(strip, mode) {
    // fonts choose Chinese forms of shared characters, and screen readers their voice, by this
    this.foldSidebar();
    document.documentElement.lang = strip.language === "zh" ? "zh-CN" : strip.language;
    this.finishWriting(strip);
    const { tokens, text, text_error, text_hint, candidates, share_note, edits, switched, can_undo, can_redo, first_changed } = strip;
    // While a sentence is being written nothing may redraw the form: errors are put into it.
    const sentence = this.isWriting ? { isWriting: true } : { tokens, text_error };
    this.part("sentence", sentence, () => (this.isWriting ? this.buildSentenceForm(text, text_hint) : this.buildSentence(sentence)));
    this.part("prediction", { candidates, share_note }, (data) => this.buildPrediction(data));
    this.part("history", { edits, switched, can_undo, can_redo, isLate: this.board.outbox.isLate }, (data) => this.buildHistory(data));
    this.part("changed", { first_changed }, (data) => this.buildChanged(data));
    this.part("view", { mode }, (data) => this.buildModes(data));
    this.part("place", { layer: strip.layer, head: strip.head }, (data) => this.buildPlace(data));
    this.part("snapshots", { names: strip.snapshots }, (data) => this.buildSnapshots(data));
    const { previous, next, other_language } = strip;
    this.part("class", { isPresenting: this.board.live.presenting }, (data) => this.buildClass(data));
    this.part("lessons", { previous, next, other_language }, (data) => this.buildLessons(data));
    this.root.classList.toggle("gb-slim", this.board.live.presenting);
    this.root.classList.toggle("gb-bare", this.board.hides("strip"));
    this.handingOut.draw(this.board.live.hand_out);
  }

  /** On a phone the list of lessons covers the lesson that was chosen from it. */
  foldSidebar() {
    const isNewPage = this.path !== undefined && this.path !== location.pathname;
    this.path = location.pathname;
    if (isNewPage && innerWidth <= PHONE_WIDTH) document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click();
  }

  /** A part is drawn again only when its data differ; the focus stays on the same control. */
  part(name, data, build) {
    const isHidden = this.board.hides(HIDDEN_AS[name] ?? name);
    const state = JSON.stringify([isHidden, data]);
    if (this.states.get(name) === state) return;
    this.states.set(name, state);
    const host = this.hosts[name];
    const focused = [...host.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
    host.replaceChildren(...(isHidden ? [] : build(data)));
    host.hidden = host.childElementCount === 0;
    // focusing what sticks to the top would scroll to where it stands without sticking
    if (focused >= 0) host.querySelectorAll(FOCUSABLE)[focused]?.focus({ preventScroll: true });
  }

  // ---- sentence

  buildSentence({ tokens, text_error }) {
    const list = element("ol", "gb-tokens");
    for (const token of tokens) {
      const chip = element("li", "gb-token", token.text);
      chip.append(element("small", "", ` ${token.id}`), ...glossOf(token));
      list.append(chip);
    }
    // of a long text the last tokens are the ones to see
    requestAnimationFrame(() => (list.scrollTop = list.scrollHeight));
    if (this.board.hides("sentence")) return [list];
    const change = button("gb-button gb-quiet gb-icon", "✎", () => this.write(true), this.labels.change_sentence);
    return [list, change, buildStatus(text_error)];
  }

  buildSentenceForm(text, hint) {
    const form = element("form", "gb-sentence-form");
    const field = element("input", "gb-field");
    Object.assign(field, { type: "text", value: text, placeholder: hint, title: hint, autocomplete: "off", spellcheck: false });
    field.setAttribute("aria-label", this.labels.change_sentence);
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.write(false);
    });
    form.append(
      field,
      element("button", "gb-button", this.labels.use),
      button("gb-button gb-quiet", this.labels.cancel, () => this.write(false)),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.sentText = this.board.send({ type: "text", value: field.value });
    });
    this.sentenceField = field;
    return [form, buildStatus(null)];
  }

  write(isWriting) {
    this.isWriting = isWriting;
    this.sentText = null;
    if (!isWriting && this.board.live.strip.text_error) this.board.send({ type: "text_cancel" });
    this.board.drawStrip();
    const target = isWriting ? this.sentenceField : this.hosts.sentence.querySelector("button");
    target.focus({ preventScroll: true });
    if (isWriting) this.sentenceField.setSelectionRange(0, this.sentenceField.value.length);
  }

  /** The field closes when the sentence was accepted; a refused one stays to be mended. */
  finishWriting({ text_error }) {
    if (!this.sentText || !this.board.isAnswered(this.sentText)) return;
    this.sentText = null;
    setText(this.hosts.sentence.querySelector(".gb-refusal-inline"), text_error ?? "");
    this.isWriting = Boolean(text_error);
  }

  // ---- prediction

  buildPrediction({ candidates: onTheWire, share_note }) {
    const candidates = onTheWire.map(({ id, text, gloss, top, ...numbers }) => {
      const read = Object.entries(numbers).map(([name, number]) => [name, numberFromWire(number)]);
      return { id, text, gloss, top, ...Object.fromEntries(read) };
    });
    const top = candidates.find((candidate) => candidate.top) ?? candidates[0];
    const earlier = candidates.reduce((best, each) => (each.baseline_logit > best.baseline_logit ? each : best), candidates[0]);
    const line = element("span", "gb-prediction", `${this.labels.next_token} `);
    line.setAttribute("aria-live", "polite");
    const differs = earlier.id !== top.id || formatNumber(earlier.baseline_logit) !== formatNumber(top.logit);
    if (differs) {
      const was = candidateOf("s", "gb-was", earlier, earlier.baseline_logit);
      was.title = `${this.labels.was} ${formatExact(earlier.baseline_logit)} (${this.percent(earlier.baseline_probability)})`;
      line.append(was, " ");
    }
    const named = Number.isNaN(top.logit) ? { text: "" } : top.tied > 1 ? { text: `${top.tied} ${this.labels.tied}` } : top;
    const now = candidateOf("b", "gb-top", named, top.logit);
    now.title = formatExact(top.logit);
    line.append(now, element("span", "gb-share", ` (${this.percent(top.probability)}${share_note})`));
    const others = candidates.filter((candidate) => candidate !== top).map((candidate) => {
      const other = candidateOf("span", "gb-candidate", candidate, candidate.logit);
      other.title = `${formatExact(candidate.logit)} (${this.percent(candidate.probability)})`;
      return other;
    });
    return [line, ...others];
  }

  percent(share) {
    return this.labels.percent.replace("{n}", formatPercent(share));
  }

  // ---- edits

  buildHistory({ edits, switched, can_undo, can_redo, isLate }) {
    const { labels, board } = this;
    const undo = button("gb-button gb-icon", "↶", () => board.send({ type: "undo" }), labels.undo);
    const redo = button("gb-button gb-icon", "↷", () => board.send({ type: "redo" }), labels.redo);
    const reset = button("gb-button gb-quiet", labels.reset_all, () => board.send({ type: "reset" }));
    undo.disabled = !can_undo;
    redo.disabled = !can_redo;
    reset.disabled = edits === 0;
    const count = edits ? labels.edits.replace("{n}", edits) : labels.no_edits;
    const words = [];
    if (switched) words.push(element("span", "gb-edit-count gb-switched", labels.architecture_changed));
    if (isLate || edits || !switched) words.push(element("span", "gb-edit-count", isLate ? labels.pending : count));
    return [...words, undo, redo, reset];
  }

  buildChanged({ first_changed }) {
    if (!first_changed) return [];
    const changed = element("span", "gb-first-changed", `${this.labels.first_changed} `);
    changed.append(element("code", "", first_changed));
    return [changed];
  }

  // ---- view

  buildModes({ mode }) {
    const group = element("span", "gb-modes");
    group.setAttribute("role", "radiogroup");
    group.setAttribute("aria-label", this.labels.view);
    for (const value of MODES) {
      const choice = element("label", "gb-mode");
      const radio = element("input");
      Object.assign(radio, { type: "radio", name: "gb-mode", value, checked: value === mode });
      radio.addEventListener("change", () => this.board.setMode(value));
      choice.append(radio, element("span", "", this.labels[value]));
      group.append(choice);
    }
    return [group];
  }

  /** Layers are counted from 1 for readers; heads keep their number, as in every picture. */
  buildPlace({ layer, head }) {
    const { labels } = this;
    const places = [];
    if (layer) places.push(this.buildChooser("layer", layer, (value) => `${value + 1} ${labels.of} ${layer.count}`));
    if (head) places.push(this.buildChooser("head", head, (value) => String(value)));
    return places;
  }

  buildChooser(type, { value, count }, wordFor) {
    const chooser = element("label", "gb-chooser", `${this.labels[type]} `);
    const list = element("select", "gb-field");
    for (const choice of range(count)) {
      const option = element("option", "", wordFor(choice));
      option.value = choice;
      list.append(option);
    }
    list.value = value;
    list.addEventListener("change", () => this.board.send({ type, value: Number(list.value) }));
    chooser.append(list);
    return chooser;
  }

  // ---- snapshots and lessons

  buildSnapshots({ names }) {
    const { labels, board } = this;
    const menu = element("details", "gb-menu");
    const form = element("form", "gb-menu-panel");
    const field = element("input", "gb-field");
    Object.assign(field, { type: "text", placeholder: labels.name, required: true });
    field.setAttribute("aria-label", labels.name);
    form.append(field, element("button", "gb-button", labels.save));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      board.send({ type: "snapshot", name: field.value.trim() });
      menu.open = false;
    });
    for (const name of names) {
      const restore = button("gb-link", name, () => {
        board.send({ type: "restore", name });
        menu.open = false;
      }, `${labels.restore} · ${name}`);
      const forget = button("gb-button gb-quiet gb-icon", "×", () => board.send({ type: "forget", name }), `${labels.forget} · ${name}`);
      const line = element("span", "gb-snapshot");
      line.append(restore, forget);
      form.append(line);
    }
    form.append(element("small", "gb-hint", labels.snapshots_hint));
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.open) return;
      menu.open = false;
      event.preventDefault();
    });
    menu.append(element("summary", "gb-button gb-quiet", labels.snapshots), form);
    return [menu];
  }

  buildLessons({ previous, next, other_language }) {
    const { labels, board } = this;
    const goTo = (place, text, title) =>
      button("gb-button gb-quiet", text, () => board.go(place.lesson), `${title} · ${place.title}`);
    const parts = [];
    if (previous) parts.push(goTo(previous, `‹ ${previous.title}`, labels.previous_lesson));
    if (next) parts.push(goTo(next, `${next.title} ›`, labels.next_lesson));
    if (!board.hides("language")) parts.push(button("gb-button gb-quiet", other_language, () => board.send({ type: "language" })));
    return parts;
  }

  // ---- a class

  buildClass({ isPresenting }) {
    const { labels, board } = this;
    const handOut = button("gb-button gb-quiet", labels.hand_out, () => this.handingOut.open());
    if (isPresenting) return [handOut];
    return [button("gb-button gb-quiet", labels.present, () => board.presentation.turn(true)), handOut];
  }

  /** How far a presented lesson has got, with buttons for those who have no keys; nothing otherwise. */
  drawSteps(steps) {
    this.part("steps", steps, () => (steps ? buildSteps(this.board, this.labels, steps) : []));
  }
}

function buildStatus(error) {
  const status = element("span", "gb-refusal-inline", error ?? "");
  status.setAttribute("role", "status");
  return status;
}
