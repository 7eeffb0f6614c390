// What opens over the page: help, export, the person's name, and verdicts that are not saved yet.
import { desk, hear, post, tell } from "./api.js";
import { outbox } from "./outbox.js";
import { badge, bdi, button, byId, make, sentence } from "./text.js";

const [unsaved, waitingList, outboxDialog] = byId("unsaved", "waiting", "outbox");
const [saveModel, saveState, saveCommand] = byId("save-model", "save-state", "save-command");
const [who, openName] = byId("who", "open-name");

for (const name of ["save", "help", "name"]) {
  const [opener, dialog] = byId(`open-${name}`, name);
  opener.addEventListener("click", () => dialog.showModal());
}
for (const dialog of document.querySelectorAll("dialog")) {
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); }); // beside it
}

// ---- what is not saved yet ------------------------------------------------------------------------------------------

hear("outbox", (waiting) => {
  unsaved.removeAttribute("aria-label");
  unsaved.textContent = waiting.length ? `${waiting.length} unsaved` : "✓ saved";
  unsaved.classList.toggle("waiting", waiting.length > 0);
  unsaved.classList.toggle("troubled", waiting.some((entry) => entry.trouble));
  const rows = waiting.map((entry) => make("li", {},
    entry.kind === "undo" ? "undo" : badge(entry.verdict, true), " ", bdi(entry.text, 120),
    make("span", { class: "soft" }, entry.trouble ? ` ${entry.trouble} ` : ""),
    ...(entry.refused ? [button("Drop", () => outbox.drop(entry), "quiet")] : [])));
  if (!rows.length) rows.push(make("li", { class: "soft" }, "All verdicts are saved."));
  waitingList.replaceChildren(...rows);
});
hear("refused", () => { if (!outboxDialog.open) outboxDialog.showModal(); });
unsaved.addEventListener("click", () => outboxDialog.showModal());
document.getElementById("send-again").addEventListener("click", () => outbox.again());

// ---- the model ------------------------------------------------------------------------------------------------------

hear("state", ({ state: { save } }) => {
  saveModel.disabled = save.state === "working";
  const words = { none: "", working: "Saving the model…", failed: `Not saved: ${save.words}` };
  saveState.textContent = words[save.state] ?? sentence(save.words);
  saveCommand.hidden = save.state !== "done";
  const plain = /^[\w@%+=:,./-]+$/.test(save.folder);
  const folder = plain ? save.folder : `'${save.folder.replaceAll("'", "'\\''")}'`; // as a shell wants it
  saveCommand.querySelector("code").textContent = `strays score more.csv --model ${folder} --out scored.csv`;
});

saveModel.addEventListener("click", async () => {
  saveModel.disabled = true;
  saveState.textContent = "Saving the model…";
  try {
    await post("/api/model", {});
    tell("watch");
  } catch (trouble) {
    saveState.textContent = trouble.message;
    saveModel.disabled = false;
  }
});

saveCommand.querySelector("button").addEventListener("click", async (event) => {
  const code = saveCommand.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
    event.target.textContent = "Copied";
  } catch { getSelection().selectAllChildren(code); } // no clipboard here: selected, to be copied by hand
});

// ---- the person -----------------------------------------------------------------------------------------------------

const showName = () => { openName.textContent = desk.who || "you"; };
who.value = desk.who;
who.addEventListener("input", () => { desk.who = who.value; showName(); });
showName();
