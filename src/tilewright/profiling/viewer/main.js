// What is shown, kept in the address so that a link leads back to it; and the controls.

const KEYS = ["step", "operation", "kernel", "kind", "phase", "tile", "run"];
const GROUPS = [...new Set([...KEYS, ...header.steps.flatMap((step) => step.metadata.map(([name]) => name))])];
const MEASURES = ["busy", "compute", "exchange", "synchronisation", "idle", "control", "critical", "workers", "host"];

class State {
  constructor(index) {
    this.index = index;
    this.low = 0;
    this.high = header.span;
    this.tiles = [];
    this.group = "step";
    this.sort = "critical";
    this.scope = "all";
    this.filter = "";
    this.measure = "busy";
    this.chipscope = "all";
    this.flameby = FLAMES[0];
    this.flamescope = "all";
    this.flame = "";
    this.search = "";
    this.chosen = null;
    this.theme = "";
    this.found = null;
    this.chosenSteps = null;
    this.chosenKind = -1;
  }

  // Whether an interval stands out: it matches the search and the chosen group.
  shows(step, kind) {
    if (this.found && !this.found[step]) return false;
    if (this.chosenSteps && !this.chosenSteps[step]) return false;
    return this.chosenKind < 0 || this.chosenKind === kind;
  }

  toggleTile(tile) {
    if (this.tiles.includes(tile)) this.tiles = this.tiles.filter((other) => other !== tile);
    else if (this.supervised(tile)) this.tiles = [...this.tiles, tile].slice(-12);
  }

  supervised(tile) {
    return this.index.supervisors.has(tile);
  }

  choose(id, by) {
    this.chosen = id;
    this.chosenSteps = id !== null && by.steps ? by.steps(id) : null;
    this.chosenKind = id !== null && by.kind ? by.kind(id) : -1;
    if (id !== null && by.tile && !this.tiles.includes(by.tile(id))) this.toggleTile(by.tile(id));
  }

  lookFor(text) {
    this.search = text;
    const wanted = text.trim().toLowerCase();
    const tile = /^tile\s+(\d+)$/.exec(wanted);
    this.found = !wanted || tile ? null : header.steps.map((step) => [step.name, step.operation, step.kernel]
      .some((name) => name.toLowerCase().includes(wanted)));
    if (tile && !this.tiles.includes(Number(tile[1]))) this.toggleTile(Number(tile[1]));
  }

  toHash() {
    const parts = new URLSearchParams();
    if (this.low > 0 || this.high < header.span) parts.set("time", `${Math.round(this.low)}-${Math.round(this.high)}`);
    parts.set("tiles", this.tiles.join(","));
    for (const [key, plain] of [["group", "step"], ["sort", "critical"], ["scope", "all"], ["filter", ""],
      ["measure", "busy"], ["chipscope", "all"], ["flameby", FLAMES[0]], ["flamescope", "all"], ["flame", ""],
      ["search", ""], ["theme", ""]]) {
      if (this[key] !== plain) parts.set(key, this[key]);
    }
    if (look.by !== "kind") parts.set("colour", look.by);
    return parts.toString();
  }

  fromHash(hash) {
    const parts = new URLSearchParams(hash.replace(/^#/, ""));
    const oneOf = (key, known) => known.includes(parts.get(key)) && (this[key] = parts.get(key));
    oneOf("group", GROUPS);
    oneOf("sort", COLUMNS.map((column) => column[0]));
    oneOf("scope", ["all", "view"]);
    oneOf("chipscope", ["all", "view"]);
    oneOf("flamescope", ["all", "view"]);
    oneOf("flameby", FLAMES);
    this.flame = (parts.get("flame") || "").slice(0, 2000);
    oneOf("measure", MEASURES);
    oneOf("theme", ["dark", "light"]);
    if (["kind", "operation", "kernel", "step"].includes(parts.get("colour"))) look.by = parts.get("colour");
    this.filter = (parts.get("filter") || "").slice(0, 200);
    const time = /^(\d+)-(\d+)$/.exec(parts.get("time") || "");
    if (time && Number(time[1]) < Number(time[2])) {
      this.low = Math.min(Number(time[1]), header.span - 8);
      this.high = Math.min(Number(time[2]), header.span);
    }
    if (parts.has("tiles")) this.setTiles(parts.get("tiles"));
    this.lookFor((parts.get("search") || "").slice(0, 200));
  }

  // `0,4-7`; what is no tile of the profile is left out.
  setTiles(text) {
    const wanted = [];
    for (const part of text.split(",")) {
      const match = /^\s*(\d{1,4})(?:-(\d{1,4}))?\s*$/.exec(part);
      if (!match) continue;
      for (let tile = Number(match[1]); tile <= Number(match[2] ?? match[1]) && wanted.length < 12; tile++) {
        if (this.supervised(tile) && !wanted.includes(tile)) wanted.push(tile);
      }
    }
    this.tiles = wanted;
  }
}

// The tiles that hold the longest parts of the critical path.
function mainTiles(index) {
  const cycles = new Map(), columns = index.columns;
  for (let at = 0; at < columns.p_begin.length; at++) {
    cycles.set(columns.p_tile[at], (cycles.get(columns.p_tile[at]) || 0) + columns.p_length[at]);
  }
  return [...cycles].sort((a, b) => b[1] - a[1]).slice(0, 2).map(([tile]) => tile).filter((tile) => index.supervisors.has(tile));
}

function options(id, names, chosen, changed) {
  const select = document.getElementById(id);
  for (const name of names) element("option", name, select).value = name;
  select.value = chosen;
  select.addEventListener("change", () => changed(select.value));
  return select;
}

async function start() {
  const index = new Index(await loadColumns());
  const state = new State(index);
  state.tiles = mainTiles(index);
  state.fromHash(location.hash);
  setTheme(state.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  mixColours();
  let waiting = 0, later = 0, linked = 0;
  const slow = () => {
    if (state.scope === "view") table.update();
    if (state.chipscope === "view") chip.update();
    if (state.flamescope === "view") flame.update();
  };
  // One drawing per frame, however many events; sums of the time shown when the hand rests.
  const changed = () => {
    if (!waiting) waiting = requestAnimationFrame(() => {
      waiting = 0;
      timeline.draw();
      chip.draw();
      table.draw();
      flame.draw();
      drawLegend(state, changed);
    });
    clearTimeout(later);
    later = setTimeout(slow, 150);
    clearTimeout(linked);
    linked = setTimeout(() => history.replaceState(null, "", `#${state.toHash()}`), 250);
  };
  const timeline = new Timeline(index, state, changed);
  const chip = new ChipMap(index, state, changed);
  const table = new SumTable(index, state, changed);
  const flame = new Flame(index, state, changed);
  state.timeline = timeline;
  controls(state, timeline, chip, table, flame, changed);
  describeProfile(index);
  chip.update();
  table.update();
  flame.update();
  changed();
  requestAnimationFrame(() => {
    document.body.dataset.state = "ready";
    document.body.dataset.milliseconds = Math.round(performance.now());
  });
}

function describeProfile(index) {
  const name = header.package || "profile";
  document.title = `${name} · Tilewright profile`;
  document.getElementById("name").textContent = `${short(name, 120)} on ${short(header.device, 60)}`;
  const runs = header.runs.length === 1 ? "1 run" : `${count(header.runs.length)} runs`;
  document.getElementById("facts").textContent = `${count(header.cycles)} device cycles (${duration(header.cycles)}) · ${runs} · `
    + `${count(index.tiles.length)} tiles · ${count(index.columns.s_begin.length + index.columns.w_begin.length)} intervals`
    + `${header.note ? ` · ${header.note}` : ""} · package ${header.digest.slice(0, 12)}`;
}

function drawLegend(state, changed) {
  if (!differs(drawLegend, look.by, document.documentElement.dataset.theme, state.chosenKind, state.tiles)) return;
  document.getElementById("tiles").value = state.tiles.join(",");
  const legend = document.getElementById("legend");
  legend.replaceChildren();
  const used = state.index.kinds;
  const add = (colour, text, pressed, act) => {
    const button = element("button", undefined, legend);
    element("i", undefined, button).style.background = colour;
    element("span", text, button);
    button.setAttribute("aria-pressed", String(pressed));
    button.addEventListener("click", () => {
      act();
      changed();
    });
  };
  header.kinds.forEach((kind, number) => {
    if (!used.has(number) || (look.by !== "kind" && kind.busy)) return;
    add(look.kinds[number], kind.name, state.chosenKind === number, () => {
      state.chosen = null;
      state.chosenSteps = null;
      state.chosenKind = state.chosenKind === number ? -1 : number;
    });
  });
  if (look.by === "kind") return;
  const seen = new Set();
  header.steps.forEach((step, number) => {
    const name = look.by === "step" ? stepName(number) : colourName(step, number);
    if (step.kind === "host" || seen.has(name) || seen.size > 60) return;
    seen.add(name);
    add(look.steps[number], name, false, () => state.lookFor(state.search === name ? "" : look.by === "step" ? step.name : name));
  });
}

function controls(state, timeline, chip, table, flame, changed) {
  const by = (id) => document.getElementById(id);
  options("colour", ["kind", "operation", "kernel", "step"], look.by, (value) => {
    look.by = value;
    mixColours();
    changed();
  });
  options("group", GROUPS, state.group, (value) => {
    state.group = value;
    state.choose(null, {});
    table.update();
    changed();
  });
  options("measure", MEASURES, state.measure, (value) => {
    state.measure = value;
    chip.update();
    changed();
  });
  options("flameby", FLAMES, state.flameby, (value) => {
    state.flameby = value;
    flame.update();
    changed();
  });
  for (const [id, panel] of [["scope", table], ["chipscope", chip], ["flamescope", flame]]) {
    by(id).value = state[id];
    by(id).addEventListener("change", () => {
      state[id] = by(id).value;
      panel.update();
      changed();
    });
  }
  by("filter").value = state.filter;
  by("filter").addEventListener("input", () => {
    state.filter = by("filter").value;
    changed();
  });
  by("search").value = state.search;
  by("search").addEventListener("input", () => {
    state.lookFor(by("search").value);
    changed();
  });
  by("search").addEventListener("keydown", (event) => event.key === "Enter" && nextMatch(state, timeline));
  by("tiles").addEventListener("change", () => {
    state.setTiles(by("tiles").value);
    changed();
  });
  by("in").addEventListener("click", () => timeline.zoom(0.6));
  by("out").addEventListener("click", () => timeline.zoom(1 / 0.6));
  by("reset").addEventListener("click", () => timeline.show(0, header.span));
  by("theme").addEventListener("click", () => {
    state.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    setTheme(state.theme);
    mixColours();
    changed();
  });
  const keys = {
    "+": () => timeline.zoom(0.75), "=": () => timeline.zoom(0.75), "-": () => timeline.zoom(1 / 0.75),
    0: () => timeline.show(0, header.span), w: () => timeline.zoom(0.75), s: () => timeline.zoom(1 / 0.75),
    a: () => timeline.pan(-0.2), d: () => timeline.pan(0.2),
    ArrowLeft: () => timeline.pan(-0.2), ArrowRight: () => timeline.pan(0.2),
    ArrowUp: () => timeline.zoom(0.75), ArrowDown: () => timeline.zoom(1 / 0.75),
    "/": () => by("search").focus(),
    Escape: () => {
      state.choose(null, {});
      state.lookFor("");
      by("search").value = "";
      changed();
    },
  };
  document.addEventListener("keydown", (event) => {
    const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape")) return;
    const scrolls = event.key.startsWith("Arrow") && event.target !== timeline.lanes;
    if (!keys[event.key] || (scrolls && (event.key === "ArrowUp" || event.key === "ArrowDown"))) return;
    event.preventDefault();
    keys[event.key]();
  });
  addEventListener("resize", changed);
  addEventListener("hashchange", () => {
    state.fromHash(location.hash);
    table.update();
    chip.update();
    flame.update();
    changed();
  });
}

// To the next place on the critical path that the search matches, after what is shown now.
function nextMatch(state, timeline) {
  if (!state.found) return;
  const columns = state.index.columns, middle = (state.low + state.high) / 2;
  let first = -1, next = -1;
  for (let at = 0; at < columns.p_begin.length; at++) {
    if (!state.found[columns.p_step[at]] || (at && columns.p_step[at - 1] === columns.p_step[at])) continue;
    if (first < 0) first = at;
    if (next < 0 && columns.p_begin[at] > middle) next = at;
  }
  const at = next >= 0 ? next : first;
  if (at < 0) return;
  let end = at;
  while (end + 1 < columns.p_begin.length && columns.p_step[end + 1] === columns.p_step[at]) end++;
  const low = columns.p_begin[at], high = columns.p_begin[end] + columns.p_length[end];
  timeline.show(low - (high - low) * 0.08, high + (high - low) * 0.08);
}

start().catch((error) => {
  document.body.dataset.state = "failed";
  document.getElementById("facts").textContent = `This page could not be shown: ${error}`;
});
