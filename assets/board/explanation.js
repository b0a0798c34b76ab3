// Asking a cell for its arithmetic: pointer and keys on the cells, and the panel that answers.

const OPERANDS_AT_FIRST = 24;
// a button in the place of fewer would save nothing
const FEWEST_FOLDED = 4;
const COPIED_MILLISECONDS = 1600;

class ExplanationPanel {
  constructor(board) {
    this.board = board;
    this.root = element("section", "gb-explanation");
    this.root.setAttribute("aria-label", board.labels.explain);
    this.structure = null;
    this.operands = [];
  }

  draw(explanation) {
    this.root.hidden = !explanation;
    if (!explanation) {
      this.structure = null;
      return;
    }
    const structure = structureOf(explanation);
    if (structure !== this.structure) this.build(explanation, structure);
    this.patch(explanation);
  }

  /** The panel is built anew only when it explains something else; focus survives. */
  build(explanation, structure) {
    const hadFocus = this.root.contains(document.activeElement);
    const focusedPosition = this.operands.indexOf(document.activeElement);
    this.structure = structure;
    this.words = element("p", "gb-words");
    this.root.replaceChildren(
      this.buildTrail(explanation.trail),
      this.buildFormula(explanation),
      this.words,
      this.buildFacts(explanation.facts),
      this.buildNumpyLine(explanation.numpy),
    );
    // where the reader is stands at the end of a long way
    const trail = this.root.firstElementChild;
    trail.scrollLeft = trail.scrollWidth;
    if (hadFocus) (this.operands[focusedPosition] ?? this.operands[0])?.focus();
  }

  buildTrail(trail) {
    const list = element("nav", "gb-trail");
    list.setAttribute("aria-label", this.board.labels.trail);
    trail.forEach(({ title, tensor, index }, position) => {
      if (position > 0) list.append(element("span", "gb-trail-mark", "›"));
      const isCurrent = position === trail.length - 1;
      if (isCurrent) list.append(element("b", "", title));
      else list.append(button("gb-link", title, () => this.board.select(tensor, index, position)));
    });
    list.hidden = trail.length < 2;
    return list;
  }

  /** `title = operands = value`; of a cell set by hand the operands give what it would be. */
  buildFormula({ title, pieces, computed }) {
    const formula = element("div", "gb-formula");
    formula.append(element("span", "gb-formula-title", title));
    this.result = element("b", "gb-result");
    this.wouldBe = element("b");
    const isOverridden = computed !== null && computed !== undefined;
    if (isOverridden) formula.append(" = ", this.result, element("span", "gb-would-be", ` · ${this.board.labels.computed_would_be} `));
    else if (pieces.length) formula.append(" = ");
    this.operands = [];
    const shown = [];
    const rest = [];
    let ending = "";
    const count = pieces.filter((piece) => piece.tensor !== undefined).length;
    const most = count < OPERANDS_AT_FIRST + FEWEST_FOLDED ? count : OPERANDS_AT_FIRST;
    const place = (node) => (this.operands.length > most ? rest : shown).push(node);
    let word = element("span", "gb-word");
    for (const piece of pieces) {
      if (piece.tensor !== undefined) {
        word.append(this.buildOperand(piece));
        continue;
      }
      // what closes a folded list stays in sight
      if (count > most && this.operands.length === count) {
        ending += piece.text;
        continue;
      }
      // Lines break at spaces only: a bracket stays with the operand that it touches.
      const [, end, gap, start] = /^(\S*)(\s.*\s|\s)?(\S*)$/s.exec(piece.text);
      word.append(end);
      if (gap === undefined) continue;
      place(word);
      place(document.createTextNode(gap));
      word = element("span", "gb-word", start);
    }
    place(word);
    formula.append(...shown);
    if (rest.length) formula.append(this.buildShowAll(rest), ending);
    // an arrow leads to the number by itself
    const sign = /→ $/.test(pieces.at(-1)?.text ?? "") ? "" : " = ";
    if (isOverridden) formula.append(pieces.length ? sign : "", this.wouldBe);
    else formula.append(sign, this.result);
    return formula;
  }

  buildOperand({ tensor, index, label, show }) {
    const operand = button("gb-operand", "", () => this.board.select(tensor, index, "push"));
    operand.dataset.operand = referenceOf(tensor, index);
    operand.dataset.label = label ?? operand.dataset.operand;
    operand.dataset.show = show; // number, integer, or the label of what is copied
    for (const type of ["pointerenter", "focus"]) operand.addEventListener(type, () => this.light(operand.dataset.operand));
    for (const type of ["pointerleave", "blur"]) operand.addEventListener(type, () => this.light(null));
    this.operands.push(operand);
    return operand;
  }

  /** An operand that is pointed at lights up its cell, if that is on the page. */
  light(reference) {
    const { marks, cellsByReference, selected } = this.board;
    marks.lit = cellsByReference.get(reference) ?? null;
    marks.draw(selected);
  }

  buildShowAll(rest) {
    const more = button("gb-button gb-quiet", `… ${this.board.labels.show_all}`, () => {
      more.replaceWith(...rest);
      this.operands[OPERANDS_AT_FIRST].focus();
    });
    return more;
  }

  /** Numbers beside the arithmetic, each with a label that may lead to a cell. */
  buildFacts(facts) {
    const list = element("dl", "gb-facts");
    this.facts = facts.map(({ label, tensor, index }) => {
      const term = element("dt");
      if (tensor) term.append(button("gb-operand", label, () => this.board.select(tensor, index, "push")));
      else term.append(label);
      const number = element("dd");
      list.append(term, number);
      return number;
    });
    list.hidden = !facts.length;
    return list;
  }

  buildNumpyLine(numpy) {
    const line = button("gb-numpy", "", () => this.copy(line, numpy), this.board.labels.copy);
    line.append(element("code", "", numpy));
    line.hidden = !numpy;
    return line;
  }

  /** Browsers offer their clipboard on secure pages only; elsewhere the line is selected. */
  async copy(line, numpy) {
    if (!navigator.clipboard) return void getSelection().selectAllChildren(line);
    await navigator.clipboard.writeText(numpy);
    line.dataset.note = this.board.labels.copied;
    setTimeout(() => delete line.dataset.note, COPIED_MILLISECONDS);
  }

  patch({ pieces, value, integer, computed, words, facts }) {
    let before = "";
    let position = 0;
    for (const [place, piece] of pieces.entries()) {
      if (piece.tensor === undefined) {
        before = piece.text;
        continue;
      }
      const operand = this.operands[position++];
      const number = numberFromWire(piece.value);
      const { show, label } = operand.dataset;
      const shown = show === "label" ? label : formatInFormula(number, show === "integer");
      // (−2)² is not −2²
      const isRaised = /^[²³]/.test(pieces[place + 1]?.text ?? "");
      setText(operand, number < 0 && (isRaised || /[+−×÷] $/.test(before)) ? `(${shown})` : shown);
      operand.title = `${operand.dataset.label} = ${formatExact(number)}`;
    }
    const result = numberFromWire(value);
    setText(this.result, formatInFormula(result, integer));
    this.result.title = formatExact(result);
    setText(this.wouldBe, formatInFormula(numberFromWire(computed)));
    facts.forEach(({ value: fact, exact }, place) => {
      const shown = numberFromWire(fact);
      setText(this.facts[place], exact ? formatLong(shown) : formatInFormula(shown));
      this.facts[place].title = formatExact(shown);
    });
    this.words.hidden = !words;
    setText(this.words, words ?? "");
  }
}

/** Everything about an explanation except its numbers. */
function structureOf({ title, pieces, numpy, trail, computed, facts }) {
  const parts = pieces.map((piece) => piece.text ?? referenceOf(piece.tensor, piece.index));
  const labels = facts.map(({ label, tensor, index }) => [label, tensor, index]);
  return JSON.stringify([title, parts, numpy, trail, computed === null, labels]);
}

/** One set of listeners for all cells. */
function attachCellEvents(board, root) {
  const point = (how, cell = null) => {
    board.marks[how] = cell;
    cell?.grid.showReadout(cell);
    board.marks.draw(board.selected);
  };
  root.addEventListener("pointerover", (event) => point("hovered", cellAt(event.target)));
  root.addEventListener("pointerleave", () => point("hovered"));
  root.addEventListener("focusout", () => point("focused"));
  root.addEventListener("focusin", (event) => {
    const cell = cellAt(event.target);
    point("focused", cell);
    cell?.grid.makeTabStop(cell);
  });
  root.addEventListener("click", (event) => {
    const cell = cellAt(event.target);
    if (!cell) return;
    cell.td.focus({ preventScroll: true });
    board.select(cell.tensor, cell.index, "start");
  });
  root.addEventListener("dblclick", (event) => {
    const cell = cellAt(event.target);
    if (cell?.grid.specification.editable) openCellField(board, cell);
  });
  root.addEventListener("keydown", (event) => {
    const cell = event.target.matches("td") && cellAt(event.target);
    if (cell && !event.ctrlKey && !event.metaKey && onCellKey(board, cell, event)) event.preventDefault();
  });
}

/** True when the key meant something to the cell. */
function onCellKey(board, cell, event) {
  const { key } = event;
  const { tensor, index, grid } = cell;
  const explain = () => board.select(tensor, index, "start");
  const edit = (firstCharacter = null) => {
    explain();
    openCellField(board, cell, firstCharacter);
  };
  const neighbour = event.altKey ? undefined : grid.neighbour(cell, key);
  if (neighbour) neighbour.td.focus();
  else if (key === "Enter") grid.isEditable ? edit() : explain();
  else if (key === "e" || key === "E") explain();
  else if ((key === "x" || key === "X") && board.live.removal) {
    const isSelected = board.selected && referenceOf(board.selected.tensor, board.selected.index) === cell.reference;
    if (!isSelected) explain();
    board.offers.await(isSelected);
  }
  else if (key === "F2" && grid.specification.editable) edit();
  else if (key === "Delete" && grid.specification.editable) board.send({ type: "reset", tensor, index });
  else if (key === "Escape") board.selected ? board.unselect() : cell.td.blur();
  else if (/^[\d.\-+−]$/.test(key) && grid.isEditable) edit(key);
  else return false;
  return true;
}
