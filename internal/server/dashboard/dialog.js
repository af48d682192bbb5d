// Questions: every control that changes the crawl asks once, in a dialog that the keyboard can answer.

import { el } from "./dom.js";

// ask shows a question with fields of {name, label, type, value, required} and returns their values, or null when it was put off.
export function ask({ title, text, fields = [], act, danger }) {
  const dialog = document.getElementById("dialog");
  return new Promise((resolve) => {
    const form = el("form", { method: "dialog" },
      el("h2", { id: "dialog-title" }, title),
      text && el("p", {}, text),
      fields.map(({ name, label, ...rest }) => el("label", {}, label, " ", el("input", { name, ...rest }))),
      el("div", { class: "tools" },
        el("button", { value: "yes", class: danger ? "danger" : "main" }, act),
        el("button", { value: "no", formnovalidate: true }, "Cancel")));
    dialog.replaceChildren(form);
    dialog.returnValue = "no";
    dialog.onclose = () => resolve(dialog.returnValue === "yes" ? Object.fromEntries(new FormData(form)) : null);
    dialog.showModal();
  });
}

// order asks, carries out and shows again. It says what went wrong.
export function order(shared, label, question, carryOut, kind) {
  return el("button", {
    type: "button", class: kind,
    async click(event) {
      const answer = await ask({ act: label, danger: kind === "danger", ...question });
      if (!answer) return;
      event.target.disabled = true;
      try {
        await carryOut(answer);
        await shared.refresh();
      } catch (error) {
        shared.say(`${label}: ${error.message}`);
      } finally {
        event.target.disabled = false;
      }
    },
  }, label);
}
