// The panel that makes a link for a class: what to hide, whether to present, the link and its QR code.

const CODE_PIXELS = 340;
const LOCAL_HOST = /^(localhost|127\.|\[::1\])/;

class HandingOut {
  constructor(board, labels) {
    Object.assign(this, { board, labels, boxes: [] });
    this.root = element("dialog", "gb-hand-out");
    this.root.setAttribute("aria-label", labels.hand_out);
    this.root.addEventListener("close", () => this.board.live.hand_out && this.board.send({ type: "hand_out", page: null }));
  }

  open() {
    this.board.send({ type: "hand_out", page: this.page });
  }

  get page() {
    return location.origin + location.pathname;
  }

  /** `data`: the link that Python made, or null while the panel is closed. */
  draw(data) {
    if (!data) return void (this.root.open && this.root.close());
    if (!this.root.open) {
      this.build(data);
      this.root.showModal();
    }
    const { link, code } = data;
    this.link.value = link;
    this.code.hidden = !code;
    this.refusal.hidden = Boolean(code);
    if (!code) return;
    // whole pixels for each module: a scanner sees sharp edges
    const size = code.modules * Math.max(2, Math.floor(CODE_PIXELS / code.modules));
    Object.assign(this.code, { src: code.image, width: size, height: size });
  }

  build({ present, hidden, places }) {
    const { labels } = this;
    this.boxes = [];
    this.presentBox = this.buildBox(labels.hand_out_present, present);
    const groups = places.map(({ title, names }) => {
      const group = element("fieldset");
      group.append(element("legend", "", title));
      for (const [name, words] of names) {
        const box = this.buildBox(words, hidden.includes(name));
        this.boxes.push([name, box.firstChild]);
        group.append(box);
      }
      return group;
    });
    const choices = element("div", "gb-hand-out-choices");
    choices.append(this.presentBox, element("p", "gb-hint", labels.hand_out_hide), ...groups);

    this.link = element("input", "gb-field");
    Object.assign(this.link, { type: "text", readOnly: true });
    this.link.setAttribute("aria-label", labels.link);
    this.link.addEventListener("focus", () => this.link.select());
    this.copyButton = button("gb-button gb-main", labels.copy_link, () => this.copy());
    const line = element("div", "gb-hand-out-link");
    line.append(this.link, this.copyButton);
    this.code = element("img", "gb-code");
    this.code.alt = labels.code;
    this.refusal = element("p", "gb-refusal-inline", labels.code_too_long);
    this.refusal.setAttribute("role", "status");
    const result = element("div", "gb-hand-out-result");
    result.append(line, this.code, this.refusal);
    if (LOCAL_HOST.test(location.hostname)) result.append(element("p", "gb-hint", labels.local_link));

    const heading = element("div", "gb-hand-out-heading");
    heading.append(element("b", "", labels.hand_out), button("gb-close", "×", () => this.root.close(), labels.close));
    this.root.replaceChildren(heading, result, choices);
  }

  buildBox(words, checked) {
    const label = element("label", "gb-box");
    const box = element("input");
    Object.assign(box, { type: "checkbox", checked });
    box.addEventListener("change", () => this.change());
    label.append(box, element("span", "", words));
    return label;
  }

  change() {
    const hide = this.boxes.filter(([, box]) => box.checked).map(([name]) => name);
    this.board.send({ type: "hand_out", page: this.page, hide, present: this.presentBox.firstChild.checked });
  }

  /** A class often opens the app over plain http, where browsers have no clipboard but the old command. */
  async copy() {
    this.link.select();
    try {
      await navigator.clipboard.writeText(this.link.value);
    } catch {  // refused, or not there over plain http
      document.execCommand("copy");
    }
    setText(this.copyButton, this.labels.copied);
    setTimeout(() => setText(this.copyButton, this.labels.copy_link), COPIED_MILLISECONDS);
  }
}
