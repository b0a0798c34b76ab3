// A button, and a place to drop files on: what is chosen goes to Python as base64, if it is small enough.

function build(parent) {
  const root = document.createElement("div");
  root.className = "files";
  const input = document.createElement("input");
  Object.assign(input, { type: "file", multiple: true, hidden: true });
  const choose = document.createElement("button");
  choose.type = "button";
  choose.onclick = () => input.click();
  const hint = document.createElement("span");
  const told = document.createElement("output");
  root.append(input, choose, hint, told);
  parent.append(root);
  return root;
}

/** The content of a file in base64. */
function read(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** `labels` are the words, `most` is the number of bytes that all files together may have. */
export default ({ data: { labels, most }, parentElement, setTriggerValue }) => {
  const root = parentElement.querySelector(".files") ?? build(parentElement);
  const [input, choose, hint, told] = root.children;
  choose.textContent = labels.choose;
  hint.textContent = labels.hint;
  told.textContent = "";
  root.removeAttribute("data-refused");

  const tell = (words, isRefusal = false) => {
    told.textContent = words;
    root.toggleAttribute("data-refused", isRefusal);
  };
  const take = async (chosen) => {
    const files = [...chosen];
    input.value = "";
    if (!files.length) return;
    if (files.reduce((sum, file) => sum + file.size, 0) > most) return void tell(labels.too_large, true);
    tell(labels.reading);
    try {
      const contents = await Promise.all(files.map(read));
      setTriggerValue("files", files.map(({ name }, place) => ({ name, content: contents[place] })));
    } catch {
      tell(labels.unreadable, true);
    }
  };
  input.onchange = () => take(input.files);
  root.ondragover = (event) => {
    event.preventDefault();
    root.toggleAttribute("data-over", true);
  };
  root.ondragleave = () => root.removeAttribute("data-over");
  root.ondrop = (event) => {
    event.preventDefault();
    root.removeAttribute("data-over");
    take(event.dataTransfer.files);
  };
};
