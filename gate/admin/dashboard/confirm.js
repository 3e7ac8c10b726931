// Asks before anything is changed.
import { byId } from "./draw.js";

// confirmed resolves to false, or to true, or to what was entered where a field is
// asked for.
export function confirmed(title, text, yes, field) {
  const dialog = byId("confirm");
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-yes").textContent = yes;
  byId("confirm-field").hidden = !field;
  const input = byId("confirm-value");
  input.required = Boolean(field);
  input.value = field?.value ?? "";
  if (field) byId("confirm-label").textContent = field.label;
  const before = document.activeElement;
  dialog.returnValue = "";
  dialog.showModal();
  if (field) input.focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      before?.focus();
      resolve(dialog.returnValue === "yes" && (field ? input.value : true));
    }, { once: true });
  });
}
