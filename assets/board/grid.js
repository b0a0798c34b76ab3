// One tensor slice as a table: built once, afterwards only changed cells are touched.

const CELL_OF = new WeakMap(); // td → cell

/** The cell that an event happened in, or undefined. */
function cellAt(target) {
  return CELL_OF.get(target.closest?.("td"));
}

const WIDTHS = new ResizeObserver((entries) => entries.forEach(({ target }) => fadeRightEdge(target.closest(".gb-scroller"))));

/** A table that is wider than its place fades where it goes on. */
function watchRightEdge(scroller) {
  scroller.addEventListener("scroll", () => fadeRightEdge(scroller), { passive: true });
  for (const watched of [scroller, ...scroller.children]) WIDTHS.observe(watched);
}

function fadeRightEdge(scroller) {
  const hidden = scroller ? scroller.scrollWidth - scroller.clientWidth - scroller.scrollLeft : 0;
  scroller?.classList.toggle("gb-clipped", hidden > 1);
}

class Grid {
  /** `firstRow`: a flow block shows only the last row of its grid. */
  constructor(key, specification, labels, { firstRow = 0 } = {}) {
    this.key = key;
    this.specification = specification;
    this.labels = labels;
    this.firstRow = firstRow;
    this.baseline = decodeFloats(specification.baseline);
    this.values = this.baseline;
    this.received = undefined;
    this.edited = new Set();
    const { looks } = specification;
    this.looks = (looks ?? [specification]).map((look, column) => new Look(look, looks ? this.columnOf(this.baseline, column) : this.baseline));
    this.cells = [];
    this.table = this.buildTable();
  }

  get isEditable() {
    return this.specification.editable && this.specification.kind !== "computed";
  }

  buildFigure(onShowRow, onGo) {
    const { specification } = this;
    const figure = element("figure", `gb-grid gb-kind-${specification.kind} gb-hue-${specification.hue ?? "none"}`);
    figure.classList.toggle("gb-dense", Boolean(specification.dense));
    figure.classList.toggle("gb-small", Boolean(specification.small));
    const caption = element("figcaption");
    const title = element("b", "gb-grid-title", specification.title);
    title.title = specification.tensor;
    const kind = element("span", "gb-kind", this.isEditable ? "✎" : "");
    kind.title = this.labels[specification.kind] ?? "";
    title.append(kind);
    caption.append(title, element("span", "gb-axes", specification.axes));
    if (specification.shape) caption.append(element("span", "gb-shape", specification.shape));
    const scroller = element("div", "gb-scroller");
    scroller.append(this.table);
    watchRightEdge(scroller);
    figure.append(caption, scroller, this.buildLegend());
    if (specification.more_rows) figure.append(this.buildRowChooser(onShowRow));
    if (specification.ways && onGo) figure.append(this.buildWays(onGo));
    return figure;
  }

  /** Lessons that show the same layer and head. */
  buildWays(onGo) {
    const links = element("div", "gb-ways");
    links.append(...this.specification.ways.map(({ lesson, title, ...place }) => button("gb-link", title, () => onGo(lesson, place))));
    return links;
  }

  buildTable() {
    const { specification } = this;
    const table = element("table", "gb-table");
    const description = [specification.title, specification.axes, specification.shape].filter(Boolean).join(", ");
    table.setAttribute("aria-label", description);
    table.append(element("caption", "gb-hidden", description));
    if (specification.columns?.some((column) => column.text)) table.append(this.buildHead());
    const body = element("tbody");
    for (let row = this.firstRow; row < specification.rows.length; row++) body.append(this.buildRow(row));
    table.append(body);
    if (this.cells.length) this.cells[0].td.tabIndex = 0;
    return table;
  }

  buildHead() {
    const line = element("tr");
    if (this.hasRowHeaders) line.append(element("td", "gb-corner"));
    for (const column of this.specification.columns) line.append(this.columnHeader(column));
    const head = element("thead");
    head.append(line);
    return head;
  }

  /** Narrow columns have room for a position or a number, not for a word. */
  columnHeader(column) {
    const { dense } = this.specification;
    const header = headerCell("col", dense ? { text: column.sub ?? column.text.replace(/^\D+/, "") } : column);
    if (dense) header.title = [column.text, column.gloss, column.sub].filter(Boolean).join(" ");
    return header;
  }

  get hasRowHeaders() {
    return this.specification.rows.some((row) => row.text);
  }

  buildRow(row) {
    const { rows, row_index: rowIndex, highlight_rows: used, muted_rows: muted } = this.specification;
    const line = element("tr");
    if (this.hasRowHeaders) line.append(headerCell("row", rows[row]));
    if (used?.includes(row)) {
      line.className = "gb-used";
      line.firstChild.title = this.labels.used_row ?? "";
    }
    if (muted?.includes(row)) {
      line.className = "gb-muted";
      line.firstChild.title = this.labels.muted_row;
    }
    // Rows left out of a condensed table leave a visible gap.
    if (rowIndex && row > 0 && rowIndex[row] > rowIndex[row - 1] + 1) line.classList.add("gb-gap");
    for (let column = 0; column < this.columnCount; column++) line.append(this.buildCell(row, column));
    return line;
  }

  /** Where columns are of different kinds, each has a look of its own. */
  lookOf(column) {
    return this.looks[this.looks.length > 1 ? column : 0];
  }

  columnOf(numbers, column) {
    return numbers.filter((_, place) => place % this.columnCount === column);
  }

  get columnCount() {
    return this.baseline.length / this.specification.rows.length;
  }

  buildCell(row, column) {
    const td = element("td");
    const number = row * this.columnCount + column;
    const [tensor, index] = this.address(row, column, number);
    const cell = { grid: this, td, row, column, number, tensor, index, reference: referenceOf(tensor, index) };
    cell.place = this.placeOf(cell);
    cell.label = [cell.reference, cell.place].filter(Boolean).join("\n");
    td.dataset.ref = cell.reference;
    td.tabIndex = -1;
    CELL_OF.set(td, cell);
    this.cells.push(cell);
    return td;
  }

  address(row, column, number) {
    const { cells, tensor, base, row_index: rowIndex, column_index: columnIndex } = this.specification;
    if (cells) return cells[number];
    const index = [...base];
    if (rowIndex) index.push(rowIndex[row]);
    if (columnIndex) index.push(columnIndex[column]);
    return [tensor, index];
  }

  /** Where a cell stands, in words; "" where neither rows nor columns have any. */
  placeOf({ row, column }) {
    const { rows, columns, row_axis: rowAxis, column_axis: columnAxis } = this.specification;
    const said = (axis, header) => (header?.text ? [axis, header.text, header.sub].filter(Boolean).join(" ") : "");
    return [said(rowAxis, rows[row]), said(columnAxis, columns?.[column])].filter(Boolean).join(", ");
  }

  buildLegend() {
    const legend = element("div", "gb-legend");
    const [first, ...others] = this.looks;
    legend.hidden = first.isInteger || first.hasNames || others.length > 0; // names, or no colours in common
    this.legendBar = element("i", "gb-bar");
    this.legendText = element("span");
    this.readout = element("output", "gb-readout");
    legend.append(this.legendBar, this.legendText, this.readout);
    return legend;
  }

  buildRowChooser(onShowRow) {
    const form = element("form", "gb-more-rows");
    const label = element("label", "", `${this.labels.row} `);
    const field = element("input", "gb-field");
    const largest = this.specification.more_rows.max;
    Object.assign(field, { type: "text", inputMode: "numeric", placeholder: `0 … ${largest}` });
    const refusal = element("span", "gb-refusal-inline");
    refusal.setAttribute("aria-live", "polite");
    label.append(field);
    const submit = element("button", "gb-button", this.labels.show_row);
    form.append(label, submit, refusal);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const isRow = /^\d+$/.test(field.value.trim()) && Number(field.value) <= largest;
      setText(refusal, isRow ? "" : this.labels.row_range.replace("{max}", largest));
      if (isRow) onShowRow(this.specification.tensor, Number(field.value));
    });
    return form;
  }

  /** Numbers as they came: base64, or undefined where the grid is at its baseline; and edited cells. */
  receive(base64, edited = []) {
    this.edited = new Set(edited);
    if (base64 === this.received) return;
    this.received = base64;
    this.values = base64 === undefined ? this.baseline : decodeFloats(base64);
  }

  /** `pending`: reference → edit that has not been answered yet and is shown meanwhile; `names`: id → token. */
  draw({ mode, pending, names }) {
    const { looks, values } = this;
    const scales = looks.map((look, column) => look.scaleFor(mode, looks.length > 1 ? this.columnOf(values, column) : values));
    this.drawLegend(mode, scales[0]);
    for (const cell of this.cells) {
      const scale = scales[looks.length > 1 ? cell.column : 0];
      const waiting = pending.get(cell.reference);
      const value = waiting ? waiting.shown : this.values[cell.number];
      const edited = this.edited.has(cell.number) || waiting !== undefined;
      const look = `${mode} ${scale} ${edited} ${waiting !== undefined}`;
      const isSame = cell.look !== undefined && sameNumber(value, cell.value);
      if (isSame && cell.look === look) continue;
      Object.assign(cell, { value, look, edited });
      this.drawCell(cell, mode, scale, names);
      cell.td.classList.toggle("gb-edited", edited);
      cell.td.classList.toggle("gb-pending", waiting !== undefined);
    }
    this.showReadout();
  }

  drawLegend(mode, scale) {
    if (!this.legendBar) return;
    const [look] = this.looks;
    const isShare = look.isShare && mode !== "delta";
    // sizes and spreads have no other side
    const isOneWay = isShare || (mode !== "delta" && !this.values.some((value) => value < 0));
    this.legendBar.classList.toggle("gb-one-way", isOneWay);
    const bound = scale === 0 ? "0" : `${isOneWay ? "0 … " : "±"}${formatNumber(scale, look.isInteger && mode !== "delta")}`;
    setText(this.legendText, isShare ? "0 … 1" : `${mode === "delta" ? "Δ " : ""}${bound}`);
  }

  drawCell(cell, mode, scale, names) {
    const { td, value } = cell;
    const baseline = this.baseline[cell.number];
    const look = this.lookOf(cell.column);
    const changed = !look.isUnchanged(value, baseline);
    const difference = value - baseline;

    if (!this.specification.dense) {
      setText(td, look.textOf(value, baseline, mode, names));
      if (mode === "both" && changed && Number.isFinite(difference) && !look.hasNames) {
        td.append(element("span", "gb-delta", formatDelta(difference)));
      }
    }
    td.dataset.value = String(value);
    const { heat, strength } = look.shadeOf(value, baseline, mode, scale);
    td.dataset.heat = heat;
    td.style.setProperty("--gb-a", strength.toFixed(3));
    td.classList.toggle("gb-changed", changed);
    td.title = this.tooltip(cell, changed, baseline);
  }

  /** Also says in words what ring and corner mark say in colour. */
  tooltip({ label, value, edited }, changed, baseline) {
    const lines = [label, `= ${formatExact(value)}`];
    if (changed) lines.push(`${this.labels.was} ${formatExact(baseline)}`);
    if (edited) lines.push(this.isEditable ? this.labels.edited : this.labels.overridden);
    return lines.join("\n");
  }

  /** Shades have no room for numbers: that of the cell which was pointed at last stands below them. */
  showReadout(cell = this.read) {
    this.read = cell;
    if (!this.specification.dense || !this.readout || !cell) return;
    const { place, index, value, column } = cell;
    const words = place || `${this.specification.short}[${index.join(", ")}]`;
    setText(this.readout, `${words} = ${formatNumber(value, this.lookOf(column).isInteger)}`);
  }

  /** Where a key leads from a cell, or undefined if it is no key of movement. */
  neighbour(cell, key) {
    const columns = this.columnCount;
    const position = cell.number - this.firstRow * columns;
    const targets = {
      ArrowLeft: cell.column > 0 ? position - 1 : position,
      ArrowRight: cell.column < columns - 1 ? position + 1 : position,
      ArrowUp: position >= columns ? position - columns : position,
      ArrowDown: position + columns < this.cells.length ? position + columns : position,
      Home: position - cell.column,
      End: position - cell.column + columns - 1,
    };
    return this.cells[targets[key]];
  }

  /** One tab stop per grid: the cell that was last focused. */
  makeTabStop(cell) {
    this.table.querySelector('td[tabindex="0"]')?.setAttribute("tabindex", "-1");
    cell.td.tabIndex = 0;
  }
}
