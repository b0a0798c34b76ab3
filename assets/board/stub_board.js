// Hands the live state to the board: a queue until the strip has brought the board's code.
export default (component) => {
  (window.glassbox ??= []).push(["board", component]);
};
