// What changes something: it asks first, sends JSON to an endpoint, and says what was done.
"use strict";

{ // names of its own: other scripts run on the same page
const PIECE = 256 * 1024; // characters of a file in one request, about
const LINES = 5000;
const MOST_FILE = 64 * 1024 * 1024;
const question = document.getElementById("question");

async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.error || `the broker answered ${answer.status}`);
  return found;
}

function ask(text) {
  document.getElementById("question-text").textContent = text;
  question.returnValue = "no";
  question.showModal();
  return new Promise((resolve) =>
    question.addEventListener("close", () => resolve(question.returnValue === "yes"), { once: true }),
  );
}

function say(output, text, failed = false) {
  output.textContent = text;
  output.classList.toggle("warn", failed);
}

const many = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

function bytes(kind, text) {
  return kind === "null" ? null : kind === "base64" ? { base64: text.replace(/\s+/g, "") } : text;
}

function places(found) {
  return found.partitions
    .filter((each) => each.offset !== null)
    .map((each) => `${each.partition}:${each.offset}`)
    .join(", ");
}

const acts = {
  async record(form, output) {
    const given = form.elements;
    const record = {
      key: bytes(given["key-kind"].value, given.key.value),
      value: bytes(given["value-kind"].value, given.value.value),
      headers: [...form.querySelectorAll(".header")]
        .map((row) => row.querySelectorAll("input, select"))
        .filter(([name]) => name.value !== "")
        .map(([name, kind, value]) => ({ name: name.value, value: bytes(kind.value, value.value) })),
    };
    if (given.partition.value !== "") record.partition = Number(given.partition.value);
    if (!(await ask(`Send this record to ${form.dataset.topic}?`))) return;
    const found = await post(form.dataset.to, { records: [record] });
    say(output, `Sent: it is ${places(found)}.`);
  },

  async file(form, output) {
    const given = form.elements;
    const file = given.file.files[0];
    if (file.size > MOST_FILE) throw new Error("a file of more than 64 MB: use ixion produce");
    const lines = (await file.text()).split("\n");
    if (lines.at(-1) === "") lines.pop();
    if (!(await ask(`Send ${many(lines.length, "line")} of ${file.name} to ${form.dataset.topic}?`))) return;
    let from = 0, written = 0;
    while (from < lines.length) {
      let to = from, size = 0;
      while (to < lines.length && to - from < LINES && (to === from || size + lines[to].length < PIECE)) {
        size += lines[to++].length + 1;
      }
      const body = { format: given.format.value, text: lines.slice(from, to).join("\n") };
      if (given.partition.value !== "") body.partition = Number(given.partition.value);
      try {
        if (lines.slice(from, to).some((line) => line.trim() !== "")) {
          const found = await post(form.dataset.to, body);
          written += found.written;
          const refused = found.partitions.find((each) => each.error);
          if (refused) throw new Error(refused.error);
        }
      } catch (error) {
        throw new Error(`${many(written, "record")} sent; it stopped in lines ${from + 1} to ${to}: ${error.message}`);
      }
      from = to;
      say(output, `${many(written, "record")} sent …`);
    }
    say(output, `Sent: ${many(written, "record")}.`);
  },

  async preview(form, output) {
    const given = form.elements;
    const shown = document.getElementById("preview");
    const body = { to: given.to.value };
    if (given.topic.value !== "") body.topic = given.topic.value;
    shown.hidden = true;
    shown.querySelector("button.yes")?.remove();
    const found = await post(form.dataset.to, body);
    document.getElementById("changes").replaceChildren(
      ...found.changes.map((each) => {
        const row = document.createElement("tr");
        const more = each.committed === null ? "–" : (each.committed - each.target).toLocaleString("en", { signDisplay: "exceptZero" });
        const numbers = [each.partition, each.committed ?? "–", each.target, more];
        for (const [at, text] of [each.topic, ...numbers].entries()) {
          const cell = row.insertCell();
          cell.textContent = typeof text === "number" && at > 1 ? text.toLocaleString("en") : text;
          if (at) cell.className = "n";
        }
        return row;
      }),
    );
    const notes = [many(found.changes.length, "partition") + " would change"];
    if (found.same) notes.push(`${found.same.toLocaleString("en")} are there already`);
    if (found.faults.length) notes.push(`${many(found.faults.length, "partition")} cannot be reset: ${found.faults[0].error}`);
    if (found.members) notes.push(`the group has ${many(found.members, "member")}, which must stop first`);
    say(output, `${notes.join("; ")}.`, found.members > 0 || found.faults.length > 0);
    if (!found.changes.length) return;
    shown.hidden = false;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "yes";
    button.textContent = `Reset ${many(found.changes.length, "partition")}`;
    button.addEventListener("click", () =>
      guarded(output, async () => {
        if (!(await ask(`Reset ${many(found.changes.length, "partition")} of group ${form.dataset.group} to ${found.to}?`))) return;
        const done = await post(form.dataset.then, { changes: found.changes });
        shown.hidden = true;
        const left = done.faults.length ? `; ${many(done.faults.length, "partition")} refused: ${done.faults[0].error}` : "";
        say(output, `Reset: ${many(done.changed, "partition")}${left}.`, done.faults.length > 0);
      }),
    );
    shown.append(button);
  },
};

async function guarded(output, act) {
  const buttons = [...document.querySelectorAll("main button")].filter((each) => !each.closest("dialog"));
  buttons.forEach((each) => (each.disabled = true));
  try {
    await act();
  } catch (error) {
    say(output, error.message, true);
  } finally {
    buttons.forEach((each) => (each.disabled = false));
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-act]");
  if (!form) return;
  event.preventDefault();
  const output = form.querySelector("output");
  say(output, "");
  guarded(output, () => acts[form.dataset.act](form, output));
});

document.addEventListener("click", (event) => {
  const more = event.target.closest("[data-more]");
  if (more) {
    const row = more.previousElementSibling.cloneNode(true);
    row.querySelectorAll("input").forEach((input) => (input.value = ""));
    more.before(row);
    row.querySelector("input").focus();
    return;
  }
  const cancel = event.target.closest("[data-cancel]");
  if (!cancel) return;
  const output = document.getElementById("said");
  guarded(output, async () => {
    if (!(await ask(`Cancel ${cancel.dataset.what}? It will never be delivered.`))) return;
    await post(cancel.dataset.to, JSON.parse(cancel.dataset.cancel));
    cancel.closest("tr").remove();
    say(output, `Cancelled: ${cancel.dataset.what}. A record that was delivered a moment before is not taken back.`);
  });
});

// What is typed is text, unless another form was chosen for it.
document.addEventListener("input", (event) => {
  const kind = event.target.closest("textarea")?.parentElement.querySelector("select");
  if (kind?.value === "null" && event.target.value !== "") kind.value = "text";
});

document.querySelectorAll("[data-cancel]").forEach((button) => (button.hidden = false));

// Each record of a list can be sent again.
const records = document.getElementById("records");
if (records) {
  const lead = (item) => {
    const place = item.querySelector?.(".where .place");
    if (!place || item.querySelector(".again")) return;
    const [partition, offset] = place.textContent.split(":");
    const again = document.createElement("a");
    again.className = "again act";
    again.textContent = "send again";
    again.href = `${location.pathname.replace(/\/records$/, "/produce")}?partition=${partition}&offset=${offset}`;
    item.querySelector(".where").append(again);
  };
  [...records.children].forEach(lead);
  new MutationObserver((changes) => changes.forEach((each) => each.addedNodes.forEach(lead))).observe(records, { childList: true });
}
}
