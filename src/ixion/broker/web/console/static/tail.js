// The live tail: records as they come, newest on top. It pauses at a click and goes on where it stopped.
"use strict";

const follow = document.getElementById("follow");
const list = document.getElementById("records");
const summary = document.getElementById("summary");
const MOST = 300; // rows on the page
let stream = null;
let last = ""; // where each partition goes on
let came = 0, leftOut = 0;

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children.filter((child) => child != null));
  return made;
}

function text(found) {
  if (found.kind === "null") return [element("span", "dim", "null")];
  const schema = found.schema ? element("span", "dim", `${found.schema} `) : null;
  if (found.decoded !== undefined) return [schema, element("code", "", found.decoded)];
  return [
    schema,
    found.kind === "bytes" ? element("span", "dim", "base64 ") : null,
    element("code", "", found.text),
    found.cut ? element("span", "dim", ` … ${found.size.toLocaleString("en")} B`) : null,
  ].filter(Boolean);
}

function row(each) {
  const made = element("li", "new");
  made.tabIndex = 0;
  const place = element("a", "place", `${each.partition}:${each.offset}`);
  place.href = `${list.dataset.rows}/${each.partition}/${each.offset}`;
  const when = each.timestamp >= 0 ? new Date(each.timestamp).toISOString().slice(11, 23) : "–";
  made.append(
    element("p", "where",
      place,
      element("time", "", when),
      element("span", "dim", `${each.size.toLocaleString("en")} B`)),
  );
  if (each.key.kind !== "null") made.append(element("div", "key", ...text(each.key)));
  made.append(element("div", "value", ...text(each.value)));
  if (each.headers.length) {
    made.append(element("dl", "headers", ...each.headers.map((header) =>
      element("div", "", element("dt", "", header.name), element("dd", "", ...text(header.value))))));
  }
  return made;
}

function start() {
  const address = new URL(follow.dataset.tail, location.href);
  if (last) address.searchParams.set("after", last);
  stream = new EventSource(address);
  stream.addEventListener("records", (event) => {
    last = event.lastEventId;
    const found = JSON.parse(event.data);
    came += found.records.length;
    leftOut += found.left_out;
    list.prepend(...found.records.reverse().map(row));
    while (list.children.length > MOST) list.lastElementChild.remove();
    say();
  });
  stream.onerror = () => {
    summary.textContent = "The broker does not answer; trying again …";
    if (stream.readyState === EventSource.CLOSED) checkSession();
  };
  stream.onopen = say;
  follow.setAttribute("aria-pressed", "true");
  follow.textContent = "Pause";
}

function say() {
  const out = leftOut ? `, ${leftOut.toLocaleString("en")} more came faster than a page shows` : "";
  summary.textContent = stream
    ? `Following: ${came.toLocaleString("en")} records${out}.`
    : `Paused after ${came.toLocaleString("en")} records${out}; it goes on where it stopped.`;
}

follow.hidden = false;
follow.addEventListener("click", () => {
  if (stream) {
    stream.close();
    stream = null;
    follow.setAttribute("aria-pressed", "false");
    follow.textContent = "Follow";
    say();
  } else {
    start();
  }
});
