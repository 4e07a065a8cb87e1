// Colours of kinds and steps.

// After Okabe and Ito, who chose colours that colour-blind people tell apart.
const KIND_COLOURS = {
  compute: "#1f78c1", copy: "#63b6e6", control: "#b980c9", "exchange.send": "#009e73", "exchange.receive": "#e69f00",
  "exchange.both": "#b5bd2e", exchange: "#009e73",
};

look.by = "kind";
look.kinds = [];
look.steps = [];

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

function pixel(colour, faded) {
  const mix = (from) => {
    const value = parseInt(colour.slice(from, from + 2), 16);
    const back = parseInt(look.colours.back.slice(from, from + 2), 16);
    return faded ? Math.round(back + (value - back) * 0.16) : value;
  };
  return (255 << 24 | mix(5) << 16 | mix(3) << 8 | mix(1)) >>> 0;
}

function duration(cycles) {
  const seconds = cycles / header.clock;
  if (seconds < 1e-6) return `${(seconds * 1e9).toFixed(1)} ns`;
  if (seconds < 1e-3) return `${(seconds * 1e6).toFixed(2)} µs`;
  return `${(seconds * 1e3).toFixed(3)} ms`;
}
