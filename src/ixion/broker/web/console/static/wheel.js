// The wheel: rings for levels, the finest inside. Buckets fill, hands turn by the broker's clock, tasks fall inward.
// The broker sends a snapshot four times a second; everything between two snapshots is drawn here.
"use strict";

const canvas = document.getElementById("wheel");
const panel = document.getElementById("bucket");
const pen = canvas.getContext("2d");
const still = matchMedia("(prefers-reduced-motion: reduce)");
const RINGS = 7; // at least: level 7 of a wheel of 20 and 1 ms reaches 40 years
const TURN = Math.PI * 2;
const TOP = -Math.PI / 2;

let colours = {};
let size = 0, centre = 0, hub = 0, width = 0;
let now = JSON.parse(canvas.dataset.wheel); // the last snapshot
let before = null;
let lead = -Infinity; // the broker's clock minus ours, of the snapshot that came fastest
let shown = []; // by ring and bucket: the count as drawn, on its way to the count that is
let sparks = [];
let warmth = 0; // of the centre: how much runs
let chosen = null, hovered = null;
let recent = []; // snapshots of the last two seconds, for rates

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ground", "raised", "line", "text", "dim", "accent", "glow"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
  colours.faded = `${colours.glow}00`; // not "transparent", which is black on its way
  colours.font = style.getPropertyValue("--font");
}

function measure() {
  const box = canvas.getBoundingClientRect();
  const scale = Math.min(devicePixelRatio || 1, 2);
  size = box.width;
  canvas.width = canvas.height = Math.round(size * scale);
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  centre = size / 2;
  hub = size * 0.105;
  width = (size * 0.485 - hub) / rings();
}

const rings = () => Math.max(RINGS, now.levels.length);
const inner = (ring) => hub + ring * width + width * 0.1;
const outer = (ring) => hub + (ring + 1) * width;
const middle = (ring) => (inner(ring) + outer(ring)) / 2;
const buckets = () => now.levels[0].counts.length;
const tickOf = (ring) => now.levels[0].tick_ms * buckets() ** ring;
const time = () => performance.now() + lead;
const handOf = (ring, at) => ((at / tickOf(ring)) % buckets()) / buckets() * TURN + TOP;
const angleOf = (bucket) => (bucket + 0.5) / buckets() * TURN + TOP;

// Snapshots

function take(snapshot) {
  before = now;
  now = snapshot;
  const offset = snapshot.now_ms - performance.now();
  lead = Math.abs(offset - lead) > 1000 ? offset : Math.max(lead - 0.05, offset); // follow the clock, ignore delays
  recent.push({ at: performance.now(), snapshot });
  while (recent.length > 9) recent.shift();
  figures();
  if (still.matches) {
    shown = [];
    draw();
    return;
  }
  const seconds = Math.max((snapshot.now_ms - before.now_ms) / 1000, 0.05);
  now.levels.forEach((level, ring) => {
    const old = before.levels[ring];
    const fell = level.fell_in - (old ? old.fell_in : 0);
    const came = level.arrived - (old ? old.arrived : 0) - fell;
    launch(few(fell), () => ({ from: outer(ring + 1) - width / 2, angle: handOf(ring + 1, time()), to: middle(ring), turn: landing(level, old) }));
    launch(few(came), () => {
      const turn = landing(level, old);
      return { from: size * 0.5, angle: turn + 0.25, to: middle(ring), turn };
    });
  });
  const ran = snapshot.expired - before.expired;
  launch(few(ran), () => { const turn = handOf(0, time()) + Math.random(); return { from: middle(0), angle: turn, to: hub * 0.2, turn: turn + 0.6, runs: true }; });
  warmth = Math.max(warmth, Math.min(1, Math.log10(1 + ran / seconds) / 4));
}

// A thousand tasks look like many, not like a thousand.
const few = (count) => (count <= 0 ? 0 : count < 6 ? count : Math.min(36, Math.round(6 + 5 * Math.log2(count / 6))));

function landing(level, old) {
  const grown = [];
  level.counts.forEach((count, bucket) => { if (count > (old ? old.counts[bucket] : 0)) grown.push(bucket); });
  const bucket = grown.length ? grown[Math.floor(Math.random() * grown.length)] : Math.floor(Math.random() * level.counts.length);
  return angleOf(bucket) + (Math.random() - 0.5) * (TURN / level.counts.length) * 0.7;
}

function launch(count, make) {
  for (let each = 0; each < count && sparks.length < 500; each += 1) {
    sparks.push({ ...make(), begins: performance.now() + Math.random() * 250, takes: 420 + Math.random() * 260 });
  }
}

function figures() {
  const first = recent[0], last = recent[recent.length - 1];
  const seconds = (last.snapshot.now_ms - first.snapshot.now_ms) / 1000;
  for (const each of document.querySelectorAll("[data-figure]")) {
    const name = each.dataset.figure;
    if (name === "size") each.textContent = now.size.toLocaleString("en");
    else if (seconds > 0) {
      const rate = (last.snapshot[name] - first.snapshot[name]) / seconds;
      each.textContent = `${rate >= 10 ? Math.round(rate).toLocaleString("en") : rate.toFixed(1)} /s`;
    }
  }
}

// Drawing

function sector(ring, from, to, low, high) {
  pen.beginPath();
  pen.arc(centre, centre, high, from, to);
  pen.arc(centre, centre, low, to, from, true);
  pen.closePath();
}

function draw() {
  const at = time();
  pen.clearRect(0, 0, size, size);
  const count = buckets();
  for (let ring = rings() - 1; ring >= 0; ring -= 1) {
    const level = now.levels[ring];
    const low = inner(ring), high = outer(ring);
    const gap = 3.2 / middle(ring); // as wide outside as inside
    shown[ring] ??= level ? [...level.counts] : [];
    for (let bucket = 0; bucket < count; bucket += 1) {
      const from = bucket / count * TURN + TOP + gap / 2, to = (bucket + 1) / count * TURN + TOP - gap / 2;
      sector(ring, from, to, low, high);
      pen.fillStyle = colours.line;
      pen.globalAlpha = level ? 0.42 : 0.16;
      pen.fill();
      if (!level) continue;
      const wanted = level.counts[bucket];
      const drawn = shown[ring][bucket] += (wanted - shown[ring][bucket]) * (still.matches ? 1 : 0.16);
      if (drawn > 0.02) {
        const full = Math.min(1, 0.3 + 0.7 * Math.log10(drawn + 0.1) / 4.5);
        sector(ring, from, to, low, low + (high - low) * Math.min(full, drawn));
        pen.fillStyle = colours.accent;
        pen.globalAlpha = 0.6 + 0.4 * full;
        pen.fill();
      }
    }
    pen.globalAlpha = 1;
    hand(ring, at, low, high);
  }
  marks();
  if (chosen) outline(chosen, colours.text, 2);
  if (hovered) outline(hovered, colours.glow, 1.2);
  fly();
  core();
}

// A hand with its wake. The finest ring turns fifty times a second: of it one sees a shine only.
function hand(ring, at, low, high) {
  const level = now.levels[ring];
  if (!level && ring >= now.levels.length + 1) return;
  const angle = handOf(ring, at);
  const turnMs = tickOf(ring) * buckets();
  if (turnMs < 100) {
    sector(ring, 0, TURN, low, high);
    pen.globalAlpha = 0.1;
    pen.fillStyle = colours.glow;
    pen.fill();
    pen.globalAlpha = 1;
    return;
  }
  const wake = turnMs < 1000 ? 2.2 : turnMs < 20_000 ? 0.9 : 0.35;
  const sweep = pen.createConicGradient(angle - wake, centre, centre);
  const part = wake / TURN;
  sweep.addColorStop(0, colours.faded);
  sweep.addColorStop(part, colours.glow);
  sweep.addColorStop(part + 0.0001, colours.faded);
  pen.globalAlpha = 0.34;
  pen.fillStyle = sweep;
  sector(ring, angle - wake, angle, low, high);
  pen.fill();
  pen.globalAlpha = 1;
  pen.strokeStyle = colours.glow;
  pen.lineWidth = 1.6;
  pen.lineCap = "round";
  pen.beginPath();
  pen.moveTo(centre + Math.cos(angle) * (low - 1), centre + Math.sin(angle) * (low - 1));
  pen.lineTo(centre + Math.cos(angle) * (high + 1), centre + Math.sin(angle) * (high + 1));
  pen.stroke();
}

function marks() {
  const font = Math.max(8.5, Math.min(11, width * 0.26));
  pen.font = `500 ${font}px ${colours.font}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (let ring = 0; ring < rings(); ring += 1) {
    const label = brief(tickOf(ring));
    const y = centre - middle(ring);
    pen.fillStyle = colours.ground;
    pen.globalAlpha = 0.72;
    const half = pen.measureText(label).width / 2 + 3;
    pen.beginPath();
    pen.roundRect(centre - half, y - font * 0.72, half * 2, font * 1.44, 3);
    pen.fill();
    pen.globalAlpha = now.levels[ring] ? 1 : 0.55;
    pen.fillStyle = now.levels[ring] ? colours.text : colours.dim;
    pen.fillText(label, centre, y + 0.5);
  }
  pen.globalAlpha = 1;
}

function outline(place, colour, thickness) {
  const count = buckets();
  sector(place.ring, place.bucket / count * TURN + TOP, (place.bucket + 1) / count * TURN + TOP, inner(place.ring) - 1, outer(place.ring) + 1);
  pen.strokeStyle = colour;
  pen.lineWidth = thickness;
  pen.stroke();
}

function fly() {
  const moment = performance.now();
  pen.fillStyle = pen.strokeStyle = colours.glow;
  pen.lineCap = "round";
  sparks = sparks.filter((spark) => moment < spark.begins + spark.takes);
  for (const spark of sparks) {
    let way = spark.turn - spark.angle;
    way -= Math.round(way / TURN) * TURN;
    let last = null;
    for (let tail = 0; tail < 9; tail += 1) {
      const gone = (moment - spark.begins - tail * 14) / spark.takes;
      if (gone <= 0) break;
      const eased = gone * gone * (3 - 2 * gone); // it lets go, falls and lands
      const radius = spark.from + (spark.to - spark.from) * gone * gone;
      const angle = spark.angle + way * eased;
      const point = [centre + Math.cos(angle) * radius, centre + Math.sin(angle) * radius];
      pen.globalAlpha = (1 - tail / 9) * (1 - Math.max(0, gone - 0.8) * 3);
      if (last) {
        pen.lineWidth = 2 * (1 - tail / 10);
        pen.beginPath();
        pen.moveTo(...last);
        pen.lineTo(...point);
        pen.stroke();
      } else {
        pen.beginPath();
        pen.arc(...point, spark.runs ? 2.2 : 1.9, 0, TURN);
        pen.fill();
      }
      last = point;
    }
  }
  pen.globalAlpha = 1;
}

function core() {
  warmth *= 0.975;
  const light = pen.createRadialGradient(centre, centre, 0, centre, centre, hub * 1.5);
  light.addColorStop(0, colours.glow);
  light.addColorStop(1, colours.faded);
  pen.globalAlpha = 0.12 + 0.6 * warmth;
  pen.fillStyle = light;
  pen.beginPath();
  pen.arc(centre, centre, hub * 1.5, 0, TURN);
  pen.fill();
  pen.globalAlpha = 1;
  pen.fillStyle = colours.ground;
  pen.beginPath();
  pen.arc(centre, centre, hub * 0.94, 0, TURN);
  pen.fill();
  pen.strokeStyle = colours.accent;
  pen.globalAlpha = 0.35 + 0.65 * warmth;
  pen.lineWidth = 1.5;
  pen.stroke();
  pen.globalAlpha = 1;
  const place = hovered ?? chosen;
  const level = place && now.levels[place.ring];
  const number = place ? (level ? level.counts[place.bucket] : 0) : now.size;
  pen.fillStyle = colours.text;
  pen.font = `600 ${Math.max(11, hub * 0.36)}px ${colours.font}`;
  pen.fillText(number >= 1e5 ? `${(number / 1e6).toFixed(2)}M` : number.toLocaleString("en"), centre, centre - hub * 0.1);
  pen.font = `400 ${Math.max(8, hub * 0.18)}px ${colours.font}`;
  pen.fillStyle = colours.dim;
  pen.fillText(place ? `due in ${brief(dueIn(place))}` : "wait", centre, centre + hub * 0.3);
}

function dueIn(place) {
  const tick = tickOf(place.ring), count = buckets();
  const hand = Math.floor(time() / tick);
  const ahead = (place.bucket - hand % count + count) % count;
  return Math.max((hand + ahead) * tick - time(), 0);
}

function brief(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${trim(ms / 1000)} s`;
  if (ms < 7_200_000) return `${trim(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${trim(ms / 3_600_000)} h`;
  return ms < 63_000_000_000 ? `${trim(ms / 86_400_000)} d` : `${trim(ms / 31_557_600_000)} y`;
}

const trim = (number) => (number >= 20 || Number.isInteger(number) ? Math.round(number) : number.toFixed(1));

function turn() {
  draw();
  if (!still.matches) requestAnimationFrame(turn);
}

// A bucket is chosen: what waits in it

function placeAt(event) {
  const box = canvas.getBoundingClientRect();
  const x = event.clientX - box.left - centre, y = event.clientY - box.top - centre;
  const ring = Math.floor((Math.hypot(x, y) - hub) / width);
  if (ring < 0 || ring >= rings()) return null;
  const angle = (Math.atan2(y, x) - TOP + TURN) % TURN;
  return { ring, bucket: Math.floor(angle / TURN * buckets()) };
}

let asking = 0;
async function list() {
  clearTimeout(asking);
  if (!chosen) return;
  const { ring, bucket } = chosen;
  if (document.visibilityState === "visible") {
    let found = { count: 0, tasks: [] };
    if (now.levels[ring]) {
      try {
        const answer = await fetch(`/api/v1/wheel/${ring + 1}/${bucket}`);
        if (answer.ok) found = await answer.json();
      } catch { /* asked again below */ }
    }
    if (chosen && chosen.ring === ring && chosen.bucket === bucket) show(found, ring);
  }
  asking = setTimeout(list, ring < 3 ? 500 : 2000);
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

function show(found, ring) {
  const head = element("h2", `${found.count.toLocaleString("en")} in this bucket`);
  head.append(element("small", `level ${ring + 1}, ${brief(tickOf(ring))} wide`));
  const lines = document.createElement("ul");
  for (const task of found.tasks) {
    const line = document.createElement("li");
    line.append(element("b", task.kind), element("span", task.due_in_ms < 0 ? "due" : brief(task.due_in_ms)));
    if (task.waits_for) line.append(element("em", task.waits_for));
    lines.append(line);
  }
  if (!found.count) lines.append(element("li", now.levels[ring] ? "Nothing waits here at this moment." : "This level is made when the first task needs it."));
  const left = found.count - found.tasks.length;
  if (left > 0 && found.tasks.length) lines.append(element("li", `and ${left.toLocaleString("en")} more`));
  panel.replaceChildren(head, lines);
}

function choose(place) {
  chosen = place;
  if (still.matches) draw();
  list();
}

canvas.addEventListener("pointermove", (event) => { hovered = event.pointerType === "mouse" ? placeAt(event) : null; if (still.matches) draw(); });
canvas.addEventListener("pointerleave", () => { hovered = null; if (still.matches) draw(); });
canvas.addEventListener("click", (event) => choose(placeAt(event)));
canvas.addEventListener("keydown", (event) => {
  const at = chosen ?? { ring: 2, bucket: 0 };
  const count = buckets();
  const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 0], ArrowDown: [-1, 0], Enter: [0, 0] };
  const move = moves[event.key];
  if (!move) return;
  event.preventDefault();
  choose({ ring: Math.min(Math.max(at.ring + move[0], 0), rings() - 1), bucket: (at.bucket + move[1] + count) % count });
});

readColours();
measure();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColours);
new ResizeObserver(() => { measure(); if (still.matches) draw(); }).observe(canvas);
lead = now.now_ms - performance.now();
document.fonts?.ready.then(() => { if (still.matches) draw(); });
turn();

const stream = new EventSource("/api/v1/wheel/events");
stream.addEventListener("wheel", (event) => {
  document.getElementById("content").classList.remove("old");
  take(JSON.parse(event.data));
});
stream.onerror = () => {
  document.getElementById("content").classList.add("old");
  if (stream.readyState === EventSource.CLOSED) checkSession();
};
