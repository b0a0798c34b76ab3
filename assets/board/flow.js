// How a page is laid out: sections, and what they hold besides grids: pictures and controls.

const BRANCH_REACH_PIXELS = 30;
const BRANCH_CORNER_PIXELS = 16;
const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

function buildSection(board, { title, note, items }) {
  const section = element("section", "gb-section");
  if (title) section.append(element("h3", "gb-section-title", title));
  if (note) section.append(element("p", "gb-note", note));
  const row = element("div", `gb-items ${holdings(items)}`.trim());
  let joining = [];
  for (const item of items) {
    if (item.type === "op") {
      joining.push(element("span", item.text === "→" ? "gb-op gb-arrow" : "gb-op", item.text));
      continue;
    }
    if (item.starts_row) row.append(element("span", "gb-row-start"));
    // A joining word never ends a line: it wraps together with what it leads to.
    const step = element("div", `gb-item gb-item-${item.type}`);
    step.append(...joining, buildItem(board, item));
    joining = [];
    row.append(step);
  }
  row.append(...joining);
  section.append(row);
  return section;
}

/** What a row holds that its look depends on, as classes: `:has` would be asked again at every edit. */
function holdings(items) {
  const steps = items.filter(({ type }) => type !== "op");
  const beside = ["flow", "slider"].filter((type) =>
    steps.some((step, place) => step.type === type && steps[place + 1]?.type === type && !steps[place + 1].starts_row));
  return [
    ...beside.map((type) => `gb-beside-${type}`),
    ...(steps.some(({ type }) => type === "verdict") ? ["gb-holds-verdict"] : []),
    ...(steps.some((step) => step.starts_row) ? ["gb-holds-rows"] : []),
  ].join(" ");
}

function buildItem(board, item) {
  switch (item.type) {
    case "grid":
      return board.addGrid(item.grid).buildFigure(
        (tensor, row) => board.send({ type: "rows", tensor, row }),
        board.hides("lessons") ? null : (lesson, place) => board.go(lesson, place),
      );
    case "pair":
      return buildPair(board, item);
    case "slider":
      return buildSlider(board, item);
    case "dial":
      return buildDial(board, item);
    case "switch":
      return buildSwitch(board, item);
    case "verdict":
      return buildVerdict(board, item);
    case "heads":
      return buildHeadsPicture(item, board.labels);
    case "ranking":
      return buildRanking(board, item);
    case "removed":
      return buildRemoved(board);
    case "glossary":
      return buildGlossary(board, item);
    case "flow":
      return new FlowPicture(board, item).root;
    default:
      throw new Error(`Unknown layout item: ${item.type}`);
  }
}

/** A tensor and its gradient, one above the other. */
function buildPair(board, { grids }) {
  const pair = element("div", "gb-pair");
  pair.append(...grids.map((grid) => buildItem(board, { type: "grid", grid })));
  return pair;
}

/** A vertical picture of blocks; blocks of a group share a frame, those of two sides stand in two columns, branches curve past them. */
class FlowPicture {
  constructor(board, { title, blocks, sides = {} }) {
    this.board = board;
    this.blocks = blocks;
    this.sides = Object.entries(sides);
    this.nodes = new Map();
    this.root = element("div", `gb-flow${this.sides.length ? " gb-flow-sided" : ""}`);
    this.branches = document.createElementNS(SVG_NAMESPACE, "svg");
    this.branches.classList.add("gb-branches");
    this.branches.setAttribute("aria-hidden", "true");
    if (title) this.root.append(element("h4", "gb-flow-picture-title", title));
    this.root.append(this.buildBlocks(), this.branches);
    new ResizeObserver(() => this.drawBranches()).observe(this.root);
  }

  buildBlocks() {
    const column = element("div", "gb-flow-column");
    const frames = new Map();
    const parentOf = ({ group, side }) => {
      if (side) return this.openSides(column).get(side);
      return group === null || group === undefined ? column : frames.get(group) ?? openFrame(group);
    };
    const openFrame = (group) => {
      const frame = element("div", "gb-flow-group");
      frames.set(group, frame);
      frame.append(element("div", "gb-flow-group-label", group));
      appendStep(column, frame);
      return frame;
    };
    for (const block of this.blocks) appendStep(parentOf(block), this.buildBlock(block));
    return column;
  }

  /** The columns side by side at the end of the picture, opened where something else stands there. */
  openSides(column) {
    if (!column.lastElementChild?.matches(".gb-flow-sides")) {
      const sides = element("div", "gb-flow-sides");
      this.columns = new Map();
      for (const [side, label] of this.sides) {
        const own = element("div", "gb-flow-side");
        own.append(element("h4", "gb-flow-side-title", label));
        this.columns.set(side, own);
        sides.append(own);
      }
      appendStep(column, sides);
    }
    return this.columns;
  }

  buildBlock(block) {
    const node = element("div", `gb-flow-block gb-hue-${block.hue ?? "none"}${block.differs ? " gb-differs" : ""}`);
    this.nodes.set(block.id, node);
    const heading = element("div", "gb-flow-heading");
    const name = element("div", "gb-flow-name");
    if (block.operator) name.append(element("span", "gb-flow-operator", block.operator));
    name.append(this.buildTitle(block));
    if (block.differs) name.append(element("span", "gb-differs-mark", "≠"));
    heading.append(name);
    if (block.shape) heading.append(element("span", "gb-shape", block.shape));
    node.append(heading);
    if (block.cells) node.append(this.buildCells(block.names ? [block.names, block.cells] : [block.cells]));
    return node;
  }

  buildTitle({ label, lesson }) {
    if (!lesson || this.board.hides("lessons")) return element("b", "gb-flow-title", label);
    return button("gb-flow-title gb-link", label, () => this.board.go(lesson));
  }

  /** Tables of the same columns, under one head. */
  buildCells(keys) {
    const host = element("div", "gb-flow-cells");
    const scroller = element("div", "gb-scroller");
    const { grids } = this.board.frame;
    for (const key of keys) scroller.append(this.board.addGrid(key, { firstRow: grids[key].rows.length - 1 }).table);
    watchRightEdge(scroller);
    host.append(scroller);
    return host;
  }

  /** From the edge of the block where a branch starts, out past the others and to the block where it arrives; a loop runs upwards. */
  drawBranches() {
    const origin = this.root.getBoundingClientRect();
    const [leftmost] = this.sides[0] ?? [];
    const paths = this.blocks.filter((block) => this.nodes.has(block.from)).map((block) => {
      const from = this.blocks.find(({ id }) => id === block.from);
      const start = this.nodes.get(block.from).getBoundingClientRect();
      const end = this.nodes.get(block.id).getBoundingClientRect();
      const outward = leftmost && from.side === leftmost ? -1 : 1;
      const edge = (box) => (outward > 0 ? box.right : box.left) - origin.left;
      const [x1, y1] = [edge(start), start.bottom - 12 - origin.top];
      const [x2, y2] = [edge(end), (end.top + end.bottom) / 2 - origin.top];
      const reach = outward > 0 ? Math.max(x1, x2) + BRANCH_REACH_PIXELS : Math.min(x1, x2) - BRANCH_REACH_PIXELS;
      const x = Math.min(Math.max(reach, 1), origin.width - 1);
      const r = BRANCH_CORNER_PIXELS;
      const turn = y2 > y1 ? r : -r;
      const inward = x - outward * r;
      const path = document.createElementNS(SVG_NAMESPACE, "path");
      path.setAttribute("d", `M${x1},${y1} H${inward} Q${x},${y1} ${x},${y1 + turn} V${y2 - turn} Q${x},${y2} ${inward},${y2} H${x2 + outward * 8}`);
      const head = document.createElementNS(SVG_NAMESPACE, "path");
      head.setAttribute("d", `M${x2 + outward * 9},${y2 - 5} L${x2 + outward},${y2} L${x2 + outward * 9},${y2 + 5} Z`);
      head.classList.add("gb-branch-head");
      return [path, head];
    });
    this.branches.replaceChildren(...paths.flat());
  }
}

/** A step below the others; an arrow leads to it, into both columns or out of them where the picture has two. */
function appendStep(parent, node) {
  const steps = [...parent.children].filter((child) => child.matches(".gb-flow-block, .gb-flow-group, .gb-flow-sides"));
  const last = steps.at(-1);
  if (last?.matches(".gb-flow-sides")) {
    for (const side of last.children) side.append(flowArrow());
  } else if (last && node.matches(".gb-flow-sides")) {
    for (const side of node.children) side.append(flowArrow());
  } else if (last) {
    parent.append(flowArrow());
  }
  parent.append(node);
}

function flowArrow() {
  const arrow = element("div", "gb-flow-arrow", "↓");
  arrow.setAttribute("aria-hidden", "true");
  return arrow;
}

/** Three bands, each the C columns of one projection cut into H heads of D columns. */
function buildHeadsPicture({ C, H, D }, labels) {
  const picture = element("div", "gb-heads");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `Q, K, V: C = ${C} = ${H} × ${D}`);
  for (const letter of ["q", "k", "v"]) {
    const band = element("div", `gb-band gb-hue-${letter}`);
    band.append(element("b", "gb-band-name", letter.toUpperCase()));
    for (const head of abbreviated(H, 2)) {
      band.append(head === null ? element("span", "gb-omitted", "…") : buildHead(letter, head, D, labels));
    }
    picture.append(band);
  }
  return picture;
}

function buildHead(letter, head, size, labels) {
  const node = element("div", "gb-head");
  node.append(element("span", "gb-head-name", `${labels.head} ${head}`));
  const columns = element("span", "gb-head-columns");
  for (const feature of abbreviated(size, head === 0 ? 2 : 1)) {
    columns.append(element("i", feature === null ? "gb-omitted" : "", feature === null ? "…" : `${letter}${head * size + feature}`));
  }
  node.append(columns);
  return node;
}

/** 0 … count−1 with the middle left out (null) where it is long: the first few and the last. */
function abbreviated(count, leading) {
  if (count <= 4) return range(count);
  return [...range(leading), null, count - 1];
}

/** A switch over all cells of its grids: one side sets a value, the other (null) leaves the model as it is. */
function buildSwitch(board, item) {
  const cells = [item.grid, ...item.also].flatMap((key) => board.addGrid(key, { isShown: false }).cells);
  const label = element("label", "gb-control gb-switch");
  const box = element("input");
  box.type = "checkbox";
  box.setAttribute("role", "switch");
  box.addEventListener("change", () => board.cover(cells, item.places, box.checked ? item.on : item.off));
  label.append(box, element("span", "gb-control-label", item.label));
  board.addControl(() => {
    const isSet = cells.every((cell) => sameNumber(cell.value, item.on ?? item.off) && cell.edited);
    box.checked = isSet === (item.on !== null);
  });
  return label;
}

/** A sentence that follows the numbers: one where all of a grid's cells are 0, another where any is not. */
function buildVerdict(board, item) {
  const { cells } = board.addGrid(item.grid, { isShown: false });
  const verdict = element("p", "gb-verdict");
  verdict.setAttribute("role", "status");
  board.addControl(() => {
    const isZero = cells.every((cell) => cell.value === 0);
    verdict.dataset.zero = String(isZero);
    setText(verdict, isZero ? item.zero : item.other);
  });
  return verdict;
}
