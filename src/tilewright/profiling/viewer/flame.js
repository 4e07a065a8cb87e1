// Cycles by operation, then step, then kind, each level inside the one above. A dot in an operation's name
// begins another level, so layers of a model stand together.

const FLAMES = ["critical cycles", "busy cycles of all tiles", "all cycles of all tiles"];
const FLAME_ROW = 21, DEEPEST = 12;

class Flame {
  constructor(index, state, changed) {
    this.index = index;
    this.state = state;
    this.changed = changed;
    this.canvas = document.getElementById("flame");
    this.boxes = [];
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    this.canvas.addEventListener("click", (event) => {
      const box = this.boxAt(event);
      if (box) this.focus(box.node === this.shown ? (box.node.parent || box.node) : box.node);
    });
    this.canvas.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      if (this.shown.parent) this.focus(this.shown.parent);
    });
  }

  focus(node) {
    this.state.flame = node.path;
    this.changed();
  }

  // Sums by step and kind in the time asked for, as a tree.
  update() {
    const whole = this.state.flamescope === "all";
    const low = whole ? 0 : this.state.low, high = whole ? header.span : this.state.high;
    const kinds = header.kinds.length, sums = new Float64Array(header.steps.length * kinds), columns = this.index.columns;
    const prefix = this.state.flameby === FLAMES[0] ? "p_" : "s_", busy = this.state.flameby === FLAMES[1];
    const [begins, lengths, steps, kind] = ["begin", "length", "step", "kind"].map((name) => columns[prefix + name]);
    for (let at = 0; at < begins.length; at++) {
      const cycles = Math.min(begins[at] + lengths[at], high) - Math.max(begins[at], low);
      if (cycles > 0 && !(busy && !BUSY[kind[at]])) sums[steps[at] * kinds + kind[at]] += cycles;
    }
    this.root = { name: "program", path: "", cycles: 0, children: new Map(), parent: null, kind: -1, step: -1 };
    header.steps.forEach((step, number) => {
      const levels = step.operation ? step.operation.split(".").slice(0, DEEPEST) : [`(${step.kind})`];
      for (let at = 0; at < kinds; at++) {
        const cycles = sums[number * kinds + at];
        if (cycles) this.add([...levels, step.name, header.kinds[at].name], cycles, number, at);
      }
    });
    this.made = "";
    this.draw();
  }

  add(levels, cycles, step, kind) {
    let node = this.root;
    node.cycles += cycles;
    levels.forEach((name, depth) => {
      if (!node.children.has(name)) {
        node.children.set(name, { name, path: node.path ? `${node.path}/${name}` : name, cycles: 0, children: new Map(), parent: node, kind: -1, step });
      }
      node = node.children.get(name);
      node.cycles += cycles;
      if (depth === levels.length - 1) node.kind = kind;
    });
  }

  find(path) {
    let node = this.root;
    while (node.path !== path) {
      const next = [...node.children.values()].find((child) => child.path === path || path.startsWith(`${child.path}/`));
      if (!next) return node;
      node = next;
    }
    return node;
  }

  draw() {
    if (!this.root) return;
    const { flame, chosen, search } = this.state;
    if (!differs(this, flame, chosen, search, look.by, this.canvas.clientWidth, document.documentElement.dataset.theme)) return;
    this.shown = this.find(flame);
    const above = [];
    for (let node = this.shown.parent; node; node = node.parent) above.unshift(node);
    const deep = (node) => 1 + Math.max(0, ...[...node.children.values()].map(deep));
    this.canvas.style.height = `${(above.length + deep(this.shown)) * FLAME_ROW}px`;
    const { pen, width, height } = prepare(this.canvas);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    this.boxes = [];
    above.forEach((node, depth) => this.box(pen, node, 0, width, depth));
    this.place(pen, this.shown, 0, width, above.length);
    const part = this.root.cycles ? this.shown.cycles / this.root.cycles : 0;
    document.getElementById("flametext").textContent = `${this.shown === this.root ? "all" : short(this.shown.path.replaceAll("/", " / "), 120)}: `
      + `${count(this.shown.cycles)} ${this.state.flameby}, ${percent(part)}. Click to look inside, click the lowest or right-click to go back.`;
  }

  place(pen, node, left, width, depth) {
    this.box(pen, node, left, width, depth);
    let x = left;
    for (const child of [...node.children.values()].sort((a, b) => b.cycles - a.cycles || compare(a.name, b.name))) {
      const wide = child.cycles / node.cycles * width;
      if (wide >= 0.75) this.place(pen, child, x, wide, depth + 1);
      x += wide;
    }
  }

  box(pen, node, left, width, depth) {
    const top = depth * FLAME_ROW;
    this.boxes.push({ node, left, right: left + width, top });
    const colour = node.kind >= 0 ? look.kinds[node.kind] : node === this.root ? look.colours.line
      : hue((this.hash(node) * 137.508 + 205) % 360, document.documentElement.dataset.theme === "dark", depth);
    pen.globalAlpha = node.step < 0 || this.state.shows(node.step, node.kind >= 0 ? node.kind : this.state.chosenKind) ? 1 : 0.25;
    pen.fillStyle = colour;
    pen.fillRect(left, top, Math.max(width - 0.7, 0.5), FLAME_ROW - 1);
    pen.globalAlpha = 1;
    if (width < 34) return;
    pen.fillStyle = inkOn(colour);
    pen.fillText(short(node.name, Math.floor((width - 8) / 6.3)), left + 4, top + FLAME_ROW / 2, width - 8);
  }

  // A number that stays with a name.
  hash(node) {
    let value = 7;
    for (const character of node.path) value = (value * 31 + character.codePointAt(0)) % 65521;
    return value;
  }

  boxAt(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    return this.boxes.find((one) => x >= one.left && x < one.right && y >= one.top && y < one.top + FLAME_ROW);
  }

  point(event) {
    const box = this.boxAt(event);
    if (!box) return hideTip();
    const { node } = box;
    return showTip(event, node.name, [
      [this.state.flameby, count(node.cycles)], ["of all", percent(node.cycles / this.root.cycles)],
      ["of what is above", node.parent ? percent(node.cycles / node.parent.cycles) : ""],
      ["time", duration(node.cycles)], ["inside", node.children.size ? count(node.children.size) : ""],
    ]);
  }
}
