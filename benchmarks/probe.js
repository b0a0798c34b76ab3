// Runs inside a measured page: when a key went down, when its edit went to the server and the answer
// came, when the watched cell changed, and when that change had been painted. Milliseconds of
// `performance.now()`, which count from the start of the navigation.
window.benchmark = (() => {
  const times = { pressed: [], released: [], sent: [], received: [] };
  let paints = []; // { value, changed, painted } of the watched cell, at most one a frame
  let arrivedAt;
  let onPaint = () => {};

  addEventListener("keydown", (event) => times.pressed.push(event.timeStamp), true);
  addEventListener("keyup", (event) => times.released.push(event.timeStamp), true);

  window.WebSocket = class extends WebSocket {
    constructor(...parameters) {
      super(...parameters);
      this.addEventListener("message", () => times.received.push(performance.now()));
    }
    send(data) {
      times.sent.push(performance.now());
      super.send(data);
    }
  };

  function afterPaint(act) {
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = act;
      channel.port2.postMessage(0);
    });
  }

  function observe(act) {
    const observer = new MutationObserver(() => act(observer));
    observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
  }

  /** The number in the watched cell; undefined while the page is being redrawn. */
  function read({ selector, place, count }) {
    const found = document.querySelectorAll(selector);
    if (found.length !== count) return undefined;
    return found[place].dataset.value ?? found[place].textContent;
  }

  return {
    /** Records every painted change of one cell. */
    watch(cell) {
      let last = read(cell);
      let frame = null;
      observe(() => {
        const value = read(cell);
        if (value === undefined || value === last) return;
        last = value;
        const isFirstOfFrame = frame === null;
        frame = { value: Number(value), changed: performance.now() };
        if (!isFirstOfFrame) return;
        afterPaint(() => {
          paints.push({ ...frame, painted: performance.now() });
          frame = null;
          onPaint();
        });
      });
    },

    /** Resolves when `expected` has been painted: the stages of the edit, from its key press on. */
    painted(expected, tolerance) {
      const isIt = ({ value }) => Math.abs(value - expected) <= tolerance;
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`${expected} was never painted`)), 8000);
        onPaint = () => {
          const paint = paints.findLast(isIt);
          if (!paint) return;
          clearTimeout(timer);
          onPaint = () => {};
          const pressed = times.pressed.at(-1);
          const sent = times.sent.find((time) => time >= pressed);
          const received = times.received.findLast((time) => time <= paint.changed);
          resolve({
            sent: sent - pressed, received: received - pressed, changed: paint.changed - pressed,
            painted: paint.painted - pressed,
          });
        };
        onPaint();
      });
    },

    forget() {
      paints = [];
      for (const list of Object.values(times)) list.length = 0;
    },

    /** What a held key did: paints while it was down, and the time from its release to the last one. */
    held() {
      const [pressed, released] = [times.pressed[0], times.released.at(-1)];
      const during = paints.filter(({ painted }) => painted <= released).length;
      return {
        rate: (during * 1000) / (released - pressed), settled: paints.at(-1).painted - released,
        value: paints.at(-1).value,
      };
    },

    /** Notes when as many of each selector as wanted are there and painted. */
    arrive(wanted) {
      observe((observer) => {
        const isThere = ([selector, count]) => document.querySelectorAll(selector).length >= count;
        if (!Object.entries(wanted).every(isThere)) return;
        observer.disconnect();
        afterPaint(() => (arrivedAt = performance.now()));
      });
    },
    arrivedAt: () => arrivedAt ?? null,
  };
})();
