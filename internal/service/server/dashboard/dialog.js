// Confirmation: every control that changes the crawl opens a dialog first, which the keyboard can operate.

import { el } from "./dom.js";

// confirm shows a dialog with fields of {name, label, type, value, required} and returns their values, or null if it was cancelled.
export function confirm({ title, text, fields = [], act, danger }) {
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

// command is a button that confirms, executes and refreshes. It shows errors.
export function command(shared, label, question, carryOut, kind) {
  return el("button", {
    type: "button", class: kind,
    async click(event) {
      if (shared.lost) return shared.say("There is no contact with the crawl: nothing was done.");
      const answer = await confirm({ act: label, danger: kind === "danger", ...question });
      if (!answer) return;
      event.target.disabled = true;
      try {
        const done = await carryOut(answer);
        await shared.refresh();
        if (done?.incomplete) shared.say(`${label}: recorded, and not in force everywhere yet: ${done.incomplete.why.join("; ")}`);
      } catch (error) {
        shared.say(`${label}: ${error.message}`);
      } finally {
        event.target.disabled = false;
      }
    },
  }, label);
}
