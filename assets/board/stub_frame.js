// Hands the frame to the board: a queue until the strip has brought the board's code.
export default (component) => {
  (window.glassbox ??= []).push(["frame", component]);
};
