// Changing a number by dragging.

const PIXELS_PER_RANGE = 200;
const DRAG_THRESHOLD_PIXELS = 4;

/** Dragging sideways over an editable cell. Touch is left alone: there a drag scrolls the page. */
function enableDragging(board, root) {
  let drag = null;
  root.addEventListener("pointerdown", (event) => {
    const cell = cellAt(event.target);
    if (!cell?.grid.isEditable || event.pointerType === "touch" || event.button !== 0) return;
    const [low, high] = board.rangeOf(cell);
    drag = {
      cell,
      pointer: event.pointerId,
      lastX: event.clientX,
      value: Number.isFinite(cell.value) ? cell.value : 0,
      perPixel: (high - low) / PIXELS_PER_RANGE,
      gesture: null,
    };
  });
  root.addEventListener("pointermove", (event) => {
    if (!drag || event.pointerId !== drag.pointer) return;
    if (!(event.buttons & 1)) return void (drag = null); // let go outside the board
    const distance = event.clientX - drag.lastX;
    if (drag.gesture === null) {
      if (Math.abs(distance) < DRAG_THRESHOLD_PIXELS) return;
      drag.gesture = board.newGesture();
      root.setPointerCapture(drag.pointer);
      root.classList.add("gb-dragging");
      board.select(drag.cell.tensor, drag.cell.index, "start");
    }
    drag.lastX = event.clientX;
    drag.value += distance * drag.perPixel * (event.shiftKey ? 0.1 : 1);
    board.edit(drag.cell, isWhole(drag.cell) ? Math.round(drag.value) : Number(drag.value.toPrecision(4)), drag.gesture);
  });
  const stop = (event) => {
    if (!drag || event.pointerId !== drag.pointer) return;
    if (drag.gesture !== null) {
      root.classList.remove("gb-dragging");
      // The click that ends a drag is part of the drag, not a click on a cell.
      const swallow = (click) => click.stopPropagation();
      root.addEventListener("click", swallow, { capture: true, once: true });
      setTimeout(() => root.removeEventListener("click", swallow, { capture: true }));
    }
    drag = null;
  };
  root.addEventListener("pointerup", stop);
  root.addEventListener("pointercancel", stop);
}
