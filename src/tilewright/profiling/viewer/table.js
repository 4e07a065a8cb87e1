// The table of sums: grouped, sorted by a click on a column, filtered by a text.

const COLUMNS = [
  ["name", "", "Group"],
  ["critical", "critical", "Cycles on the path that all tiles waited for"],
  ["share", "share", "Critical cycles per device cycle"],
  ["phase", "phase", "Cycles of the slowest tile of each step"],
  ["work", "work", "Cycles of all tiles together, waiting included"],
  ["busy", "busy", "Work without waiting"],
  ["used", "used", "Share of all tiles' phase cycles in which they do not wait"],
  ["workersUsed", "workers", "The same of the six workers of each tile"],
  ["peak", "of peak", "Multiply-adds as a share of what the matrix units of all tiles could do in the phase cycles"],
  ["tiles", "tiles", "Tiles that take part"],
];
const SHARES = new Set(["share", "used", "workersUsed", "peak"]);
const RISING = new Set(["name", "first"]);
const ROWS_SHOWN = 200;

class SumTable {
  constructor(index, state, changed) {
    this.index = index;
    this.state = state;
    this.changed = changed;
    this.table = document.getElementById("table");
    this.sums = null;
    this.summed = "";
  }

  update() {
    const whole = this.state.scope === "all", { low, high } = this.state;
    const key = whole ? this.state.group : `${this.state.group} ${low} ${high}`;
    if (key !== this.summed) {
      this.sums = sumUp(this.index, this.state.group, whole ? 0 : low, whole ? header.span : high);
      this.summed = key;
    }
    this.draw();
  }

  draw() {
    const { group, chosen, filter } = this.state;
    if (!differs(this, group, chosen, filter, this.state.sort, this.summed)) return;
    const [head, body, foot] = ["thead", "tbody", "tfoot"].map((part) => this.table.querySelector(part));
    const { sort } = this.state, wanted = this.state.filter.toLowerCase();
    head.replaceChildren();
    const titles = element("tr", undefined, head);
    for (const [key, label, meaning] of COLUMNS) {
      const cell = element("th", (label || this.state.group) + (key === sort ? (RISING.has(key) ? " ↑" : " ↓") : ""), titles);
      cell.title = meaning;
      cell.dataset.key = key;
      cell.tabIndex = 0;
      const choose = () => {
        this.state.sort = key;
        this.changed();
      };
      cell.addEventListener("click", choose);
      cell.addEventListener("keydown", (event) => event.key === "Enter" && choose());
    }
    const rows = this.sums.rows.filter((row) => row.name.toLowerCase().includes(wanted));
    const numeric = (row) => (RISING.has(sort) ? row[sort] : -row[sort]);
    rows.sort((a, b) => (sort === "name" ? compare(a.name, b.name)
      : numeric(a) - numeric(b) || a.first - b.first || compare(a.name, b.name)));
    body.replaceChildren(...rows.slice(0, ROWS_SHOWN).map((row) => this.row(row)));
    foot.replaceChildren(this.row(this.sums.total));
    const hidden = rows.length - ROWS_SHOWN;
    document.getElementById("more").textContent = (hidden > 0 ? `${count(hidden)} more groups; filter or sort to see them. ` : "")
      + "Click a group to see it in the timeline, double-click to go to where it begins.";
  }

  row(row) {
    const line = element("tr");
    line.dataset.name = row.name;
    for (const [key] of COLUMNS) {
      const value = row[key];
      const cell = element("td", key === "name" ? short(value, 120)
        : key === "peak" && !value ? "" : SHARES.has(key) ? percent(value) : count(value), line);
      cell.dataset.key = key;
      if (key === "name") cell.title = value;
      if (key === "share") {
        cell.className = "share";
        cell.style.backgroundSize = `${Math.min(100, 100 * value)}% 2px`;
      }
      if (typeof value === "number") cell.dataset.value = value;
    }
    if (row.id < 0) return line;
    if (this.state.chosen === row.id) line.className = "chosen";
    line.addEventListener("click", () => {
      this.state.choose(this.state.chosen === row.id ? null : row.id, this.sums.by);
      this.changed();
    });
    line.addEventListener("dblclick", () => {
      this.state.choose(row.id, this.sums.by);
      this.go(row);
    });
    return line;
  }

  // To the place on the critical path where the group takes longest, else to where it begins.
  go(row) {
    const by = this.sums.by, columns = this.index.columns;
    let best = -1, begin = 0, end = 0;
    header.runs.forEach((run, number) => {
      for (let at = run.path[0]; at < run.path[1]; at++) {
        const piece = { run: number, tile: columns.p_tile[at], kind: columns.p_kind[at], step: columns.p_step[at] };
        piece.phase = this.index.phaseOf(number, piece.step, columns.p_instance[at]);
        if (by.of(piece) !== row.id || columns.p_length[at] <= best) continue;
        best = columns.p_length[at];
        [begin, end] = this.stepAround(run, at);
      }
    });
    if (best < 0) [begin, end] = [header.runs[0].begin + row.first, header.runs[0].begin + row.first + 200];
    this.state.timeline.show(begin - (end - begin) * 0.08, end + (end - begin) * 0.08);
  }

  // The part of the path around a piece that is in the same step.
  stepAround(run, at) {
    const columns = this.index.columns;
    let first = at, last = at;
    while (first > run.path[0] && columns.p_step[first - 1] === columns.p_step[at]) first--;
    while (last + 1 < run.path[1] && columns.p_step[last + 1] === columns.p_step[at]) last++;
    return [columns.p_begin[first], columns.p_begin[last] + columns.p_length[last]];
  }
}

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}
