// Keys of the whole page, for when no grid, field or control has the focus.

const TEXT_ENTRY = "input:not([type=range]):not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable=true]";
const INTERACTIVE = `input, textarea, select, button, summary, dialog, a[href]:not(${WORD}), iframe, [contenteditable=true],
  .gb [tabindex], [role=button], [role=slider], [role=tab], [role=option], [role=combobox], [role=menuitem]`;

/** Undo and redo; Escape for what is open; steps while presenting; else ← → between lessons. */
function handlePageKey(board, event) {
  if (!board.live || event.defaultPrevented) return;
  const { target } = event;
  const key = event.key.toLowerCase();
  if ((event.ctrlKey || event.metaKey) && !event.altKey && (key === "z" || key === "y")) {
    if (target.closest?.(TEXT_ENTRY)) return;
    event.preventDefault();
    if (!board.hides("undo")) board.send({ type: key === "y" || event.shiftKey ? "redo" : "undo" });
    return;
  }
  if (key === "escape" && board.strip?.more.onEscape(event)) return void event.preventDefault();
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  if (board.presentation.isOn) {
    if (board.presentation.onKey(event)) event.preventDefault();
    return;
  }
  if (event.shiftKey || target.closest?.(INTERACTIVE)) return;
  const { previous, next } = board.live.strip;
  const lesson = { arrowleft: previous, arrowright: next }[key]?.lesson;
  if (lesson) board.go(lesson);
}
