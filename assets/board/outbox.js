// Events on their way to Python, and the address that the answers bring.

const FIRST_RETRY_MILLISECONDS = 3000;
const LONGEST_RETRY_MILLISECONDS = 24000;
const ADDRESS_PAUSE_MILLISECONDS = 400;

/**
 * One event is in flight. While it is, edits pile up: of each cell only the newest value is kept,
 * and no other event is lost or overtaken. What gets no answer is sent again under its own number,
 * which Python carries out once, until it does.
 */
class Outbox {
  constructor(transmit, onLate) {
    Object.assign(this, { transmit, onLate, waiting: [], inFlight: null, lastNumber: 0, answered: 0, isLate: false });
  }

  /** The event as it will be sent; an edit may join one that is still waiting. */
  send(event) {
    const joined = this.findWaiting(event);
    if (joined) return Object.assign(joined, event);
    this.waiting.push(event);
    this.sendNext();
    return event;
  }

  findWaiting(event) {
    for (const earlier of this.waiting.toReversed()) {
      const mayBePassed = earlier.type === "edit" || earlier.type === "select";
      if (earlier.type === event.type && isReplacedBy(earlier, event)) return earlier;
      if (!mayBePassed) return undefined;
    }
    return undefined;
  }

  sendNext() {
    if (this.inFlight || this.waiting.length === 0) return;
    this.inFlight = this.waiting.shift();
    this.inFlight.seq = ++this.lastNumber;
    this.transmitInFlight(FIRST_RETRY_MILLISECONDS);
  }

  transmitInFlight(patience) {
    this.timer = setTimeout(() => {
      this.isLate = true;
      this.onLate();
      this.transmitInFlight(Math.min(2 * patience, LONGEST_RETRY_MILLISECONDS));
    }, patience);
    this.transmit({ ...this.inFlight });
  }

  acknowledge(number) {
    this.answered = Math.max(this.answered, number);
    this.lastNumber = Math.max(this.lastNumber, number);
    if (this.inFlight && this.inFlight.seq <= number) {
      clearTimeout(this.timer);
      Object.assign(this, { inFlight: null, isLate: false });
    }
    this.sendNext();
  }

  /** Forgets what is waiting of a gesture that was taken back. */
  drop(gesture) {
    this.waiting = this.waiting.filter((event) => event.gesture !== gesture);
  }

  /** Waits no longer for the answer to a request that is of no use any more. */
  giveUp(type) {
    this.waiting = this.waiting.filter((event) => event.type !== type);
    if (this.inFlight?.type !== type) return;
    clearTimeout(this.timer);
    Object.assign(this, { inFlight: null, isLate: false });
    this.sendNext();
  }

  /** A new session knows nothing yet: `first` comes before everything that has no answer. */
  restart(first) {
    this.waiting = [first, ...this.unsent()];
    clearTimeout(this.timer);
    Object.assign(this, { inFlight: null, isLate: false });
    this.sendNext();
  }

  unsent() {
    return this.inFlight ? [this.inFlight, ...this.waiting] : this.waiting;
  }

  close() {
    clearTimeout(this.timer);
  }
}

function isReplacedBy(earlier, event) {
  if (event.type === "edit") return referenceOf(earlier.tensor, earlier.index) === referenceOf(event.tensor, event.index);
  if (event.type === "control") return earlier.name === event.name;
  return ["mode", "go"].includes(event.type) || (event.type === "select" && event.trail === "start");
}

/** Writes the address bar after a pause: browsers refuse addresses that change many times a second. */
class AddressBar {
  constructor(signal) {
    this.latest = null;
    // the steps of a presentation that are shown: the browser's own business, and yet they outlive a reload
    this.presented = Math.max(0, Number(new URLSearchParams(location.search).get("present")) - 1) || 0;
    addEventListener("pagehide", () => this.write(), { signal });
  }

  /** What the address says, or will say in a moment. */
  get query() {
    return this.latest ?? location.search;
  }

  /** What Python says of the state, and how far a presentation has got: present=1 is its start. */
  show(address) {
    if (!address) return;
    this.stated = address;
    const whole = address.replace(/([?&]present)=1(?=&|$)/, `$1=${this.presented + 1}`);
    if (whole === this.query) return;
    this.latest = whole;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), ADDRESS_PAUSE_MILLISECONDS);
  }

  showPresented(count) {
    if (count === this.presented) return;
    this.presented = count;
    this.show(this.stated);
  }

  write() {
    clearTimeout(this.timer);
    if (this.latest === null) return;
    const { latest } = this;
    this.latest = null;
    try {
      history.replaceState(history.state, "", location.pathname + latest + location.hash);
    } catch {
      // refused for now; the next answer brings the address again
    }
  }
}
