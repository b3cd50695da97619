// Toast messages, some with an undo button.
import { h } from "./dom.js";

/** Shows a message. `action` adds a button. */
export function toast(text, action, ms = 6_000) {
  const place = document.getElementById("toasts");
  const close = () => message.remove();
  const button =
    action &&
    h(
      "button",
      {
        type: "button",
        class: "link",
        on: {
          click: () => {
            close();
            action.run();
          },
        },
      },
      action.label,
    );
  const message = h("div", { class: "toast" }, h("span", null, text), button);
  place.append(message);
  while (place.children.length > 3) place.firstChild.remove();
  // Keep it open while the pointer or the focus is on it.
  const leave = () => (message.matches(":hover, :focus-within") ? setTimeout(leave, 1_500) : close());
  setTimeout(leave, ms);
}

/** Copies text, and reports it. */
export async function copyText(text, notice) {
  try {
    await navigator.clipboard.writeText(text);
    toast(notice);
  } catch {
    toast("The browser did not allow copying");
  }
}

/** Shows an error. */
export function complain(error) {
  if (error.name === "AbortError") return;
  toast([error.message, error.remedy].filter(Boolean).join(". "), undefined, 9_000);
}
