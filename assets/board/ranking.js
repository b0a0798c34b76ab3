// The heads in order of what the chosen token loses or gains without each, with a way to each.

function buildRanking(board, { ways }) {
  const host = element("div", "gb-ranking");
  let structure;
  board.addControl(() => {
    const { ranking } = board.live;
    if (JSON.stringify(ranking) === structure) return;
    structure = JSON.stringify(ranking);
    const focused = [...host.querySelectorAll("button")].indexOf(document.activeElement);
    host.replaceChildren(buildRankingTable(board, ranking, board.hides("lessons") ? [] : ways));
    if (focused >= 0) host.querySelectorAll("button")[focused]?.focus();
  });
  return host;
}

function buildRankingTable(board, { caption, columns, before, largest, rows }, ways) {
  const table = element("table", "gb-terms gb-ranking-table");
  table.setAttribute("aria-label", caption);
  const head = element("tr");
  for (const column of ways.length ? columns : columns.slice(0, -1)) {
    const cell = element("th", "", column);
    cell.scope = "col";
    head.append(cell);
  }
  const body = element("tbody");
  for (const row of rows) body.append(buildRankingRow(board, row, { columns, before, largest, ways }));
  const heading = element("thead");
  heading.append(head);
  table.append(element("caption", "", caption), heading, body);
  return table;
}

function buildRankingRow(board, { label, layer, head, logit, lead, probability, leader }, { columns, before, largest, ways }) {
  const line = element("tr");
  const name = element("th", "", label);
  name.scope = "row";
  const texts = ["", formatDelta(numberFromWire(lead)), `${before} → ${probability}`, leader];
  line.append(name, ...texts.map((text) => element("td", "", text)));
  const moved = numberFromWire(logit);
  line.children[1].append(buildBar(moved, largest), element("span", "", formatDelta(moved)));
  // on a phone, where there is no room for a line of headers
  for (const number of texts.keys()) line.children[number + 1].dataset.label = columns[number + 1];
  if (ways.length) {
    const links = element("td", "gb-ways");
    links.append(...ways.map((way) => button("gb-link", way.title, () => board.go(way.lesson, { layer, head }))));
    line.append(links);
  }
  return line;
}

/** To the left of the middle what is lost, to the right what is gained. */
function buildBar(value, largest) {
  const bar = element("i", "gb-ranking-bar");
  bar.setAttribute("aria-hidden", "true");
  bar.dataset.heat = value < 0 ? "negative" : "positive";
  bar.style.setProperty("--gb-share", largest && Number.isFinite(value) ? Math.abs(value) / largest : 0);
  return bar;
}
