// Memory over address and step: a curve of what is in use, the map, the chip, and a table.

const LABELS = 76, AXIS = 20;
const MAP_KINDS = {
  weight: "#1f78c1", input: "#009e73", value: "#e69f00", scratch: "#b5bd2e", code: "#b980c9", row: "#d55e8a",
  table: "#8d99a6", stack: "#63b6e6", loader: "#5b6470", data: "#e3a27f",
};
const SORTS = { address: (s) => s.begin, bytes: (s) => -(s.end - s.begin), name: (s) => s.name, kind: (s) => s.kind,
  owner: (s) => s.owner, first: (s) => s.first, last: (s) => s.last };

class Memory {
  constructor(columns) {
    this.columns = columns;
    this.low = header.base;
    this.high = header.end;
    this.left = 0;
    this.right = header.steps.length;
    this.step = -1;
    this.sort = "address";
    this.found = null;
    this.by = "kind";
    this.choose(0);
  }

  choose(number) {
    this.number = number;
    this.group = header.groups[number];
    const [first, end] = this.group.spans, c = this.columns;
    this.spans = [];
    for (let at = first; at < end; at++) {
      const buffer = header.buffers[c.label[at]];
      this.spans.push({
        begin: c.begin[at], end: c.end[at], kind: header.kinds[c.kind[at]], label: c.label[at], first: c.first[at],
        last: c.last[at], name: header.labels[c.label[at]], owner: buffer ? buffer.owner : "", layout: buffer ? buffer.layout : "",
      });
    }
    const steps = header.steps.length;
    this.live = c.live.subarray(number * steps, (number + 1) * steps);
  }

  colour(span) {
    if (this.by === "kind" || !span.owner) return MAP_KINDS[span.kind];
    this.owners ??= new Map([...new Set(header.buffers.map((buffer) => buffer.owner))].map((owner, place) => [owner, place]));
    return `hsl(${(this.owners.get(span.owner) * 137.508 + 205) % 360} 55% 52%)`;
  }

  shows(span) {
    return !this.found || [span.name, span.owner, span.kind].some((name) => name.toLowerCase().includes(this.found));
  }

  lives(span) {
    return this.step < 0 || (span.first <= this.step && this.step <= span.last);
  }
}

function address(value) {
  return `0x${Math.round(value).toString(16)}`;
}

function stepText(step) {
  return `${step} ${header.steps[step].name}`;
}

// --- drawing ---

function drawCurve(memory) {
  const { pen, width, height } = prepare(document.getElementById("curve"));
  pen.clearRect(0, 0, width, height);
  const across = width - LABELS, steps = memory.right - memory.left, top = header.end - header.base;
  const most = Math.max(...memory.live, 1), scale = (height - 14) / most;
  for (let step = Math.floor(memory.left); step < memory.right; step++) {
    const x0 = LABELS + (step - memory.left) / steps * across, x1 = LABELS + (step + 1 - memory.left) / steps * across;
    let y = height;
    for (const kind of header.kinds) {
      const bytes = memory.totals[step * header.kinds.length + header.kinds.indexOf(kind)];
      if (!bytes) continue;
      pen.fillStyle = MAP_KINDS[kind];
      pen.fillRect(Math.max(x0, LABELS), y - bytes * scale, Math.max(x1 - Math.max(x0, LABELS) - (x1 - x0 > 6 ? 1 : 0), 0.5), bytes * scale);
      y -= bytes * scale;
    }
  }
  pen.font = "12px system-ui, sans-serif";
  pen.fillStyle = look.colours.soft;
  pen.textBaseline = "top";
  pen.fillText(`${(most / 1024).toFixed(0)} KiB`, 0, 1, LABELS - 6);
  pen.fillText(percent(most / top), 0, 16, LABELS - 6);
}

function sumKinds(memory) {
  const kinds = header.kinds.length;
  memory.totals = new Float64Array(header.steps.length * kinds);
  for (const span of memory.spans) {
    const kind = header.kinds.indexOf(span.kind);
    for (let step = span.first; step <= Math.min(span.last, header.steps.length - 1); step++) {
      memory.totals[step * kinds + kind] += span.end - span.begin;
    }
  }
}

function drawPlane(memory) {
  const { pen, width, height } = prepare(document.getElementById("plane"));
  const across = width - LABELS, down = height - AXIS;
  const x = (step) => LABELS + (step - memory.left) / (memory.right - memory.left) * across;
  const y = (place) => AXIS + (place - memory.low) / (memory.high - memory.low) * down;
  pen.clearRect(0, 0, width, height);
  pen.fillStyle = look.colours.lane;
  pen.fillRect(LABELS, AXIS, across, down);
  drawAxes(pen, memory, x, y, width, height);
  pen.save();
  pen.beginPath();
  pen.rect(LABELS, AXIS, across, down);
  pen.clip();
  for (const span of memory.spans) {
    if (span.end <= memory.low || span.begin >= memory.high) continue;
    const x0 = x(span.first), x1 = x(span.last + 1), y0 = y(span.begin), y1 = Math.max(y(span.end), y0 + 0.8);
    pen.globalAlpha = memory.shows(span) && memory.lives(span) ? 1 : 0.18;
    pen.fillStyle = memory.colour(span);
    pen.fillRect(x0, y0, Math.max(x1 - x0 - (x1 - x0 > 8 ? 1 : 0), 0.8), y1 - y0 > 4 ? y1 - y0 - 0.7 : y1 - y0);
    if (y1 - y0 > 13 && x1 - x0 > 50) {
      const hex = memory.by === "kind" || !span.owner ? pen.fillStyle : "#808080";
      pen.fillStyle = inkOn(hex);
      pen.font = "12px system-ui, sans-serif";
      pen.textBaseline = "middle";
      const from = Math.max(x0, LABELS) + 4, room = Math.min(x1, width) - from - 4;
      if (room > 30) pen.fillText(short(span.name, Math.floor(room / 6.4)), from, (Math.max(y0, AXIS) + Math.min(y1, height)) / 2, room);
    }
  }
  pen.globalAlpha = 1;
  pen.strokeStyle = look.colours.ink;
  pen.setLineDash([5, 4]);
  pen.beginPath();
  pen.moveTo(LABELS, y(header.region1));
  pen.lineTo(width, y(header.region1));
  pen.stroke();
  pen.setLineDash([]);
  if (memory.step >= 0) {
    pen.strokeStyle = look.colours.accent;
    pen.lineWidth = 2;
    pen.strokeRect(x(memory.step), AXIS, x(memory.step + 1) - x(memory.step), down - 1);
    pen.lineWidth = 1;
  }
  pen.restore();
}

function drawAxes(pen, memory, x, y, width, height) {
  pen.font = "11px ui-monospace, monospace";
  pen.fillStyle = look.colours.soft;
  pen.strokeStyle = look.colours.line;
  const wanted = (memory.high - memory.low) / Math.max((height - AXIS) / 34, 1);
  const grain = Math.max(2 ** Math.ceil(Math.log2(wanted)), 4);
  pen.textBaseline = "middle";
  for (let place = Math.ceil(memory.low / grain) * grain; place <= memory.high; place += grain) {
    pen.fillText(address(place), 0, Math.min(y(place), height - 6), LABELS - 6);
  }
  pen.font = "11px system-ui, sans-serif";
  const every = Math.max(1, Math.ceil((memory.right - memory.left) / ((width - LABELS) / 92)));
  for (let step = Math.ceil(memory.left); step < memory.right; step++) {
    if (step % every) continue;
    pen.textBaseline = "top";
    const from = x(step), room = Math.min(x(step + every), width) - from - 6;
    if (room > 8) pen.fillText(short(stepText(step), Math.max(Math.floor(room / 5.6), 2)), from + 2, 2, room);
  }
}

function drawChip(memory) {
  const canvas = document.getElementById("map"), { peaks, class_of: classes } = memory.columns;
  const { pen, width, height } = prepare(canvas);
  pen.clearRect(0, 0, width, height);
  let low = Infinity, high = 0;
  for (const peak of peaks) {
    low = Math.min(low, peak);
    high = Math.max(high, peak);
  }
  for (let tile = 0; tile < peaks.length; tile++) {
    const [left, top, across, down] = chipCell(tile, width, height);
    pen.fillStyle = heat(high > low ? (peaks[tile] - low) / (high - low) : 0.5);
    pen.fillRect(left, top, across - 0.5, down - 0.5);
    if (memory.group.class < 0 || classes[tile] !== memory.group.class) continue;
    pen.strokeStyle = look.colours.ink;
    pen.lineWidth = 1;
    pen.strokeRect(left + 0.5, top + 0.5, across - 1.5, down - 1.5);
  }
  document.getElementById("mapscale").textContent = `from ${count(low)} (faint) to ${count(high)} bytes (strong) in use at once; `
    + "framed: tiles of the class shown. Click a tile to show its class.";
}

function drawTable(memory) {
  const [head, body, foot] = ["thead", "tbody", "tfoot"].map((part) => document.querySelector(`#table ${part}`));
  const wanted = memory.spans.filter((span) => memory.lives(span) && memory.shows(span));
  const key = SORTS[memory.sort];
  wanted.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.begin - b.begin || a.first - b.first));
  head.replaceChildren();
  const titles = element("tr", undefined, head);
  for (const title of ["name", "kind", "bytes", "address", "owner", "first", "last"]) {
    const cell = element("th", title + (title === memory.sort ? " ↓" : ""), titles);
    cell.tabIndex = 0;
    cell.dataset.key = title;
    const choose = () => {
      memory.sort = title;
      drawTable(memory);
    };
    cell.addEventListener("click", choose);
    cell.addEventListener("keydown", (event) => event.key === "Enter" && choose());
  }
  body.replaceChildren(...wanted.slice(0, 400).map((span) => tableRow(memory, span)));
  foot.replaceChildren();
  const total = element("tr", undefined, foot);
  element("td", `${count(wanted.length)} spans`, total);
  element("td", "", total);
  const bytes = wanted.reduce((sum, span) => sum + span.end - span.begin, 0);
  const cell = element("td", count(bytes), total);
  cell.dataset.value = bytes;
  for (let more = 0; more < 4; more++) element("td", "", total);
  document.getElementById("more").textContent = wanted.length > 400 ? `${count(wanted.length - 400)} more; search to see them.` : "";
  const g = memory.group;
  document.getElementById("what").textContent = `Tile ${g.tile}${g.class < 0 ? "" : `, fullest of the ${count(g.tiles)} tiles of class ${g.class}`}: `
    + (memory.step < 0 ? `${count(g.peak_bytes)} bytes at most, in step ${g.peak_step_name}` : `${count(memory.live[memory.step])} bytes in step ${stepText(memory.step)}`)
    + (g.overlaps.length ? ` — ${count(g.overlaps.length)} OVERLAPS, first ${short(g.overlaps[0].one, 40)} and ${short(g.overlaps[0].other, 40)}` : "");
}

function tableRow(memory, span) {
  const line = element("tr");
  line.dataset.name = span.name;
  element("td", short(span.name, 80), line).title = span.name;
  const kind = element("td", undefined, line);
  kind.className = "kind";
  element("i", undefined, kind).style.background = memory.colour(span);
  kind.append(span.kind);
  element("td", count(span.end - span.begin), line).dataset.value = span.end - span.begin;
  element("td", address(span.begin), line);
  element("td", short(span.owner, 60), line);
  element("td", String(span.first), line).title = header.steps[span.first].name;
  element("td", String(span.last), line).title = header.steps[span.last].name;
  return line;
}

function drawLegend(memory) {
  const legend = document.getElementById("legend");
  legend.replaceChildren();
  const used = new Set(memory.spans.map((span) => span.kind));
  for (const kind of header.kinds.filter((name) => used.has(name))) {
    const entry = element("button", undefined, legend);
    element("i", undefined, entry).style.background = MAP_KINDS[kind];
    element("span", kind, entry);
    entry.setAttribute("aria-pressed", memory.found === kind);
    entry.addEventListener("click", () => memory.lookFor(memory.found === kind ? "" : kind));
  }
}

// --- pointing ---

function place(memory, event) {
  const canvas = document.getElementById("plane"), box = canvas.getBoundingClientRect();
  const step = memory.left + (event.clientX - box.left - LABELS) / (box.width - LABELS) * (memory.right - memory.left);
  const at = memory.low + (event.clientY - box.top - AXIS) / (box.height - AXIS) * (memory.high - memory.low);
  return [step, at, event.clientX - box.left > LABELS && event.clientY - box.top > AXIS];
}

function point(memory, event) {
  const [step, at, inside] = place(memory, event);
  if (!inside) return hideTip();
  const number = Math.min(Math.max(Math.floor(step), 0), header.steps.length - 1);
  const slack = (memory.high - memory.low) / document.getElementById("plane").clientHeight;
  const living = memory.spans.filter((span) => span.first <= number && number <= span.last);
  const span = living.find((one) => one.begin <= at && at < one.end) || living.find((one) => one.begin <= at + slack && at - slack < one.end);
  if (!span) return showTip(event, "free", [["address", address(at)], ["step", stepText(number)]]);
  return showTip(event, span.name, [
    ["kind", span.kind], ["asked for by", span.owner],
    ["address", `${address(span.begin)} to ${address(span.end)}`], ["bytes", count(span.end - span.begin)],
    ["lives", `from ${stepText(span.first)} to ${stepText(span.last)}`], ["layout", span.layout],
  ]);
}

function show(memory, low, high, left, right, changed) {
  const height = Math.min(Math.max(high - low, 64), header.end - header.base);
  const width = Math.min(Math.max(right - left, 1), header.steps.length);
  memory.low = Math.min(Math.max(low, header.base), header.end - height);
  memory.high = memory.low + height;
  memory.left = Math.min(Math.max(left, 0), header.steps.length - width);
  memory.right = memory.left + width;
  changed();
}

function listen(memory, changed) {
  const plane = document.getElementById("plane");
  const zoom = (factor, at = (memory.low + memory.high) / 2) => show(memory, at - (at - memory.low) * factor,
    at + (memory.high - at) * factor, memory.left, memory.right, changed);
  plane.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [step, at] = place(memory, event), factor = 1.0018 ** (event.deltaY || event.deltaX);
    if (!event.shiftKey) return zoom(factor, at);
    return show(memory, memory.low, memory.high, step - (step - memory.left) * factor, step + (memory.right - step) * factor, changed);
  }, { passive: false });
  plane.addEventListener("pointermove", (event) => !event.buttons && point(memory, event));
  plane.addEventListener("pointerleave", hideTip);
  plane.addEventListener("pointerdown", (event) => {
    hideTip();
    plane.setPointerCapture(event.pointerId);
    const { low, high, left, right } = memory, box = plane.getBoundingClientRect();
    let moved = false;
    const move = (to) => {
      moved ||= Math.hypot(to.clientX - event.clientX, to.clientY - event.clientY) > 3;
      const dy = (to.clientY - event.clientY) / (box.height - AXIS) * (high - low);
      const dx = (to.clientX - event.clientX) / (box.width - LABELS) * (right - left);
      if (moved) show(memory, low - dy, high - dy, left - dx, right - dx, changed);
    };
    const end = (to) => {
      plane.removeEventListener("pointermove", move);
      const [step, , inside] = place(memory, to);
      if (moved || !inside || to.type !== "pointerup") return;
      const number = Math.floor(step);
      memory.step = memory.step === number ? -1 : Math.min(Math.max(number, 0), header.steps.length - 1);
      changed();
    };
    plane.addEventListener("pointermove", move);
    plane.addEventListener("pointerup", end, { once: true });
    plane.addEventListener("pointercancel", end, { once: true });
  });
  const everything = () => show(memory, header.base, header.end, 0, header.steps.length, changed);
  for (const [id, action] of [["in", () => zoom(0.6)], ["out", () => zoom(1 / 0.6)], ["reset", everything]]) {
    document.getElementById(id).addEventListener("click", action);
  }
  const pan = (share) => show(memory, memory.low + share * (memory.high - memory.low), memory.high + share * (memory.high - memory.low),
    memory.left, memory.right, changed);
  const keys = { "+": () => zoom(0.75), "=": () => zoom(0.75), "-": () => zoom(1 / 0.75), 0: everything, w: () => pan(-0.2), s: () => pan(0.2),
    "/": () => document.getElementById("search").focus(), Escape: () => {
      memory.step = -1;
      memory.lookFor("");
    } };
  document.addEventListener("keydown", (event) => {
    const typing = ["INPUT", "SELECT"].includes(event.target.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape") || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  const map = document.getElementById("map");
  const tileAt = (event) => {
    const box = map.getBoundingClientRect(), left = event.clientX - box.left, top = event.clientY - box.top;
    for (let tile = 0; tile < memory.columns.peaks.length; tile++) {
      const [x, y, across, down] = chipCell(tile, box.width, box.height);
      if (left >= x && left < x + across && top >= y && top < y + down) return tile;
    }
    return -1;
  };
  map.addEventListener("pointermove", (event) => {
    const tile = tileAt(event);
    if (tile < 0) return hideTip();
    const group = memory.columns.class_of[tile];
    return showTip(event, `tile ${tile}`, [["peak", `${count(memory.columns.peaks[tile])} bytes`], ["class", group === 65535 ? "none" : String(group)]]);
  });
  map.addEventListener("pointerleave", hideTip);
  map.addEventListener("click", (event) => {
    const tile = tileAt(event);
    const number = header.groups.findIndex((group) => tile >= 0 && group.class === memory.columns.class_of[tile]);
    if (number >= 0) memory.pick(number);
  });
}

async function start() {
  const memory = new Memory(await loadColumns());
  const hash = new URLSearchParams(location.hash.slice(1));
  setTheme(["dark", "light"].includes(hash.get("theme")) ? hash.get("theme") : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  let waiting = 0;
  const changed = () => {
    waiting ||= requestAnimationFrame(() => {
      waiting = 0;
      drawCurve(memory);
      drawPlane(memory);
      drawChip(memory);
      drawTable(memory);
      drawLegend(memory);
    });
  };
  const select = document.getElementById("class"), search = document.getElementById("search");
  header.groups.forEach((group, number) => {
    const text = group.class < 0 ? `tiles like ${group.tile}` : `${group.class}: ${count(group.tiles)} tiles, ${count(group.peak_bytes)} bytes`;
    element("option", text, select).value = number;
  });
  memory.pick = (number) => {
    memory.choose(number);
    sumKinds(memory);
    select.value = number;
    changed();
  };
  memory.lookFor = (text) => {
    memory.found = text.trim().toLowerCase() || null;
    if (document.activeElement !== search) search.value = text;
    changed();
  };
  select.addEventListener("change", () => memory.pick(Number(select.value)));
  search.addEventListener("input", () => memory.lookFor(search.value));
  const colour = document.getElementById("colour");
  for (const name of ["kind", "owner"]) element("option", name, colour).value = name;
  colour.addEventListener("change", () => {
    memory.by = colour.value;
    changed();
  });
  document.getElementById("theme").addEventListener("click", () => {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    changed();
  });
  listen(memory, changed);
  addEventListener("resize", changed);
  const fullest = header.groups.reduce((most, group) => Math.max(most, group.peak_bytes), 0);
  document.title = `${header.package || "package"} · Tilewright memory`;
  document.getElementById("name").textContent = `Memory of ${short(header.package || "a package", 120)}`;
  document.getElementById("facts").textContent = `${count(header.groups.length)} classes of tiles · ${count(fullest)} of `
    + `${count(header.end - header.base)} bytes on the fullest tile · ${count(header.steps.length)} steps · package ${header.digest.slice(0, 12)}`;
  memory.pick(0);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.body.dataset.state = "ready";
    document.body.dataset.milliseconds = Math.round(performance.now());
  }));
}

start().catch((error) => {
  document.body.dataset.state = "failed";
  document.getElementById("facts").textContent = `This page could not be shown: ${error}`;
});
