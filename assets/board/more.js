// On a phone, and while presenting, most of the strip waits behind the button ⋯.

class More {
  constructor(strip, label) {
    this.strip = strip;
    this.rest = element("div", "gb-strip-rest");
    this.rest.id = "gb-strip-rest";
    this.button = button("gb-button gb-strip-more", "⋯", () => this.turn(!this.isOpen), label);
    this.button.setAttribute("aria-controls", this.rest.id);
    this.turn(false);
  }

  turn(isOpen) {
    this.isOpen = isOpen;
    this.strip.classList.toggle("gb-open", isOpen);
    this.button.setAttribute("aria-expanded", String(isOpen));
  }

  /** A click on anything outside the strip closes it. */
  onClick(event) {
    // a click may have replaced what was clicked
    if (this.isOpen && !event.composedPath().includes(this.strip)) this.turn(false);
  }

  /** True when Escape meant this. */
  onEscape({ target }) {
    if (!this.isOpen || target.closest?.(ESCAPABLE)) return false;
    this.turn(false);
    this.button.focus({ preventScroll: true });
    return true;
  }
}
