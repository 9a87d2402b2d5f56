// node --test engine.test.js: seeds are fixed; bounds are five standard errors, or exact up to rounding.
"use strict";
const { test } = require("node:test"),
  assert = require("node:assert/strict");
const Playground = require("../../playground/engine.js"),
  Diagnostics = require("../../playground/diagnostics.js"),
  BookTasks = require("../../playground/tasks.js");
const { read, mean, near, normals, estimate, sample, broken } = require("./common.js");

const architectures = [1, 2, 5, 10].flatMap((width) =>
  [false, true].flatMap((biases) => [
    { widths: [2, width, width, 1], biases, likelihood: "bernoulli" },
    { widths: [1, width, width, 1], biases, likelihood: "normal", noise: 0.4 },
    { widths: [1, width, width, 1], biases, likelihood: "normal", noise: null },
  ]),
);
architectures.push(
  { widths: [2, 1], biases: true, likelihood: "bernoulli" },
  { widths: [3, 4, 1], biases: false, likelihood: "normal" },
);

function dataFor({ widths, likelihood }, random, numPoints = 13) {
  const x = normals(random, numPoints * widths[0]),
    noisy = normals(random, numPoints);
  return { x, y: likelihood === "normal" ? noisy : noisy.map((v) => Number(v > 0)) };
}

test("random numbers are sfc32's", () => {
  const mask = (1n << 32n) - 1n;
  let [a, b, c, counter] = [123n, 5n, 0n, 1n];
  const next = () => {
    const sum = (a + b + counter) & mask;
    [counter, a, b, c] = [
      counter + 1n,
      b ^ (b >> 9n),
      (c + (c << 3n)) & mask,
      ((((c << 21n) | (c >> 11n)) & mask) + sum) & mask,
    ];
    return (Number(sum) + 0.5) / 2 ** 32;
  };
  for (let i = 0; i < 20; i++) next();
  const { uniform } = Playground.generator(123, 5);
  for (let i = 0; i < 1000; i++) assert.equal(uniform(), next());
});

test("normals have the moments of N(0, 1) and no correlation, over draws and streams", () => {
  const n = 200000,
    [first, other] = [0, 1].map((stream) => normals(Playground.generator(7, stream), n));
  [0, 1, 0, 3, 0, 15].forEach((moment, i) => {
    const error = Math.sqrt(([1, 3, 15, 105, 945, 10395][i] - moment ** 2) / n);
    near(mean(first.map((v) => v ** (i + 1))), moment, 5 * error, `moment ${i + 1}`);
  });
  for (const lag of [1, 2, 3])
    near(mean(first.slice(lag).map((v, i) => v * first[i])), 0, 5 / Math.sqrt(n - lag), `lag ${lag}`);
  near(mean(first.map((v, i) => v * other[i])), 0, 5 / Math.sqrt(n), "streams");
  const below = mean(first.map((v) => Number(v < -1.96)));
  near(below, 0.0249979, 5 * Math.sqrt((0.025 * 0.975) / n), "tail");
});

test("tanh is that of the language", () => {
  for (let x = -40; x <= 40; x += 0.00137) near(Playground.tanh(x) / Math.tanh(x), 1, 1e-14, `tanh(${x})`);
  for (const x of [1e-300, 1e-9, 1e9, Infinity]) near(Playground.tanh(-x) / -Math.tanh(x), 1, 1e-14, `tanh(-${x})`);
  assert.equal(Playground.tanh(0), 0);
  assert.ok(Number.isNaN(Playground.tanh(NaN)));
});

test("gradients equal central differences, in every architecture", () => {
  const random = Playground.generator(11);
  for (const architecture of architectures)
    for (const scale of [1, 3]) {
      const weights = Float64Array.from({ length: 13 }, random.uniform),
        scales = architecture.widths.slice(1).map((_, l) => scale / (l + 1));
      const target = Playground.target({ ...architecture, scales, weights, ...dataFor(architecture, random) });
      const position = normals(random, target.size),
        gradient = new Float64Array(target.size),
        step = 1e-5;
      const value = target.logDensity(position, gradient);
      assert.equal(value, target.logDensity(position, null));
      const largest = Math.max(...gradient.map(Math.abs));
      gradient.forEach((slope, k) => {
        const [ahead, behind] = [step, -step].map((by) =>
          target.logDensity(
            position.map((v, i) => (i === k ? v + by : v)),
            null,
          ),
        );
        near(slope, (ahead - behind) / (2 * step), 1e-7 * (1 + largest), `${JSON.stringify(architecture)} entry ${k}`);
      });
    }
});

test("densities equal formulas written out for a network of one hidden unit with biases", () => {
  const [scale1, scale2, x, y] = [0.5, 3, [0.7, -1.2], [1, 0]],
    e = [0.3, -0.8, 1.1, 0.4],
    log2pi = Math.log(2 * Math.PI);
  const output = (v) => scale2 * (e[2] + e[3] * Math.tanh(scale1 * (e[0] + e[1] * v))),
    prior = -0.5 * e.reduce((a, v) => a + v * v, 0) - 2 * log2pi;
  const network = { widths: [1, 1, 1], biases: true, scales: [scale1, scale2], x, y, weights: [1, 0.25] };
  const labels = Playground.target(network),
    p = x.map((v) => 1 / (1 + Math.exp(-output(v))));
  near(labels.logDensity(Float64Array.from(e), null), prior + Math.log(p[0]) + 0.25 * Math.log(1 - p[1]), 1e-13);
  const measured = Playground.target({ ...network, likelihood: "normal", noiseScale: 0.7 }),
    sd = 1.5;
  const normal = x.map((v, n) => -0.5 * ((y[n] - output(v)) / sd) ** 2 - Math.log(sd) - 0.5 * log2pi);
  const ofNoise = Math.log(2 / (Math.PI * 0.7) / (1 + (sd / 0.7) ** 2)) + Math.log(sd);
  const position = Float64Array.from([Math.log(sd), ...e]);
  near(measured.logDensity(position, null), prior + ofNoise + normal[0] + 0.25 * normal[1], 1e-13);
  near(measured.logLikelihood(position), normal[0] + 0.25 * normal[1], 1e-13);
  near(measured.noise(position), sd, 1e-13);
});

test("labels far out are stable", () => {
  const target = Playground.target({ widths: [1, 1], scales: [1e4], x: [1, -1], y: [1, 0] }),
    gradient = new Float64Array(1);
  assert.equal(target.logLikelihood([1]), 0);
  assert.equal(target.logLikelihood([-1]), -2e4);
  target.logDensity([-1], gradient);
  assert.equal(gradient[0], 1 + 2e4);
  near(
    Playground.target({ widths: [1, 1], scales: [1], x: [1], y: [1] }).logLikelihood([50]) / -Math.exp(-50),
    1,
    1e-12,
  );
});

test("predictions do not depend on how many points there are, and are odd without biases", () => {
  const random = Playground.generator(12),
    x = normals(random, 400);
  const target = Playground.target({ widths: [2, 5, 5, 1], scales: [1, 1, 1], x: x.slice(0, 6), y: [0, 1, 1] });
  const position = normals(random, target.size),
    all = target.predict(position, x, new Float64Array(200));
  const flipped = target.predict(
    position,
    x.map((v) => -v),
    new Float64Array(200),
  );
  for (let n = 0; n < 200; n++) {
    assert.equal(target.predict(position, x.subarray(2 * n, 2 * n + 2), new Float64Array(1))[0], all[n]);
    near(flipped[n], -all[n], 1e-13);
  }
});

const tasks = [0, 6, 12].map((t) => BookTasks[t]),
  moons = tasks.map((points) => ({ x: points.flatMap((p) => p.slice(0, 2)), y: points.map((p) => p[2]) })),
  classic = { widths: [2, 5, 5, 1], scales: [1, 1, 1], x: moons[0].x, y: moons[0].y };

test("the same seed gives the same draws, however the time is sliced", () => {
  const run = (seed, slice) => {
    const sampler = Playground.sampler(Playground.target(classic), { seed, warmUp: 20, renewal: 10 });
    for (let made = 0; made < 120; made += slice) sampler.advance({ transitions: slice });
    sampler.retarget(Playground.target({ ...classic, scales: [0.5, 1, 6] }));
    for (let made = 0; made < 120; made += slice) sampler.advance({ transitions: slice });
    return sampler.shown().draws.positions;
  };
  assert.deepEqual(run(3, 120), run(3, 1));
  assert.deepEqual(run(3, 120), run(3, 8));
  assert.notDeepEqual(run(3, 120), run(4, 120));
});

/** Normal in the plane and beyond: means 1, -2, 0, 0; sds 0.2, 1, 3 and 1; correlation 0.8 of the last two. */
const [centres, sds, correlation] = [[1, -2, 0, 0], [0.2, 1, 3, 1], 0.8];
const gaussian = {
  size: 4,
  logDensity(position, gradient) {
    const z = centres.map((m, k) => (position[k] - m) / sds[k]),
      rest = 1 - correlation ** 2;
    const slopes = [-z[0], -z[1], -(z[2] - correlation * z[3]) / rest, -(z[3] - correlation * z[2]) / rest];
    if (gradient) slopes.forEach((slope, k) => (gradient[k] = slope / sds[k]));
    return 0.5 * z.reduce((total, v, k) => total + v * slopes[k], 0);
  },
};
/** Largest difference from the exact moments in standard errors. */
function gaussianDifference(engine) {
  const quantities = (q) => {
    const z = centres.map((m, k) => (q[k] - m) / sds[k]);
    return [...z, ...z.map((v) => v * v), z[2] * z[3], z[0] * z[1]];
  };
  const exact = [0, 0, 0, 0, 1, 1, 1, 1, correlation, 0];
  const estimates = sample(engine, gaussian, quantities, { draws: 4000, trajectory: 2, seed: 5 }).map(estimate);
  return Math.max(...estimates.map(({ value, error }, i) => Math.abs(value - exact[i]) / error));
}
test("a normal density's moments are found, by four chains that agree", () => {
  assert.ok(gaussianDifference(Playground) < 5, `${gaussianDifference(Playground)} standard errors`);
  const [first] = sample(Playground, gaussian, (q) => q, { draws: 1000, seed: 6 });
  assert.ok(Diagnostics.rhat(first) < 1.02);
});
for (const [what, from, to] of [
  ["every proposal is accepted", "if (random.uniform() < chance)", "if (random.uniform() < 2)"],
  [
    "the kinetic energy at the end is forgotten",
    "rise += 0.5 * (momentum[k] += 0.5 * step * slope[k]) ** 2",
    "momentum[k] += 0.5 * step * slope[k]",
  ],
  ["momenta are too small", "(momentum[k] = random.normal())", "(momentum[k] = 0.9 * random.normal())"],
])
  test(`a broken twin is found: ${what}`, () => {
    const difference = gaussianDifference(broken([from, to]));
    assert.ok(!(difference < 10), `${difference} standard errors`);
  });

/** Predictive means at four points, by weighting draws of the prior with the likelihood, and their standard errors. */
function bruteForce(target, spec, quantities, numDraws = 100000) {
  const random = Playground.generator(99),
    total = [];
  let weightSum = 0;
  const draws = Array.from({ length: numDraws }, () => {
    const position = normals(random, target.size);
    if (spec.likelihood === "normal" && spec.noise == null)
      position[0] = Math.log(0.5 * Math.tan((Math.PI / 2) * random.uniform()));
    const weight = Math.exp(target.logLikelihood(position) + spec.x.length * (spec.likelihood === "normal" ? -2 : 0)),
      of = quantities(position);
    weightSum += weight;
    of.forEach((v, q) => (total[q] = (total[q] ?? 0) + weight * v));
    return { weight, of };
  });
  return total.map((sum, q) => {
    const value = sum / weightSum;
    return {
      value,
      error: Math.sqrt(draws.reduce((a, { weight, of }) => a + (weight * (of[q] - value)) ** 2, 0)) / weightSum,
    };
  });
}
const known = new Map(); // brute force by spec: twins share it
const probes = { 1: Float64Array.of(-1.5, -0.2, 0.6, 2), 2: Float64Array.of(1, 0.5, -1, 2, 0.3, -0.8, 2.5, 2.5) };
const few = {
  labels: { widths: [2, 5, 5, 1], scales: [1, 1, 1], x: [1, 0, -0.5, 1.5, 0.5, -1], y: [1, 0, 1] },
  "labels, wide scales, biases": {
    widths: [2, 5, 5, 1],
    scales: [0.5, 1, 24],
    biases: true,
    x: [1, 0, -0.5, 1.5],
    y: [1, 0],
  },
  "measurements of fixed noise": {
    widths: [1, 5, 5, 1],
    scales: [2, 1, 1],
    biases: true,
    likelihood: "normal",
    noise: 0.5,
    x: [-1, 0.5, 1],
    y: [0.8, -0.4, 0.3],
  },
  "measurements of learnt noise": {
    widths: [1, 2, 2, 1],
    scales: [2, 1, 1],
    biases: true,
    likelihood: "normal",
    x: [-1, 0.5, 1],
    y: [0.8, -0.4, 0.3],
  },
};
const squash = (spec) => (spec.likelihood === "normal" ? Math.tanh : (z) => 1 / (1 + Math.exp(-z))); // bounded, hence with a variance
function quantitiesOf(target, spec) {
  const x = probes[spec.widths[0]],
    out = new Float64Array(4),
    bounded = squash(spec);
  return (position) => {
    const found = Array.from(target.predict(position, x, out), bounded);
    return spec.likelihood === "normal" && spec.noise == null ? [...found, Math.tanh(target.noise(position))] : found;
  };
}
/** Largest difference of the sampler's predictions from brute force, in standard errors of both. */
function predictionDifference(engine, spec) {
  const right = Playground.target(spec),
    target = engine.target(spec);
  if (!known.has(spec)) known.set(spec, bruteForce(right, spec, quantitiesOf(right, spec)));
  const exact = known.get(spec);
  const found = sample(engine, target, quantitiesOf(target, spec), { draws: 1500, seed: 8 }).map(estimate);
  return Math.max(
    ...found.map(({ value, error, ess }, q) => {
      assert.ok(ess > 200 || engine !== Playground, `ESS ${ess}`);
      return Math.abs(value - exact[q].value) / Math.hypot(error, exact[q].error, 1e-12);
    }),
  );
}
for (const [what, spec] of Object.entries(few))
  test(`predictions equal those of weighted draws of the prior: ${what}`, () => {
    const difference = predictionDifference(Playground, spec);
    assert.ok(difference < 5, `${difference} standard errors`);
  });
for (const [what, name, ...changes] of [
  [
    "half the prior is forgotten",
    "labels",
    ["value -= 0.5 * position[k] * position[k]", "value -= 0.25 * position[k] * position[k]"],
    ["gradient[k] = -position[k]", "gradient[k] = -0.5 * position[k]"],
  ],
  [
    "the scales are forgotten",
    "labels, wide scales, biases",
    ["return { inputs, units, start, scale, from", "scale = 1; return { inputs, units, start, scale, from"],
  ],
  [
    "the Jacobian of the log noise is forgotten",
    "measurements of learnt noise",
    [" + position[0];", ";"],
    ["gradient[0] = 1 - 2 /", "gradient[0] = -2 /"],
  ],
])
  test(`a broken twin is found: ${what}`, () => {
    const difference = predictionDifference(broken(...changes), few[name]);
    assert.ok(!(difference < 8), `${difference} standard errors`);
  });

test("without points the prior is sampled: log noise has the mean and the variance of a half-Cauchy's", () => {
  const target = Playground.target({
    widths: [1, 2, 1],
    scales: [1, 1],
    likelihood: "normal",
    noiseScale: 0.5,
    x: [],
    y: [],
  });
  const [logNoise, square, ...weights] = sample(
    Playground,
    target,
    (q) => [q[0], (q[0] - Math.log(0.5)) ** 2, ...q.slice(1)],
    { draws: 4000, seed: 4 },
  ).map(estimate);
  near(logNoise.value, Math.log(0.5), 5 * logNoise.error, "mean");
  near(square.value, Math.PI ** 2 / 4, 5 * square.error, "variance");
  weights.forEach(({ value, error }) => near(value, 0, 5 * error, "weight"));
});

/** Settle a target with 1000 draws, then move a point. */
function moved(change, options = {}) {
  const old = Playground.target(classic),
    sampler = Playground.sampler(old, { seed: 2, ...options });
  sampler.advance({ transitions: 4 * 600 });
  const spec = { ...classic, ...change },
    target = Playground.target(spec),
    before = sampler.shown().draws;
  return { old, sampler, target, before, found: sampler.retarget(target) };
}
const movedPoint = { x: classic.x.map((v, i) => (i === 1 ? v - 1 : v)) };

test("weights are ratios of densities at the same standardised position", () => {
  for (const change of [
    movedPoint,
    { scales: [1.1, 1, 1.2] },
    { y: classic.y.map((label, n) => (n === 3 ? 1 - label : label)) },
  ]) {
    const { old, target, before, found, sampler } = moved(change),
      position = (row) => before.positions.subarray(row * 40, row * 40 + 40);
    const ratios = Float64Array.from(before.id, (_, row) =>
      Math.exp(target.logLikelihood(position(row)) - old.logLikelihood(position(row))),
    );
    const total = ratios.reduce((a, b) => a + b),
      { draws, weights, kind } = sampler.shown();
    near(found.effectiveSampleSize, total ** 2 / ratios.reduce((a, b) => a + b * b, 0), 1e-6);
    assert.ok(
      found.effectiveSampleSize >= 50 && kind === "reweighted" && draws === before && weights === found.weights,
    );
    weights.forEach((weight, row) => near(weight, ratios[row] / total, 1e-12));
    near(
      weights.reduce((a, b) => a + b),
      1,
      1e-12,
    );
  }
});

test("reweighted predictions equal those of fresh sampling, and not the old ones", () => {
  const { sampler, target, before, found, old } = moved(
    { y: classic.y.map((label, n) => (n < 2 ? 1 - label : label)) },
    { capacity: 1500, seed: 3 },
  );
  sampler.advance({ transitions: 4 * 1300 });
  const again = moved({ y: classic.y.map((label, n) => (n < 2 ? 1 - label : label)) }, { capacity: 300 });
  assert.ok(again.found.effectiveSampleSize > 50 && found.effectiveSampleSize > 50);
  const fresh = sampler.shown(),
    x = Float64Array.from(classic.x),
    quantities = (p) => Array.from(target.predict(p, x, new Float64Array(50)), squash(classic));
  assert.equal(fresh.kind, "fresh");
  const rows = Array.from(again.before.id, (_, row) =>
    quantities(again.before.positions.subarray(row * 40, row * 40 + 40)),
  );
  let furthest = 0;
  for (let n = 0; n < 50; n++) {
    const anew = estimate(
      Diagnostics.series(fresh.draws, (row) => quantities(fresh.draws.positions.subarray(row * 40, row * 40 + 40))[n]),
    );
    const plain = estimate(Diagnostics.series(again.before, (row) => rows[row][n])),
      { weights } = again.found;
    const value = rows.reduce((a, p, row) => a + weights[row] * p[n], 0),
      spread = Math.sqrt(rows.reduce((a, p, row) => a + (weights[row] * (p[n] - value)) ** 2, 0));
    const error = Math.hypot(anew.error, spread * Math.max(1, Math.sqrt(rows.length / plain.ess))); // draws of a chain are correlated
    near(value, anew.value, 5 * error, `point ${n}`);
    furthest = Math.max(furthest, Math.abs(plain.value - anew.value) / Math.hypot(anew.error, plain.error));
  }
  assert.ok(furthest > 5, "the old draws alone would have failed");
});

test("weights worth fewer than 50 draws are dropped; a change taken back restores the draws; fresh draws replace them", () => {
  const { sampler, found, before, old } = moved({ y: classic.y.map((label) => 1 - label) });
  assert.ok(found.weights === null && found.effectiveSampleSize < 50 && found.effectiveSampleSize >= 1);
  assert.equal(sampler.shown().kind, "warm-up");
  const back = sampler.retarget(old);
  near(back.effectiveSampleSize, 1000, 1e-6);
  assert.equal(sampler.shown().draws, before);
  sampler.advance({ transitions: 4 * 150 });
  assert.deepEqual([sampler.state().phase, sampler.state().draws, sampler.shown().kind], ["sampling", 0, "reweighted"]);
  sampler.advance({ transitions: 4 * 249 });
  assert.deepEqual(
    [sampler.shown().kind, sampler.shown().next.made[0]],
    ["reweighted", 249],
    "weights worth 1000 draws",
  );
  sampler.advance({ transitions: 4 });
  assert.deepEqual([sampler.shown().kind, sampler.shown().weights, sampler.state().draws], ["fresh", null, 250]);
});

test("draws of a tuning stand in until there are 50 others of each chain, half as much worth as weighted ones", () => {
  const { sampler } = moved({ y: classic.y.map((label) => 1 - label) }); // weights are dropped
  sampler.advance({ transitions: 4 * 150 });
  const tuned = sampler.shown();
  assert.deepEqual([tuned.kind, tuned.draws.made[0], tuned.weights, sampler.state().draws], ["warm-up", 150, null, 0]);
  sampler.advance({ transitions: 4 * 49 });
  assert.deepEqual([sampler.shown().draws, sampler.shown().next.made[0]], [tuned.draws, 49]);
  sampler.advance({ transitions: 4 });
  assert.deepEqual([sampler.shown().kind, sampler.state().draws], ["fresh", 50]);
  const other = moved({ scales: [1, 1, 1.6] }),
    enough = Math.ceil((2 * other.found.effectiveSampleSize) / 4);
  assert.ok(other.found.weights && enough < 150, `weights worth ${other.found.effectiveSampleSize}`);
  other.sampler.advance({ transitions: 4 * (enough - 1) });
  assert.equal(other.sampler.shown().kind, "reweighted");
  other.sampler.advance({ transitions: 4 });
  assert.equal(other.sampler.shown().kind, "warm-up");
});

test("another architecture begins anew, and the first warm-up is not cut short", () => {
  const sampler = Playground.sampler(Playground.target(classic), { warmUp: 40, renewal: 10 });
  sampler.advance({ transitions: 4 * 10 });
  sampler.retarget(Playground.target({ ...classic, scales: [1, 2, 1] }));
  sampler.advance({ transitions: 4 * 29 });
  assert.equal(sampler.state().phase, "warm-up");
  sampler.advance({ transitions: 4 * 1 });
  assert.equal(sampler.state().phase, "sampling");
  const { weights, effectiveSampleSize } = sampler.retarget(Playground.target({ ...classic, biases: true }));
  assert.deepEqual(
    [weights, effectiveSampleSize, sampler.state().phase, sampler.target().size],
    [null, 0, "warm-up", 51],
  );
  sampler.advance({ transitions: 4 * 39 });
  assert.equal(sampler.state().phase, "warm-up");
});

test("renewed adaptation keeps every chain moving", () => {
  const { sampler } = moved({ scales: [0.5, 1, 6] });
  sampler.advance({ transitions: 4 * 250 });
  const { acceptance, divergences } = sampler.state();
  for (const share of acceptance) assert.ok(share > 0.55 && share < 0.99, `acceptance ${acceptance}`);
  assert.ok(divergences < 10);
});

test("an imposed step size shows what goes wrong, and can be taken back", () => {
  const sampler = Playground.sampler(Playground.target(classic), { seed: 9 });
  sampler.advance({ transitions: 4 * 400 });
  const learnt = sampler.state().stepSize,
    spread = () => {
      const { draws } = sampler.shown();
      return Diagnostics.effectiveSampleSize(Diagnostics.series(draws, (row) => draws.logDensity[row]));
    };
  sampler.imposeStepSize(learnt[0] / 20);
  assert.deepEqual([sampler.state().phase, sampler.state().draws], ["imposed", 0]);
  sampler.advance({ transitions: 4 * 200 });
  assert.ok(Math.min(...sampler.state().acceptance) > 0.99 && spread() < 40, `ESS ${spread()}`);
  assert.deepEqual(Array.from(sampler.state().stepSize), new Array(4).fill(learnt[0] / 20));
  sampler.imposeStepSize(4 * learnt[0]);
  sampler.advance({ transitions: 4 * 200 });
  assert.ok(Math.max(...sampler.state().acceptance) < 0.2);
  sampler.imposeStepSize(null);
  assert.deepEqual(
    [sampler.state().phase, sampler.shown().kind, sampler.state().stepSize],
    ["sampling", "fresh", learnt],
  );
});

test("the ring holds the last draws, with their densities and likelihoods", () => {
  const target = Playground.target(classic),
    sampler = Playground.sampler(target, { capacity: 30, warmUp: 5 });
  sampler.advance({ transitions: 4 * 50 + 2 });
  const { draws } = sampler.shown(),
    ids = Diagnostics.series(draws, (row) => draws.id[row]);
  assert.deepEqual(Array.from(draws.made), [46, 46, 45, 45]);
  ids.forEach((chain, c) => chain.forEach((id, i) => assert.equal(id, chain[0] + 4 * i, `chain ${c}`)));
  assert.equal(Math.max(...ids.map((chain) => chain.at(-1))), 4 * 50 + 2);
  for (let row = 0; row < 120; row++) {
    const position = draws.positions.subarray(row * 40, row * 40 + 40);
    near(draws.logDensity[row], target.logDensity(position, null), 1e-10);
    near(draws.logLikelihood[row], target.logLikelihood(position), 1e-10);
  }
});

test("time slices make one transition at least", () => {
  const sampler = Playground.sampler(gaussian);
  assert.equal(sampler.advance({ milliseconds: 0 }), 1);
  assert.ok(sampler.advance({ milliseconds: 3 }) >= 1);
  assert.equal(sampler.advance({ transitions: 7, milliseconds: 1e9 }), 7);
});

function autoregression(phi, numChains, length, seed, shift = () => 0) {
  return Array.from({ length: numChains }, (_, c) => {
    const random = Playground.generator(seed, c);
    let state = random.normal();
    return Float64Array.from(
      { length },
      () => (state = phi * state + Math.sqrt(1 - phi * phi) * random.normal()) + shift(c),
    );
  });
}
test("effective sample sizes of autoregressions are n (1 - phi) / (1 + phi)", () => {
  for (const phi of [0, 0.5, 0.9, -0.4]) {
    const n = 16000,
      exact = (n * (1 - phi)) / (1 + phi);
    near(Diagnostics.effectiveSampleSize(autoregression(phi, 4, 4000, 21)) / exact, 1, 0.35, `phi ${phi}`);
  }
});

test("R-hat is near 1 for chains of one distribution, and as computed for chains apart, or of other spread", () => {
  const alike = autoregression(0, 4, 1000, 22),
    apart = autoregression(0, 4, 1000, 23, (c) => (c % 2 ? 1 : -1));
  assert.ok(Diagnostics.rhat(alike) < 1.015);
  near(Diagnostics.rhat(apart), 1.431, 0.06); // means +-1: sqrt(1 + 8 / 7) of values; of ranks this, in 100 000 draws
  const wide = alike.map((chain, c) => chain.map((v) => (c === 0 ? 5 : 1) * v));
  assert.ok(Diagnostics.rhat(wide) > 1.2, "only the folded ranks see a spread");
  const trend = alike.map((chain) => chain.map((v, i) => v + i / 500));
  assert.ok(Diagnostics.rhat(trend) > 1.1, "a trend within chains");
  assert.ok(Number.isNaN(Diagnostics.rhat([new Float64Array(10), new Float64Array(10)])));
});
test("R-hat and effective sample size of a series that anyone can make are ArviZ's", () => {
  const chains = [0, 1, 2].map((c) =>
    Float64Array.from({ length: 31 }, (_, i) => Math.round(10 * Math.sin(i * i + 7 * c)) + i / 10),
  );
  near(Diagnostics.rhat(chains), 0.9824306689015108, 1e-8, "R-hat of ranks");
  near(Diagnostics.effectiveSampleSize(chains), 113.86617459312748, 1e-9, "effective sample size");
});
test("tables average predictions, per chain, with weights, each draw predicted once", () => {
  let predicted = 0;
  const { sampler, target, before, found } = moved(movedPoint, { capacity: 40 }),
    x = Float64Array.of(1, 0, -0.5, 2, 0.2, 0.2);
  const counting = { ...target, predict: (...all) => (predicted++, target.predict(...all)) },
    table = Diagnostics.predictionTable(x);
  assert.equal(table.update(before, counting, { milliseconds: -1 }), 160);
  assert.equal(table.update(before, counting), 0);
  assert.equal(table.update(before, counting), 0);
  assert.equal(predicted, 160);
  const rows = Array.from(before.id, (_, row) =>
    Array.from(
      target.predict(before.positions.subarray(row * 40, row * 40 + 40), x, new Float64Array(3)),
      squash(classic),
    ),
  );
  for (const weights of [null, found.weights]) {
    const { mean: m, epistemic, aleatoric, chains } = table.average(before, weights),
      w = (row) => (weights ? weights[row] : 1 / 160);
    for (let n = 0; n < 3; n++) {
      const expected = rows.reduce((a, p, row) => a + w(row) * p[n], 0);
      near(m[n], expected, 1e-12);
      near(
        epistemic[n],
        rows.reduce((a, p, row) => a + w(row) * (p[n] - expected) ** 2, 0),
        1e-12,
      );
      near(
        aleatoric[n],
        rows.reduce((a, p, row) => a + w(row) * p[n] * (1 - p[n]), 0),
        1e-12,
      );
      near(epistemic[n] + aleatoric[n], m[n] * (1 - m[n]), 1e-12);
      const ofChain = rows.slice(40, 80),
        weight = ofChain.map((_, i) => w(40 + i));
      near(chains[1][n], ofChain.reduce((a, p, i) => a + weight[i] * p[n], 0) / weight.reduce((a, b) => a + b), 1e-12);
    }
  }
  assert.equal(table.of(before.id[5]).length, 3);
  assert.equal(
    table.update(before, Playground.target({ ...classic, scales: [1, 1, 2] }), { milliseconds: -1 }),
    160,
    "other scales, other predictions",
  );
});

test("tables of measurements give the mean squared noise as aleatoric variance", () => {
  const spec = {
    widths: [1, 5, 1],
    scales: [2, 1],
    biases: true,
    likelihood: "normal",
    x: [-1, 0, 1],
    y: [0.2, 0.1, -0.4],
  };
  const target = Playground.target(spec),
    sampler = Playground.sampler(target, { capacity: 20, warmUp: 30 }),
    table = Diagnostics.predictionTable(probes[1]);
  sampler.advance({ transitions: 4 * 50 });
  const { draws } = sampler.shown();
  table.update(draws, target);
  const noises = Array.from(draws.id, (_, row) => Math.exp(2 * draws.positions[row * target.size])),
    { aleatoric, mean: m } = table.average(draws);
  near(aleatoric[2] / mean(noises), 1, 1e-12);
  near(
    m[1],
    mean(
      Array.from(
        draws.id,
        (_, row) =>
          target.predict(
            draws.positions.subarray(row * target.size, (row + 1) * target.size),
            probes[1],
            new Float64Array(4),
          )[1],
      ),
    ),
    1e-12,
  );
});

for (const [what, call, message] of [
  ["no layers", () => Playground.target({ ...classic, widths: [2] }), /^widths: given 2, expected/],
  [
    "two outputs",
    () => Playground.target({ ...classic, widths: [2, 5, 5, 2] }),
    /^widths: given 2,5,5,2, expected counts, the last 1/,
  ],
  ["half a unit", () => Playground.target({ ...classic, widths: [2, 2.5, 5, 1] }), /^widths: given/],
  [
    "a scale too few",
    () => Playground.target({ ...classic, scales: [1, 1] }),
    /^scales: given 1,1, expected one a layer, above 0/,
  ],
  ["a scale of 0", () => Playground.target({ ...classic, scales: [1, 0, 1] }), /^scales: given 1,0,1/],
  ["no scales", () => Playground.target({ ...classic, scales: undefined }), /^scales: given undefined/],
  ["a label 2", () => Playground.target({ ...classic, x: [1, 1], y: [2] }), /^y: given 2, expected labels 0 and 1/],
  [
    "a measurement that is not finite",
    () => Playground.target({ ...classic, likelihood: "normal", x: [1, 1], y: [NaN] }),
    /^y: given NaN, expected finite/,
  ],
  [
    "a point too few",
    () => Playground.target({ ...classic, x: [1, 1, 1], y: [1, 0] }),
    /^x: given 1,1,1, expected 2 x 2 finite numbers/,
  ],
  [
    "an input that is not finite",
    () => Playground.target({ ...classic, x: [1, Infinity], y: [1] }),
    /^x: given 1,Infinity/,
  ],
  [
    "a weight of 2",
    () => Playground.target({ ...classic, x: [1, 1], y: [1], weights: [2] }),
    /^weights: given 2, expected 1 from 0 to 1/,
  ],
  [
    "an unknown likelihood",
    () => Playground.target({ ...classic, likelihood: "poisson" }),
    /^likelihood: given poisson,,0.5, expected bernoulli; normal/,
  ],
  [
    "noise of labels",
    () => Playground.target({ ...classic, noise: 1 }),
    /^likelihood: given bernoulli,1,0.5, expected/,
  ],
  [
    "negative noise",
    () => Playground.target({ ...classic, likelihood: "normal", noise: -1 }),
    /^likelihood: given normal,-1,0.5/,
  ],
  ["no chains", () => Playground.sampler(gaussian, { chains: 0 }), /^chains: given 0, expected an option, above 0/],
  ["half a draw", () => Playground.sampler(gaussian, { capacity: 2.5 }), /^capacity: given 2.5/],
  ["an acceptance of 0", () => Playground.sampler(gaussian, { acceptance: 0 }), /^acceptance: given 0/],
  ["an option that there is not", () => Playground.sampler(gaussian, { warmup: 10 }), /^warmup: given 10, expected/],
  ["a target without size", () => Playground.sampler({ logDensity: () => 0 }), /^target.size: given undefined/],
  [
    "a density that is not finite",
    () => Playground.sampler({ size: 1, logDensity: () => NaN }),
    /^log density: given NaN, expected a finite number/,
  ],
  ["no limit", () => Playground.sampler(gaussian).advance({}), /^advance: given Infinity,Infinity, expected one limit/],
  [
    "a step of 0",
    () => Playground.sampler(gaussian).imposeStepSize(0),
    /^step size: given 0, expected a positive number or null/,
  ],
  ["half a seed", () => Playground.generator(0.5), /^seed, stream: given 0.5,0, expected integers/],
  ["short series", () => Diagnostics.rhat([[1, 2, 3]]), /^series: given chains of 3 draws, expected/],
  [
    "series of two lengths",
    () => Diagnostics.rhat([new Float64Array(10), new Float64Array(12)]),
    /^series: given chains of 10,12 draws/,
  ],
  [
    "no predictions",
    () => Diagnostics.predictionTable([1, 1]).average(Playground.sampler(gaussian).shown().draws),
    /^draws: given 0, expected/,
  ],
])
  test(`bad input is refused: ${what}`, () => assert.throws(call, { name: "Error", message }));

test("targets keep their own data: a page may go on to move its points", () => {
  const [x, y, weights] = [Float64Array.of(1, 2), Float64Array.of(1), Float64Array.of(1)];
  const target = Playground.target({ ...classic, x, y, weights }),
    position = new Float64Array(40).fill(0.5);
  const before = target.logDensity(position, null);
  [x[0], y[0], weights[0]] = [-5, 0, 0];
  assert.equal(target.logDensity(position, null), before);
});

test("both files are classic scripts: a page has nothing else to load", () => {
  const text = ["engine.js", "diagnostics.js"].map(read).join("");
  assert.ok(!/\b(import|require|fetch|document|window)\b/.test(text.replace(/\/\*[^]*?\*\/|\/\/.*|"undefined" \? require\(.*?\)/g, "")));
  const names = require("node:vm").runInNewContext(
    `${text}; Object.keys({ ...Playground, ...Diagnostics }).join(" ")`,
    { performance },
  );
  assert.equal(names, "generator target sampler every expect vectors tanh series rhat effectiveSampleSize predictionTable");
});
