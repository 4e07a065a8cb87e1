// Colours, theme, text. Every name from the file becomes text, never markup.

const LIGHT = { back: "#ffffff", lane: "#f2f3f5", ink: "#1d2126", soft: "#646b75", line: "#dcdfe3", accent: "#0b63b5",
  idle: "#dfe1e5", exchangeIdle: "#c3d6cb", host: "#b4bac3", wait: "#e3a27f" };
const DARK = { back: "#1b1f24", lane: "#22272d", ink: "#e6e8eb", soft: "#9aa2ad", line: "#30363d", accent: "#6cb2f2",
  idle: "#31363d", exchangeIdle: "#40564a", host: "#555d68", wait: "#8d5a41" };
// After Okabe and Ito, who chose colours that colour-blind people tell apart.
const KIND_COLOURS = {
  compute: "#1f78c1", copy: "#63b6e6", control: "#b980c9", "exchange.send": "#009e73", "exchange.receive": "#e69f00",
  "exchange.both": "#b5bd2e", exchange: "#009e73",
};

const look = { colours: LIGHT, by: "kind", kinds: [], steps: [] };

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  look.colours = theme === "dark" ? DARK : LIGHT;
}

// Colours of kinds and steps for the present theme and choice.
function mixColours() {
  const c = look.colours;
  const waits = { "exchange.idle": c.exchangeIdle, synchronisation: c.wait, idle: c.idle, host: c.host };
  look.kinds = header.kinds.map((kind) => KIND_COLOURS[kind.name] || waits[kind.name] || c.soft);
  const names = [...new Set(header.steps.map(colourName))];
  // Steps of the golden angle keep neighbours apart, however many there are.
  look.steps = header.steps.map((step, number) => {
    const place = names.indexOf(colourName(step, number));
    return hue((place * 137.508 + 205) % 360, document.documentElement.dataset.theme === "dark", place);
  });
}

function colourName(step, number) {
  if (look.by === "step") return String(number) + step.name;
  return (look.by === "operation" ? step.operation : step.kernel) || `(${step.kind})`;
}

function hue(angle, dark, place) {
  const lightness = (dark ? 58 : 50) + (place % 3) * 6 - 6;
  const saturation = 0.55, light = lightness / 100;
  const channel = (n) => {
    const k = (n + angle / 30) % 12;
    const value = light - saturation * Math.min(light, 1 - light) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(255 * value).toString(16).padStart(2, "0");
  };
  return `#${channel(0)}${channel(8)}${channel(4)}`;
}

// By kind, or by step where the tile works; waiting keeps the colour of its kind.
function colourOf(kind, step) {
  return look.by !== "kind" && BUSY[kind] ? look.steps[step] : look.kinds[kind];
}

// Black or white, whichever reads better on a colour.
function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16));
  return red * 0.3 + green * 0.59 + blue * 0.11 > 150 ? "#10151a" : "#ffffff";
}

function pixel(colour, faded) {
  const mix = (from) => {
    const value = parseInt(colour.slice(from, from + 2), 16);
    const back = parseInt(look.colours.back.slice(from, from + 2), 16);
    return faded ? Math.round(back + (value - back) * 0.16) : value;
  };
  return (255 << 24 | mix(5) << 16 | mix(3) << 8 | mix(1)) >>> 0;
}

function count(value) {
  return Math.round(value).toLocaleString("en-US");
}

function percent(value) {
  return `${(100 * value).toFixed(1)}%`;
}

function duration(cycles) {
  const seconds = cycles / header.clock;
  if (seconds < 1e-6) return `${(seconds * 1e9).toFixed(1)} ns`;
  if (seconds < 1e-3) return `${(seconds * 1e6).toFixed(2)} µs`;
  return `${(seconds * 1e3).toFixed(3)} ms`;
}

// The beginning of a long text.
function short(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

function element(name, text, parent) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

// A canvas at the screen's resolution, and its size in CSS pixels.
function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { pen, width, height, ratio };
}

// Whether a drawing depends on something else than when it was last asked for.
function differs(drawing, ...things) {
  const now = JSON.stringify(things);
  if (drawing.made === now) return false;
  drawing.made = now;
  return true;
}

function showTip(event, title, facts) {
  const tip = document.getElementById("tip");
  tip.replaceChildren();
  element("b", short(title, 200), tip);
  const list = element("dl", undefined, tip);
  for (const [name, value] of facts) {
    if (value === "") continue;
    element("dt", name, list);
    element("dd", short(value, 200), list);
  }
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  const below = event.clientY + 18;
  tip.style.top = `${below + box.height > innerHeight ? Math.max(4, event.clientY - box.height - 12) : below}px`;
}

function hideTip() {
  document.getElementById("tip").hidden = true;
}
