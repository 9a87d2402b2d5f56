// What the playground's engine does in a second of one core (processor time: other work does not count).
"use strict";
const Playground = require("../playground/engine.js"),
  Diagnostics = require("../playground/diagnostics.js"),
  tasks = [0, 6, 12]
    .map((t) => require("../playground/tasks.js")[t])
    .map((points) => ({ x: points.flatMap((p) => p.slice(0, 2)), y: points.map((p) => p[2]) }));

const seconds = (begun) => (({ user, system }) => (user + system) / 1e6)(process.cpuUsage(begun));
const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
const pad = (value, digits = 0) => value.toFixed(digits).padStart(8);

const side = 41,
  grid = Float64Array.from({ length: 2 * side * side }, (_, i) => {
    const n = i >> 1;
    return -3 + (6 / (side - 1)) * (i % 2 ? Math.floor(n / side) : n % side);
  });
/** Fifty points of the grid, without the centre, where a network without biases always says one half. */
const probes = Float64Array.from({ length: 100 }, (_, i) => grid[2 * (13 + 33 * (i >> 1)) + (i % 2)]);

/** Effective sample sizes of the predictions at the probes, smallest first, and the largest R-hat. */
function diagnose(draws, target) {
  const table = Diagnostics.predictionTable(probes);
  table.update(draws, target);
  const chains = Array.from({ length: probes.length / target.numFeatures }, (_, n) =>
    Diagnostics.series(draws, (row) => table.of(draws.id[row])[n]),
  );
  return {
    ess: chains.map(Diagnostics.effectiveSampleSize).sort((a, b) => a - b),
    rhat: Math.max(...chains.map(Diagnostics.rhat)),
  };
}

function speed(name, spec, draws) {
  const target = Playground.target(spec),
    sampler = Playground.sampler(target, { capacity: draws }),
    position = new Float64Array(target.size).fill(0.3);
  const gradient = new Float64Array(target.size);
  for (let i = 0; i < 2000; i++) target.logDensity(position, gradient);
  let begun = process.cpuUsage();
  for (let i = 0; i < 10000; i++) target.logDensity(position, gradient);
  const microseconds = seconds(begun) * 100;
  begun = process.cpuUsage();
  sampler.advance({ transitions: 4 * 300 });
  const warmUp = seconds(begun);
  begun = process.cpuUsage();
  sampler.advance({ transitions: 4 * draws });
  const spent = seconds(begun),
    { ess, rhat } = diagnose(sampler.shown().draws, target),
    { stepSize, acceptance, divergences } = sampler.state();
  console.log(
    `${name}: ${microseconds.toFixed(1)} us a gradient; warm-up ${warmUp.toFixed(2)} s; ${pad((4 * draws) / spent)} transitions a second`,
  );
  console.log(
    `  effective draws a second of 50 predictions: worst ${pad(ess[0] / spent)}, median ${pad(ess[25] / spent)}; R-hat at most ${rhat.toFixed(3)}`,
  );
  console.log(
    `  step size ${mean(stepSize).toPrecision(2)}, acceptance ${Array.from(acceptance, (a) => a.toFixed(2))}, divergences ${divergences} of ${4 * draws}`,
  );
}

/** Move one point; how far is the surface from a long run's, by processor time since then? Engine and averages count. */
function afterMove(name, scales, task, move, reference, limit) {
  const spec = { widths: [2, 5, 5, 1], scales, x: tasks[task].x, y: tasks[task].y },
    moved = spec.x.map((v, i) => (i < 2 ? move(v) : v));
  const target = Playground.target({ ...spec, x: moved });
  const long = Playground.sampler(target, { capacity: reference, seed: 1234 }),
    table = Diagnostics.predictionTable(grid);
  long.advance({ transitions: 4 * (300 + reference) });
  table.update(long.shown().draws, target);
  const truth = table.average(long.shown().draws),
    between = mean(truth.chains.map((chain) => mean(chain.map((p, n) => Math.abs(p - truth.mean[n])))));
  const sampler = Playground.sampler(Playground.target(spec), { seed: 5 }),
    shown = Diagnostics.predictionTable(grid);
  sampler.advance({ transitions: 4 * 550 });
  shown.update(sampler.shown().draws, sampler.target());
  const old = shown.average(sampler.shown().draws).mean,
    error = (surface) => mean(surface.map((p, n) => Math.abs(p - truth.mean[n])));
  let spent = 0,
    last = "",
    reached = null,
    since = "";
  const timed = (work) => {
    const begun = process.cpuUsage(),
      result = work();
    spent += seconds(begun);
    return result;
  };
  const { effectiveSampleSize } = timed(() => sampler.retarget(target));
  while (spent < limit) {
    const { draws, weights, kind, next } = sampler.shown();
    const found = timed(() => {
      shown.update(draws, target, { milliseconds: 20 });
      if (sampler.state().phase === "sampling") shown.update(next, target, { milliseconds: 5 });
      return draws.id.some((id) => shown.of(id)) ? shown.average(draws, weights).mean : old;
    });
    const off = error(found);
    if (off >= 0.02) reached = null;
    else if (reached === null) reached = [spent, kind];
    if (kind !== last) since += `; ${kind} at ${(1000 * spent).toFixed(0)} ms: ${off.toFixed(4)}`;
    last = kind;
    timed(() => sampler.advance({ milliseconds: 12 }));
    if (kind === "fresh" && sampler.state().draws >= 250) break;
  }
  console.log(
    `${name}: weights worth ${effectiveSampleSize.toFixed(0)} of 1000 draws; error of the old surface ${error(old).toFixed(4)}${since}`,
  );
  const when = reached
    ? `below 0.02 for good from ${(1000 * reached[0]).toFixed(0)} ms (${reached[1]})`
    : "not below 0.02 for good";
  console.log(`  ${when}; the long run's chains differ from their mean by ${between.toFixed(4)}`);
}

const classic = (scales) => ({ widths: [2, 5, 5, 1], scales, x: tasks[0].x, y: tasks[0].y });
speed("2-5-5-1, scales 1, 1, 1, 50 points", classic([1, 1, 1]), 1000);
speed("2-5-5-1, scales 0.5, 1, 24, 50 points", classic([0.5, 1, 24]), 400);
speed(
  "2-10-10-1, biases, scales 1, 1, 1, 50 points",
  { ...classic([1, 1, 1]), widths: [2, 10, 10, 1], biases: true },
  250,
);
{
  const target = Playground.target(classic([1, 1, 1])),
    sampler = Playground.sampler(target),
    table = Diagnostics.predictionTable(grid);
  sampler.advance({ transitions: 4 * 550 });
  let begun = process.cpuUsage();
  table.update(sampler.shown().draws, target);
  console.log(`41 x 41 surface: ${((1000 * seconds(begun)) / 1000).toFixed(2)} ms to predict by one draw`);
  begun = process.cpuUsage();
  for (let i = 0; i < 10; i++) table.average(sampler.shown().draws);
  console.log(`  ${(100 * seconds(begun)).toFixed(1)} ms to average 1000 draws`);
  begun = process.cpuUsage();
  for (let i = 0; i < 10; i++) sampler.retarget(Playground.target(classic([1, 1, 1 + i / 100])));
  console.log(`  ${(100 * seconds(begun)).toFixed(1)} ms to weigh 1000 draws for a new target`);
}
const [near, mirrored] = [(v) => v + 0.5, (v) => -v]; // into the other class: without biases p(-x) = 1 - p(x)
for (const [task, scales, reference, limit] of [
  [0, [1, 1, 1], 2000, 5],
  [1, [1, 1, 1], 2000, 5],
  [0, [0.5, 1, 24], 800, 10],
  [1, [0.5, 1, 24], 800, 10],
]) {
  afterMove(`scales ${scales}, task ${task}, a point moved by (0.5, 0.5)`, scales, task, near, reference, limit);
  afterMove(`scales ${scales}, task ${task}, a point mirrored`, scales, task, mirrored, reference, limit);
}
