/**
 * Static pictures of presets, for pages without scripts, and draws for the first picture: node playground/still.js
 * FOLDER
 * writes NAME.svg of each, and draws.json.
 */
"use strict";
const [fs, path] = [require("node:fs"), require("node:path")];
const [Playground, Diagnostics] = [require("./engine.js"), require("./diagnostics.js")];
const [State, Paint] = [require("./state.js"), require("./paint.js")],
  [Methods, Work] = [require("./methods.js"), require("./work.js")];
const { SIDE, shapeOf, cornerOf, gridOf } = State.drawing;
const SIZES = { classes: 25, groups: 13, curve: 61 }, ROUNDS = 500;
const round = (v) => +v.toFixed(1), filled = (d, fill) => `<path d="${d}" fill="${fill}"/>`;
const stroked = (d, style) => `<path d="${d}" fill="none" ${style}/>`;
const disc = (x, y, r, fill) => `<circle cx="${x}" cy="${y}" r="${r}" fill="${fill}" stroke="white"/>`;
const triangle = (x, y) => `<path d="M${x} ${y}m0-8l7.5 13.5h-15z" fill="#D55E00" stroke="white"/>`;

/** Average over 500 draws of each chain. */
function averageOf(state, grid) {
  const target = State.targetOf(state), sampler = Playground.sampler(target, { capacity: ROUNDS });
  sampler.advance({ transitions: 4 * (300 + ROUNDS) });
  const table = Diagnostics.predictionTable(grid), { draws } = sampler.shown();
  table.update(draws, target);
  return table.average(draws);
}

function curve(state, { mean, epistemic, aleatoric }, xs, place) {
  const at = (x, i, sign, noise) => place([x, mean[i] + 2 * sign * Math.sqrt(epistemic[i] + noise * aleatoric[i])]);
  const line = (sign, noise) => Array.from(xs, (x, i) => at(x, i, sign, noise));
  const band = (noise) => `M${line(-1, noise).join("L")}L${line(1, noise).reverse().join("L")}z`;
  const mid = stroked(`M${line(0, 0).join("L")}`, 'stroke="#0B3C5D" stroke-width="2"');
  const points = state.points.map((point) => disc(...place(point), 4.5, "#404040"));
  return [filled(band(1), "#DCE9F4"), filled(band(0), "#8DB9DD"), mid, ...points];
}

function panel(state, p, index, size, place) {
  const unit = SIDE / (size - 1), [left, top] = cornerOf(index);
  const from = (k) => Math.max(0, (k - 0.5) * unit), length = (k) => round(Math.min(SIDE, (k + 0.5) * unit) - from(k));
  const cells = Array.from(p, (value, n) => {
    const [i, j] = [n % size, size - 1 - Math.floor(n / size)];
    const d = `M${round(left + from(i))} ${round(top + from(j))}h${length(i)}v${length(j)}h-${length(i)}z`;
    return filled(d, `rgb(${Paint.colour("probability", value)})`);
  });
  const at = (i, j) => `${round(left + i * unit)} ${round(top + SIDE - j * unit)}`;
  const boundary = Paint.contour(p, size, 0.5).map(([a, b, c, d]) => `M${at(a, b)}L${at(c, d)}`).join("");
  const frame = stroked(`M${left} ${top}h${SIDE}v${SIDE}h-${SIDE}z`, 'stroke="#888"');
  const shown = state.points.filter((point) => (point[3] ?? 0) === index && !(state.without && point[3] === 0));
  const marks = shown.map((q) => (q[2] ? triangle(...place(q, index)) : disc(...place(q, index), 6, "#0072B2")));
  return [...cells, stroked(boundary, 'stroke="black" stroke-width="2"'), frame, ...marks];
}

/** One network beside the posterior. */
function pair(state, draws) {
  const size = SIZES.classes, grid = gridOf("classes", size), target = State.targetOf(state), shift = SIDE + 20;
  const place = (point, index) => State.drawing.place("classes", point, index).map(round);
  const fitting = Methods.fit("map", target, grid), sampler = Playground.sampler(target),
    table = Diagnostics.predictionTable(grid);
  let step = fitting.next();
  while (!step.done) step = fitting.next();
  sampler.restore(State.unpack(draws));
  table.update(sampler.shown().draws, target);
  const maps = [step.value.mean, table.average(sampler.shown().draws).mean].map((p) =>
    panel(state, p, 0, size, place).join("\n"));
  const title = (text, left) =>
    `<text x="${left}" y="-10" font-family="sans-serif" font-size="18" fill="#222">${text}</text>`;
  const both = [title(Methods.names.map, 0), maps[0], title(Methods.names.posterior, shift),
    `<g transform="translate(${shift} 0)">${maps[1]}</g>`];
  const ground = `<path d="M-2-30h${2 * SIDE + 24}v${SIDE + 32}h-${2 * SIDE + 24}z" fill="white"/>`;
  const box = `viewBox="-2 -30 ${2 * SIDE + 24} ${SIDE + 32}"`;
  const opening = `<svg xmlns="http://www.w3.org/2000/svg" ${box} shape-rendering="crispEdges">`;
  return `${[opening, ground, ...both].join("\n")}\n</svg>\n`;
}

/** Of the first picture: 200 draws of each chain, one of five, and what the chains have learnt. */
function drawsOf(state) {
  const target = State.targetOf(state), sampler = Playground.sampler(target, { capacity: 1000 });
  sampler.advance({ transitions: 4 * (300 + 1000) });
  const { draws } = sampler.shown(), { stepSize, acceptance } = sampler.state();
  const one = (c, i) => draws.positions.subarray((c * 1000 + i) * target.size, (c * 1000 + i + 1) * target.size);
  const positions = [0, 1, 2, 3].map((c) => Array.from({ length: 200 }, (_, i) => one(c, 5 * i + 4)));
  const learnt = { stepSize: Array.from(stepSize), acceptance: Array.from(acceptance) };
  return { key: Work.fitKey(state), ...learnt, size: target.size, chains: 4, text: State.pack(positions) };
}

function still(state) {
  const { kind } = state, size = SIZES[kind], { panels, extent } = shapeOf(kind), grid = gridOf(kind, size);
  const average = averageOf(state, grid), place = (point, index) => State.drawing.place(kind, point, index).map(round);
  const part = (k) => average.mean.subarray(k * size * size, (k + 1) * size * size);
  const drawn = () => Array.from({ length: panels }, (_, k) => panel(state, part(k), k, size, place)).flat();
  const parts = kind === "curve" ? curve(state, average, grid, place) : drawn();
  const opening = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${extent.join(" ")}"`;
  const rendering = kind === "curve" ? "auto" : "crispEdges";
  const ground = filled(`M0 0h900v600h-900z`, "white");
  return `${opening} shape-rendering="${rendering}">\n${[ground, ...parts].join("\n")}\n</svg>\n`;
}

const write = (name, text) => fs.writeFileSync(path.join(process.argv[2], name), text);
const start = State.complete(State.presets.start), draws = drawsOf(start);
write("draws.json", `${JSON.stringify(draws)}\n`);
write("start.svg", pair(start, draws));
for (const name of State.stills) write(`${name}.svg`, still(State.complete(State.presets[name])));
