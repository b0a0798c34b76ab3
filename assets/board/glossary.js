// The glossary: terms in both languages side by side, and a field that narrows them down.

function buildGlossary(board, { terms }) {
  const { labels } = board;
  const [own, other] = board.live.strip.language === "zh" ? ["zh", "en"] : ["en", "zh"];
  const root = element("div", "gb-glossary");
  const label = element("label", "gb-control", `${labels.find_term} `);
  const field = element("input", "gb-field");
  Object.assign(field, { type: "search", autocomplete: "off", spellcheck: false });
  label.append(field);
  const count = element("output", "gb-hint");
  count.setAttribute("aria-live", "polite");
  label.append(count);

  const table = element("table", "gb-terms");
  const body = element("tbody");
  const lines = terms.map((term) => ({ term, row: buildTerm(board, term, own, other) }));
  body.append(...lines.map(({ row }) => row));
  table.append(body);
  const narrow = () => {
    const wanted = field.value.trim().toLowerCase();
    for (const { term, row } of lines) row.hidden = ![term.en, term.zh, term.words, term.title].join("\n").toLowerCase().includes(wanted);
    const found = lines.filter(({ row }) => !row.hidden).length;
    setText(count, found ? labels.terms_found.replace("{n}", found) : labels.no_term);
  };
  field.addEventListener("input", narrow);
  narrow();
  root.append(label, table);
  return root;
}

function buildTerm(board, term, own, other) {
  const row = element("tr");
  const name = element("th", "", term[own]);
  name.scope = "row";
  const translation = element("td", "gb-translation", term[other]);
  translation.lang = other;
  const link = element("a", "gb-lesson-link", term.title);
  // the address changes with every edit, so the link is made when it is about to be used
  const aim = () => (link.href = `./${term.path}${board.live.address}`);
  aim();
  for (const type of ["pointerenter", "focus"]) link.addEventListener(type, aim);
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a tab of its own
    event.preventDefault();
    board.go(term.lesson);
  });
  const words = element("td", "", term.words);
  const place = element("td");
  place.append(link);
  row.append(name, translation, words, place);
  return row;
}
