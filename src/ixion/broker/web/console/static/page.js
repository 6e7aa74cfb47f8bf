// What every view has: it stays fresh, its tables sort, the keyboard works. Without this script all of it can be read.
"use strict";

// Fresh: the page asks for itself and takes over what has changed, while it is seen and nothing in it is selected.
const main = document.getElementById("content");
const order = new Map(); // by table: the column and the direction

async function refresh() {
  const seconds = Number(main.dataset.refresh);
  let next = seconds * 1000;
  if (document.visibilityState === "visible" && document.getSelection().isCollapsed) {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.status === 401) location.reload(); // the session has ended: sign in again
      if (!answer.ok) throw new Error(answer.status);
      const made = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of main.querySelectorAll("[data-live]")) {
        if (part.parentElement.closest("[data-live]")) continue;
        const fresh = made.getElementById(part.id);
        if (fresh && fresh.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) {
          part.replaceChildren(...fresh.childNodes);
        }
      }
      for (const [id, by] of order) sort(id, by.column, by.down);
      for (const [id, text] of narrowed) narrow(id, text);
      main.classList.remove("old");
    } catch {
      main.classList.add("old"); // the broker does not answer: what is shown is old
      next = 3000;
    }
  }
  setTimeout(refresh, next);
}

// A stream that the broker has ended for good: is there a session yet?
async function checkSession() {  // for the scripts of views
  const answer = await fetch("/api/v1/session").catch(() => null);
  const found = answer?.ok ? await answer.json() : null;
  if (found?.asks && !found.principal) location.reload();
}
if (main.dataset.refresh) setTimeout(refresh, Number(main.dataset.refresh) * 1000);

// Sorting: by the number of a cell if it has one, else by its text.
function weight(row, column) {
  const cell = row.cells[column];
  if (!cell) return "";
  const data = cell.querySelector("data");
  if (data) return Number(data.value);
  const text = cell.textContent.trim();
  const number = Number(text.replaceAll(",", ""));
  return text !== "" && Number.isFinite(number) ? number : text.toLowerCase();
}

function sort(id, column, down) {
  const body = document.getElementById(id);
  if (!body) return;
  const rows = [...body.rows];
  const weights = new Map(rows.map((row) => [row, weight(row, column)]));
  rows.sort((one, other) => {
    const a = weights.get(one), b = weights.get(other);
    const order = typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
    return down ? -order : order;
  });
  body.replaceChildren(...rows);
  const heads = body.closest("table").tHead.rows[0].cells;
  [...heads].forEach((head, number) => {
    if (number === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
}

document.addEventListener("click", (event) => {
  const head = event.target.closest("th button");
  if (head) {
    const cell = head.parentElement;
    const id = head.closest("table").tBodies[0].id;
    const before = cell.getAttribute("aria-sort");
    const down = before ? before === "ascending" : cell.classList.contains("n"); // numbers: the largest first
    order.set(id, { column: cell.cellIndex, down });
    sort(id, cell.cellIndex, down);
    return;
  }
  const command = event.target.closest("[data-copy]");
  if (command && navigator.clipboard) {
    navigator.clipboard.writeText(command.textContent);
    command.classList.add("copied");
    setTimeout(() => command.classList.remove("copied"), 1200);
  }
});

// Filters of the tables that come whole; long lists are filtered by the broker (the form in the heading).
const narrowed = new Map(); // by table: the text

function narrow(id, text) {
  const body = document.getElementById(id);
  if (!body) return;
  const wanted = text.toLowerCase();
  for (const row of body.rows) {
    const text = [...row.cells].map((cell) => cell.textContent).join("  ");
    row.hidden = !text.toLowerCase().includes(wanted);
  }
}

function addFilters() {
  const all = main.querySelector(".heading input[type=search]") !== null;
  for (const body of main.querySelectorAll("tbody")) {
    const region = body.closest(".scroll");
    const isFirst = body === main.querySelector("tbody");
    if (!region || (all && isFirst) || body.rows.length < 9 || narrowed.has(body.id)) continue;
    const input = document.createElement("input");
    input.type = "search";
    input.className = "narrow";
    input.placeholder = `filter ${region.getAttribute("aria-label")}`;
    input.setAttribute("aria-label", input.placeholder);
    input.addEventListener("input", () => { narrowed.set(body.id, input.value); narrow(body.id, input.value); });
    narrowed.set(body.id, "");
    const live = region.closest("[data-live]"); // outside of what a refresh replaces
    (live ?? region).before(input);
  }
}
addFilters();

// Keys
const keys = document.getElementById("keys");
let going = 0; // when g was pressed

function step(by) {
  const rows = [...main.querySelectorAll("tbody tr:not([hidden]), .records li")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.classList.contains("at"));
  const next = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
  rows[at]?.classList.remove("at");
  next.classList.add("at");
  next.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input, textarea, select");
  if (event.key === "Escape" && typing) typing.blur();
  if (typing || event.target.closest("dialog")) return;
  if (going && Date.now() - going < 1500) {
    going = 0;
    const view = document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
    if (view) location.href = view.href;
    return;
  }
  if (event.key === "g") going = Date.now();
  else if (event.key === "/") {
    const filter = main.querySelector("input[type=search]");
    if (filter) { filter.focus(); event.preventDefault(); }
  } else if (event.key === "?") keys.showModal();
  else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "Enter" && event.target === document.body) main.querySelector("tr.at a, li.at a")?.click();
});
