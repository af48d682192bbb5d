// Commands: every control that changes the crawl opens a dialog first, which the keyboard can operate. It stays open, with what was
// typed, until the command is done or cancelled.

import { serves } from "./client.js";
import { el } from "./dom.js";

function input({ name, label, options, lines, hint, ...rest }) {
  const field = options ? el("select", { name, ...rest }, options.map(([value, text]) => el("option", { value }, text)))
    : lines ? el("textarea", { name, rows: lines, spellcheck: "false", ...rest })
      : el("input", { name, autocomplete: "off", ...rest });
  return el("label", {}, label, field, hint && el("small", {}, hint));
}

// ask shows a dialog with fields of {name, label, type, options, lines, hint, required...}, and carries out what is asked for.
// The result is that of carryOut, or null if it was cancelled.
export function ask({ title, text, fields = [], act, danger }, carryOut) {
  const dialog = document.getElementById("dialog");
  return new Promise((resolve) => {
    const wrong = el("p", { class: "bad", role: "alert" });
    const yes = el("button", { value: "yes", class: danger ? "danger" : "main" }, act);
    let result = null;
    const form = el("form", {
      async submit(event) {
        event.preventDefault();
        if (yes.disabled) return;
        yes.disabled = true;
        wrong.textContent = "";
        try {
          result = (await carryOut(Object.fromEntries(new FormData(form)))) ?? {};
          dialog.close();
        } catch (error) {
          wrong.textContent = `${error.message}`;
          yes.disabled = false;
        }
      },
    },
    el("h2", { id: "dialog-title" }, title), text && el("p", {}, text), fields.map(input), wrong,
    el("div", { class: "tools" }, yes, el("button", { type: "button", click: () => dialog.close() }, "Cancel")));
    dialog.replaceChildren(form);
    dialog.onclose = () => resolve(result);
    dialog.showModal();
  });
}

// command is a button that asks (question is what the dialog shows, or returns it), carries out, says what was done and shows the page again. The result of carryOut may have a text
// done for people, and incomplete if a part of a cluster does not follow yet.
export function command(shared, label, question, carryOut, kind) {
  return el("button", {
    type: "button", class: kind,
    async click(event) {
      if (shared.lost) return shared.say(`${label}: nothing was done.`);
      const { signal } = shared;
      let shown = question;
      if (typeof question === "function") {
        event.target.disabled = true; // it may have to look how many it is about
        try {
          shown = await question();
        } catch (error) {
          return shared.say(`${label}: ${error.message}; nothing was done.`);
        } finally {
          event.target.disabled = false;
        }
        if (signal.aborted) return; // the page was left meanwhile
      }
      const result = await ask({ act: label, danger: kind === "danger", ...shown }, carryOut);
      if (!result) return;
      const why = result.incomplete?.why.join("; ");
      await shared.refresh(why ? `${label}: recorded, and not in force everywhere yet: ${why}` : result.done, !why);
      const again = [...document.querySelectorAll("main button")].find((b) => b.textContent === label);
      if (!event.target.isConnected) (again ?? document.getElementById("main")).focus({ preventScroll: true });
    },
  }, label);
}

// served is an element that is hidden unless the program has an operation.
export function served(shared, path, element) {
  const { signal } = shared;
  element.hidden = true;
  serves(path).then((is) => { element.hidden = !is; }, (error) => shared.fail(error, signal));
  return element;
}
