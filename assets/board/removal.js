// Leaving parts out: what is offered for the selected cell, in the dock, and the list of what is gone.

/** The parts of the computation that the selected cell belongs to, each with a button for what it can be set to. */
class Offers {
  constructor(board) {
    this.board = board;
    this.root = element("section", "gb-offers");
    this.root.setAttribute("aria-label", board.labels.remove);
    this.isAwaited = false; // the reader asked for them by a key before they were there
  }

  /** The buttons stay where they are while the parts are the same; only their marks change. */
  draw(offers) {
    this.root.hidden = !offers?.length;
    if (this.root.hidden) return void (this.structure = undefined);
    const structure = JSON.stringify(offers.map(({ places }) => places));
    if (structure !== this.structure) this.build(offers);
    this.structure = structure;
    const choices = offers.flatMap((offer) => offer.choices);
    this.buttons.forEach((each, number) => each.setAttribute("aria-pressed", String(choices[number].set)));
    if (this.isAwaited) this.buttons[0].focus();
    this.isAwaited = false;
  }

  build(offers) {
    this.buttons = [];
    const rows = offers.map((offer) => {
      const row = element("div", "gb-offer");
      row.setAttribute("role", "group");
      row.setAttribute("aria-label", offer.label);
      row.append(element("span", "gb-offer-part", offer.label), ...offer.choices.map((choice) => this.buildChoice(offer, choice)));
      return row;
    });
    this.root.replaceChildren(element("b", "gb-offers-title", this.board.labels.remove), ...rows);
  }

  buildChoice({ places }, { value, label }) {
    const choose = button("gb-button gb-choice", label, () => {
      this.board.cover([], places, choose.getAttribute("aria-pressed") === "true" ? null : value);
    });
    this.buttons.push(choose);
    return choose;
  }

  /** By a key on a cell: to the first button, now or when the answer is there. */
  await(isSelected) {
    if (isSelected && !this.root.hidden) this.buttons[0].focus();
    else this.isAwaited = true;
  }
}

/** What is left out, with a button each that puts it back, and one for all. */
function buildRemoved(board) {
  const { labels } = board;
  const host = element("div", "gb-removed");
  host.setAttribute("role", "status");
  let structure;
  board.addControl(() => {
    const removed = board.live.removal?.removed ?? [];
    if (JSON.stringify(removed) === structure) return;
    structure = JSON.stringify(removed);
    const hadFocus = host.contains(document.activeElement);
    const list = element("ul", "gb-removed-list");
    for (const { label, how, places } of removed) {
      const line = element("li");
      const back = button("gb-button", labels.put_back, () => board.cover([], places, null));
      back.setAttribute("aria-label", `${labels.put_back}: ${label}`);
      line.append(element("b", "", label), element("span", "gb-removed-how", how), back);
      list.append(line);
    }
    const all = button("gb-button", labels.put_all_back, () => board.cover([], removed.flatMap(({ places }) => places), null));
    const none = element("p", "gb-removed-none", labels.nothing_removed);
    none.tabIndex = -1; // a button that was pressed is gone, and the focus with it
    host.replaceChildren(...(removed.length ? [list, all] : [none]));
    if (hadFocus) (host.querySelector("button") ?? none).focus();
  });
  return host;
}
