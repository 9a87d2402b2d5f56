// node --test group.test.js: seeds are fixed; bounds are five standard errors, or exact up to rounding.
"use strict";
const { test } = require("node:test"),
  assert = require("node:assert/strict");
const Playground = require("../../playground/engine.js"),
  Group = require("../../playground/group.js"),
  Diagnostics = require("../../playground/diagnostics.js");
const { read, near, normals, estimate } = require("./common.js");

/** Two classes on either side of a line, the line turned from task to task; of each task so many points. */
function tasksOf(counts, random) {
  return counts.map((count, t) => {
    const x = normals(random, 2 * count),
      angle = 0.5 * t;
    const side = (n) => Math.cos(angle) * x[2 * n] + Math.sin(angle) * x[2 * n + 1] + 0.3 * random.normal();
    return { x, y: Float64Array.from({ length: count }, (_, n) => Number(side(n) > 0)) };
  });
}
const six = tasksOf(new Array(6).fill(10), Playground.generator(1)),
  classic = { widths: [2, 5, 5, 1], sds: [0.3, 0.3, 0.3], tasks: six };
const grid = Float64Array.of(1, 0, -0.5, 1.5, 0.5, -1, 2, 2);
/** The same points once for each task. */
const repeated = (x, times) => Float64Array.from({ length: times * x.length }, (_, i) => x[i % x.length]);

test("gradients equal central differences, with learnt and with fixed sds, and tasks without labels", () => {
  const random = Playground.generator(2);
  for (const widths of [
    [2, 1],
    [2, 3, 1],
    [2, 5, 5, 1],
  ])
    for (const biases of [false, true])
      for (const sds of [null, [0.5, 0, 3].slice(0, widths.length - 1)]) {
        const tasks = tasksOf([4, 0, 3], random);
        tasks.push({ ...tasks[0], weights: [0, 0, 0, 0] }, { ...tasks[2], weights: [0.5, 0.1, 1] });
        const target = Group.target({ widths, biases, sds, hyperScale: 0.7, tasks }),
          gradient = new Float64Array(target.size),
          position = normals(random, target.size),
          step = 1e-5;
        const numWeights = Playground.target({ widths, biases, scales: widths.slice(1), x: [], y: [] }).size;
        assert.equal(target.size, 6 * numWeights + (sds ? 0 : widths.length - 1));
        near(target.logDensity(position, gradient), target.logDensity(position, null), 1e-11);
        const largest = Math.max(...gradient.map(Math.abs));
        gradient.forEach((slope, k) => {
          const at = (by) => target.logDensity(position.map((v, i) => (i === k ? v + by : v)), null);
          const expected = (at(step) - at(-step)) / (2 * step);
          near(slope, expected, 1e-7 * (1 + largest), `${widths}, ${biases}, ${sds}: entry ${k}`);
        });
      }
});

test("densities equal formulas written out for two tasks of one weight a layer", () => {
  const [log2pi, logistic] = [Math.log(2 * Math.PI), (z) => -Math.log1p(Math.exp(-z))];
  const [mean, offset] = [
    [0.3, -0.8],
    [
      [1.1, 0.4],
      [-0.2, 0.9],
    ],
  ];
  const tasks = [
    { x: [0.7], y: [1] },
    { x: [-1.2], y: [0], weights: [0.25] },
  ];
  const output = (t, sds) => {
    const w = mean.map((m, l) => m + sds[l] * offset[t][l]);
    return w[1] * Math.tanh(w[0] * tasks[t].x[0]);
  };
  const standard = [...mean, ...offset.flat()],
    prior = -0.5 * standard.reduce((a, v) => a + v * v, 0) - 3 * log2pi;
  for (const sds of [
    [0.5, 2],
    [0, 1],
  ]) {
    const expected = logistic(output(0, sds)) + 0.25 * logistic(-output(1, sds)),
      fixed = Group.target({ widths: [1, 1, 1], sds, tasks });
    near(fixed.logLikelihood(standard), expected, 1e-13);
    near(fixed.logDensity(standard, null), prior + expected, 1e-13);
    near(fixed.logDensity(standard, new Float64Array(6)), prior + expected, 1e-13);
    assert.deepEqual(fixed.sds(standard), sds);
    const found = fixed.predict(standard, Float64Array.of(0.7, -1.2), new Float64Array(2));
    found.forEach((one, t) => near(one, output(t, sds), 1e-15));
    if (sds[0] === 0) continue;
    const learnt = Group.target({ widths: [1, 1, 1], sds: null, hyperScale: 0.7, tasks }),
      position = [...sds.map(Math.log), ...standard];
    const ofSd = (sd) => Math.log(2 / 0.7) - 0.5 * log2pi - 0.5 * (sd / 0.7) ** 2 + Math.log(sd);
    near(learnt.logDensity(position, null), prior + expected + ofSd(sds[0]) + ofSd(sds[1]), 1e-13);
    learnt.sds(position).forEach((sd, l) => near(sd, sds[l], 1e-13));
  }
});

test("one task whose sds are 0 is one network whose scales are 1", () => {
  const task = classic.tasks[0],
    shared = { widths: [2, 5, 5, 1], biases: true };
  const one = Playground.target({ ...shared, scales: [1, 1, 1], ...task }),
    group = Group.target({ ...shared, sds: [0, 0, 0], tasks: [task] });
  const position = normals(Playground.generator(3), group.size),
    means = position.slice(0, one.size);
  assert.equal(group.logLikelihood(position), one.logLikelihood(means));
  assert.deepEqual(group.predict(position, grid, new Float64Array(4)), one.predict(means, grid, new Float64Array(4)));
});

test("tasks predict alike if the sds are 0, and otherwise not", () => {
  for (const [sds, alike] of [
    [[0, 0, 0], true],
    [[0, 0.1, 0], false],
  ]) {
    const target = Group.target({ ...classic, sds }),
      found = target.predict(normals(Playground.generator(4), target.size), repeated(grid, 6), new Float64Array(24));
    for (let t = 1; t < 6; t++)
      for (let n = 0; n < 4; n++) assert.equal(found[4 * t + n] === found[n], alike, `task ${t}, point ${n}`);
  }
});

test("keys are equal if predictions are", () => {
  const key = (change) => Group.target({ ...classic, ...change }).key;
  assert.equal(key({}), key({ tasks: tasksOf(new Array(6).fill(3), Playground.generator(9)), hyperScale: 2 }));
  assert.equal(key({ sds: null }), key({ sds: null, hyperScale: 2 }));
  const others = [{ sds: [0.3, 0.3, 0.4] }, { sds: null }, { biases: true }, { tasks: six.slice(1) }];
  others.push({ widths: [2, 5, 4, 1] });
  assert.equal(new Set([key({}), ...others.map(key)]).size, 6);
});

/** Draws of a group after warm-up, and of each of its predicted probabilities the series [chain][draw]. */
function run(spec, draws, options = {}) {
  const target = Group.target(spec),
    sampler = Playground.sampler(target, { capacity: draws, ...options });
  sampler.advance({ transitions: 4 * (300 + draws) });
  const { draws: held, kind } = sampler.shown(),
    table = Diagnostics.predictionTable(repeated(grid, spec.tasks.length));
  assert.equal(kind, "fresh");
  assert.equal(table.update(held, target), 0);
  const predictions = Array.from({ length: 4 * spec.tasks.length }, (_, n) =>
    Diagnostics.series(held, (row) => table.of(held.id[row])[n]),
  );
  return { target, sampler, held, table, predictions };
}

for (const [what, sds] of [
  ["fixed sds", [0.3, 0.3, 0.3]],
  ["learnt sds", null],
])
  test(`six tasks of ten labels mix: ${what}`, () => {
    const { target, sampler, held, predictions } = run({ ...classic, sds }, 300, { seed: 5 });
    const logDensity = Diagnostics.series(held, (row) => held.logDensity[row]),
      logSds = [0, 1, 2].map((l) => Diagnostics.series(held, (row) => held.positions[row * target.size + l]));
    for (const series of [...predictions, logDensity, ...(sds ? [] : logSds)]) {
      assert.ok(Diagnostics.rhat(series) < 1.1, `R-hat ${Diagnostics.rhat(series)}`);
      assert.ok(Diagnostics.effectiveSampleSize(series) > 50, `ESS ${Diagnostics.effectiveSampleSize(series)}`);
    }
    assert.ok(sampler.state().divergences < 10);
  });

test("without labels the prior is sampled: log sds have the mean of a half-normal's, the weights are N(0, 1)", () => {
  const spec = { widths: [2, 2, 1], sds: null, hyperScale: 2, tasks: [{ x: [], y: [] }, { x: [], y: [] }] };
  const { target, held } = run(spec, 2000, { seed: 6 });
  const found = Array.from({ length: target.size }, (_, k) => {
    const series = Diagnostics.series(held, (row) => held.positions[row * target.size + k]);
    return [estimate(series), estimate(series.map((chain) => chain.map((v) => v * v)))];
  });
  found.forEach(([first, second], k) => {
    const centre = k < 2 ? Math.log(2) - (Math.log(2) + 0.5772156649015329) / 2 : 0; // E log |N(0, 1)|, times the scale
    near(first.value, centre, 5 * first.error, `mean of entry ${k}`);
    near(second.value, k < 2 ? centre ** 2 + Math.PI ** 2 / 8 : 1, 5 * second.error, `square of entry ${k}`);
  });
});

test("a task without labels learns from the others, the more the smaller the sds", () => {
  const line = tasksOf([40], Playground.generator(7))[0],
    tasks = [line, { x: line.x, y: line.y, weights: new Float64Array(40) }];
  const [close, far] = [0.1, 3].map((sd) => {
    const { predictions } = run({ widths: [2, 1], sds: [sd], tasks }, 400, { seed: 8 });
    return predictions.map((series) => estimate(series).value);
  });
  near(close[4], close[0], 0.02);
  assert.ok(close[0] > 0.9 && far[0] > 0.9 && far[4] < close[4] - 0.1, `${close} ${far}`);
});

test("other sds reweight the draws, and the weighted predictions are those of fresh sampling", () => {
  const two = { ...classic, tasks: six.slice(0, 2) },
    changed = { ...two, sds: [0.3, 0.3, 0.6] };
  const { sampler, held, table, predictions, target } = run(two, 250, { seed: 10 });
  const next = Group.target(changed),
    { weights, effectiveSampleSize } = sampler.retarget(next);
  assert.ok(effectiveSampleSize > 200 && effectiveSampleSize < 999, `${effectiveSampleSize} draws`);
  assert.deepEqual([sampler.shown().kind, sampler.shown().draws === held], ["reweighted", true]);
  const ratios = Float64Array.from(held.id, (_, row) => {
    const position = held.positions.subarray(row * target.size, (row + 1) * target.size);
    return Math.exp(next.logLikelihood(position) - target.logLikelihood(position));
  });
  const total = ratios.reduce((a, b) => a + b);
  weights.forEach((weight, row) => near(weight, ratios[row] / total, 1e-12));
  assert.equal(table.update(held, next, { milliseconds: -1 }), 1000, "other sds, other predictions");
  table.update(held, next);
  const fresh = run(changed, 600, { seed: 11 }).predictions;
  table.average(held, weights).mean.forEach((value, n) => {
    const anew = estimate(fresh[n]),
      error = estimate(predictions[n]).error * Math.sqrt(1000 / effectiveSampleSize); // weighted draws are worth fewer
    near(value, anew.value, 5 * Math.hypot(anew.error, error), `point ${n}`);
  });
});

const ten = classic.tasks[0];
for (const [what, change, message] of [
  ["no tasks", { tasks: [] }, /^tasks: given , expected one {x, y, weights} or more/],
  ["a task that is none", { tasks: [ten, null] }, /^tasks: given/],
  ["tasks that are none", { tasks: undefined }, /^tasks: given undefined/],
  ["an sd too few", { sds: [1, 1] }, /^sds: given 1,1, expected one a layer, 0 or more; null: learnt/],
  ["a negative sd", { sds: [1, -1, 1] }, /^sds: given 1,-1,1/],
  ["an sd that is not finite", { sds: [1, NaN, 1] }, /^sds: given 1,NaN,1/],
  ["one sd for all", { sds: 0.3 }, /^sds: given 0.3/],
  ["a hyperscale of 0", { sds: null, hyperScale: 0 }, /^hyperScale: given 0, expected a positive number/],
  ["no widths", { widths: undefined }, /^widths: given undefined/],
  ["two outputs", { widths: [2, 5, 5, 2] }, /^widths: given 2,5,5,2, expected counts, the last 1/],
  ["a label 2", { tasks: [ten, { x: [1, 1], y: [2] }] }, /^y: given 2, expected labels 0 and 1/],
  ["a point too few", { tasks: [ten, { x: [1, 1], y: [1, 0] }] }, /^x: given 1,1, expected 2 x 2 finite numbers/],
  ["a weight of 2", { tasks: [{ x: [1, 1], y: [1], weights: [2] }] }, /^weights: given 2, expected 1 from 0 to 1/],
])
  test(`bad input is refused: ${what}`, () =>
    assert.throws(() => Group.target({ ...classic, ...change }), { name: "Error", message }));
test("bad input is refused: points that cannot be shared among the tasks", () => {
  const target = Group.target(classic);
  const call = () => target.predict(new Float64Array(target.size), grid, new Float64Array(4));
  assert.throws(call, { name: "Error", message: /^out: given 4 predictions, expected a multiple of 6, the tasks/ });
});

test("the file is a classic script: a page loads engine.js before it, and nothing else", () => {
  const text = read("group.js"),
    code = text.replace(/\/\*[^]*?\*\/|\/\/.*/g, "");
  assert.ok(!/\b(import|fetch|document|window)\b/.test(code));
  const names = require("node:vm").runInNewContext(`${read("engine.js")}; ${text}; Object.keys(Group).join(" ")`, {});
  assert.equal(names, "target");
});
