// What opens over the page: help, export, the person's name, and verdicts that are not saved yet.
import { desk, download, emit, on, post, troubleOf } from "./api.js";
import { outbox } from "./outbox.js";
import { badge, bdi, button, byId, element, make, sentence, within } from "./text.js";

const [unsaved, waitingList, sendAgain] = byId("unsaved", "waiting", "send-again");
const outboxDialog = element("outbox", HTMLDialogElement);
const saveModel = element("save-model", HTMLButtonElement);
const [saveState, saveCommand, openName] = byId("save-state", "save-command", "open-name");
const who = element("who", HTMLInputElement);

for (const name of ["save", "help", "name"]) {
  const dialog = element(name, HTMLDialogElement);
  element(`open-${name}`, HTMLElement).addEventListener("click", () => dialog.showModal());
}
for (const dialog of document.querySelectorAll("dialog")) {
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); }); // beside it
}

// ---- what is not saved yet ------------------------------------------------------------------------------------------

on("outbox", (waiting) => {
  unsaved.removeAttribute("aria-label");
  unsaved.textContent = waiting.length ? `${waiting.length} unsaved` : "✓ saved";
  unsaved.classList.toggle("waiting", waiting.length > 0);
  unsaved.classList.toggle("troubled", waiting.some((entry) => Boolean(entry.trouble)));
  const rows = waiting.map((entry) => make("li", {},
    entry.kind === "undo" ? "undo" : badge(entry.verdict, true), " ", bdi(entry.text, 120),
    make("span", { class: "soft" }, entry.trouble ? ` ${entry.trouble} ` : ""),
    ...(entry.refused ? [button("Drop", () => outbox.drop(entry), "quiet")] : [])));
  if (!rows.length) rows.push(make("li", { class: "soft" }, "All verdicts are saved."));
  waitingList.replaceChildren(...rows);
});
on("refused", () => { if (!outboxDialog.open) outboxDialog.showModal(); });
unsaved.addEventListener("click", () => outboxDialog.showModal());
sendAgain.addEventListener("click", () => outbox.again());

// ---- labels ---------------------------------------------------------------------------------------------------------

/** @type {NodeListOf<HTMLElement>} */
const downloads = document.querySelectorAll("[data-download]");
for (const one of downloads) {
  one.addEventListener("click", async () => {
    saveState.textContent = "Writing the file…";
    try {
      await download(one.dataset.download ?? "");
      saveState.textContent = "";
    } catch (thrown) { saveState.textContent = troubleOf(thrown).message; }
  });
}

// ---- the model ------------------------------------------------------------------------------------------------------

on("state", ({ state: { save } }) => {
  saveModel.disabled = save.state === "working";
  const [done, failed] = [sentence(save.words), `Not saved: ${save.words}`];
  const words = { none: "", working: "Saving the model…", done, failed };
  saveState.textContent = words[save.state];
  saveCommand.hidden = save.state !== "done";
  const plain = /^[\w@%+=:,./-]+$/.test(save.folder);
  const folder = plain ? save.folder : `'${save.folder.replaceAll("'", "'\\''")}'`; // as a shell wants it
  within(saveCommand, "code").textContent = `strays score more.csv --model ${folder} --out scored.csv`;
});

saveModel.addEventListener("click", async () => {
  saveModel.disabled = true;
  saveState.textContent = "Saving the model…";
  try {
    await post("/api/model", {});
    emit("watch", undefined);
  } catch (thrown) {
    saveState.textContent = troubleOf(thrown).message;
    saveModel.disabled = false;
  }
});

const copy = within(saveCommand, "button");
copy.addEventListener("click", async () => {
  const code = within(saveCommand, "code");
  try {
    await navigator.clipboard.writeText(code.textContent ?? "");
    copy.textContent = "Copied";
  } catch { getSelection()?.selectAllChildren(code); } // no clipboard here: selected, to be copied by hand
});

// ---- the person -----------------------------------------------------------------------------------------------------

const showName = () => { openName.textContent = desk.who || "you"; };
who.value = desk.who;
who.addEventListener("input", () => { desk.who = who.value; showName(); });
showName();
