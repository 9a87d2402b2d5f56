/** Static pictures of presets, for pages without scripts: node playground/still.js FOLDER writes NAME.svg of each. */
"use strict";
const [fs, path] = [require("node:fs"), require("node:path")];
const [Playground, Diagnostics] = [require("./engine.js"), require("./diagnostics.js")];
const [State, Paint] = [require("./state.js"), require("./paint.js")];
const SIDE = 300, SIZES = { classes: 25, groups: 13, curve: 61 }, ROUNDS = 1000;
const marks = [(x, y) => `<circle cx="${x}" cy="${y}" r="6" fill="#0072B2" stroke="white"/>`];
marks.push((x, y) => `<path d="M${x} ${y}m0-8l7.5 13.5h-15z" fill="#D55E00" stroke="white"/>`);

/** Average over 1000 draws of each chain at a grid on which each panel has its part. */
function averageOf(state, size, panels) {
  const target = State.targetOf(state), sampler = Playground.sampler(target, { capacity: ROUNDS }), [limit] = State.limits[state.kind];
  const at = (i) => -limit + (2 * limit * i) / (size - 1), numbers = Array.from({ length: size }, (_, i) => i);
  const flat = state.kind === "curve" ? numbers.map(at) : numbers.flatMap((j) => numbers.flatMap((i) => [at(i), at(j)]));
  sampler.advance({ transitions: 4 * (300 + ROUNDS) });
  const table = Diagnostics.predictionTable(Float64Array.from(Array.from({ length: panels }, () => flat).flat()));
  table.update(sampler.shown().draws, target);
  return table.average(sampler.shown().draws);
}

function still(state) {
  const { kind } = state, size = SIZES[kind], panels = kind === "groups" ? 6 : 1, average = averageOf(state, size, panels);
  const wide = kind === "curve" ? 1.5 * SIDE : SIDE, [limit, height] = State.limits[kind], unit = SIDE / (size - 1);
  const place = ([x, y], panel = 0) => [((x + limit) / (2 * limit) + (panel % 3)) * wide, ((height - y) / (2 * height) + Math.floor(panel / 3)) * SIDE].map((v) => +v.toFixed(1));
  const parts = [];
  if (kind === "curve") {
    const xs = Array.from({ length: size }, (_, i) => -limit + (2 * limit * i) / (size - 1));
    const line = (sign, noise) => xs.map((x, i) => place([x, average.mean[i] + 2 * sign * Math.sqrt(average.epistemic[i] + noise * average.aleatoric[i])]));
    for (const [noise, fill] of [[1, "#DCE9F4"], [0, "#8DB9DD"]]) parts.push(`<path d="M${line(-1, noise).join("L")}L${line(1, noise).reverse().join("L")}z" fill="${fill}"/>`);
    parts.push(`<path d="M${line(0, 0).join("L")}" fill="none" stroke="#0B3C5D" stroke-width="2"/>`);
    for (const point of state.points) parts.push(`<circle cx="${place(point)[0]}" cy="${place(point)[1]}" r="4.5" fill="#404040" stroke="white"/>`);
  } else
    for (let panel = 0; panel < panels; panel++) {
      const part = average.mean.subarray(panel * size * size, (panel + 1) * size * size), [left, top] = place([-limit, height], panel);
      const cells = Array.from(part, (p, n) => [n % size, size - 1 - Math.floor(n / size), `rgb(${Paint.colour("probability", p)})`]);
      const corner = (k) => Math.max(0, (k - 0.5) * unit), length = (k) => +(Math.min(SIDE, (k + 0.5) * unit) - corner(k)).toFixed(1);
      for (const [i, j, fill] of cells) parts.push(`<path d="M${+(left + corner(i)).toFixed(1)} ${+(top + corner(j)).toFixed(1)}h${length(i)}v${length(j)}h-${length(i)}z" fill="${fill}"/>`);
      const lines = Paint.contour(part, size, 0.5).map(([a, b, c, d]) => `M${(left + a * unit).toFixed(1)} ${(top + SIDE - b * unit).toFixed(1)}L${(left + c * unit).toFixed(1)} ${(top + SIDE - d * unit).toFixed(1)}`);
      parts.push(`<path d="${lines.join("")}" fill="none" stroke="black" stroke-width="2"/>`);
      if (panels > 1) parts.push(`<path d="M${left} ${top}h${SIDE}v${SIDE}h-${SIDE}z" fill="none" stroke="#888"/>`);
      for (const point of state.points.filter((p) => (p[3] ?? 0) === panel && !(state.without && p[3] === 0))) parts.push(marks[point[2]](...place(point, panel)));
    }
  const box = `0 0 ${wide * Math.min(panels, 3)} ${SIDE * Math.ceil(panels / 3)}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}" shape-rendering="${kind === "curve" ? "auto" : "crispEdges"}">\n<rect width="100%" height="100%" fill="white"/>\n${parts.join("\n")}\n</svg>\n`;
}

if (require.main === module)
  for (const name of State.stills) fs.writeFileSync(path.join(process.argv[2], `${name}.svg`), still(State.complete(State.presets[name])));
module.exports = { still };
