// Words of the prose that stand for a tensor: they light up its grids, and a click leads there.

// headings have links of their own
const WORD = '.st-key-prose :is(p, li, td) a[href^="#"]';
const LAYER_AND_MODULE = /^(gradient\.)?layers\.\d+\.(attention\.(?!output$))?/;

class Words {
  constructor(board, signal) {
    Object.assign(this, { board, hovered: null, focused: null });
    const wordAt = (event) => event.target.closest?.(WORD) ?? null;
    const listen = (type, react) => document.addEventListener(type, react, { signal });
    listen("pointerover", (event) => this.point("hovered", event.pointerType === "touch" ? null : wordAt(event)));
    listen("focusin", (event) => this.point("focused", wordAt(event)));
    listen("focusout", () => this.point("focused", null));
    listen("click", (event) => wordAt(event) && this.follow(wordAt(event), event));
  }

  point(how, word) {
    if (this[how] === word) return;
    this[how] = word;
    this.draw();
  }

  /** Lights up the grids; of a grid that shows several tensors, the cells. */
  draw() {
    const names = namesOf(this.hovered ?? this.focused);
    for (const { table, cells, isShown } of this.board.grids ?? []) {
      if (!isShown) continue;
      const lit = cells.map((cell) => names.some((name) => this.isNamed(cell.tensor, name)));
      const isWhole = lit.length > 0 && lit.every(Boolean);
      table.closest(".gb-grid, .gb-flow-block")?.classList.toggle("gb-lit", isWhole);
      cells.forEach(({ td }, number) => td.classList.toggle("gb-lit", lit[number] && !isWhole));
    }
  }

  /** `output` is what the chosen layer makes, though what enters it may be another layer's output. */
  isNamed(tensor, name) {
    if (tensor === name) return true;
    return tensor === this.board.frame.input ? name === "input" : tensor.replace(LAYER_AND_MODULE, "$1") === name;
  }

  /** The focus stays with the word, and the light with the focus. */
  follow(word, event) {
    event.preventDefault();
    word.focus({ preventScroll: true });
    const place = this.board.root.querySelector(".gb-lit");
    if (!place) return;
    this.board.presentation.showUpTo(place);
    place.scrollIntoView({ block: "center", inline: "nearest", behavior: REDUCED_MOTION.matches ? "instant" : "smooth" });
  }
}

/** `#q_rotated,k_rotated` names two tensors. */
function namesOf(word) {
  return word ? decodeURIComponent(word.getAttribute("href").slice(1)).split(",") : [];
}
