// The other ways to fit, where the answer is known. Seeds are fixed.
"use strict";
const { test } = require("node:test"),
  assert = require("node:assert/strict");
const { near, normals } = require("./common.js");
const Playground = require("../../playground/engine.js"),
  Methods = require("../../playground/methods.js"),
  PlaygroundData = require("../../playground/data.js"),
  State = require("../../playground/state.js");

function finish(steps) {
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

/** A line of two features that go together: y = 0.5 a - 0.2 b + N(0, 0.5^2); its posterior is normal. */
function linear() {
  const random = Playground.generator(31),
    x = normals(random, 40).map((v, i, all) => (i % 2 ? 0.8 * all[i - 1] + 0.6 * v : v)),
    y = Array.from({ length: 20 }, (_, n) => 0.5 * x[2 * n] - 0.2 * x[2 * n + 1] + 0.5 * random.normal());
  const target = Playground.target({ widths: [2, 1], scales: [1], x, y, likelihood: "normal", noise: 0.5 });
  const product = (i, j) => Array.from(y, (_, n) => (x[2 * n + i] * x[2 * n + j]) / 0.25).reduce((a, b) => a + b);
  const [a, b, c] = [product(0, 0) + 1, product(0, 1), product(1, 1) + 1],
    [u, v] = [0, 1].map((i) => y.reduce((sum, value, n) => sum + (value * x[2 * n + i]) / 0.25, 0));
  const det = a * c - b * b;
  return { target, precision: [a, b, c], det, middle: [(c * u - b * v) / det, (a * v - b * u) / det] };
}

test("of a line the mode is the posterior's mean, and Laplace's band is exact", () => {
  const { target, precision, det, middle } = linear(),
    { position } = Methods.best(finish(Methods.ensemble(target)));
  middle.forEach((value, k) => near(position[k], value, 1e-4, "mode"));
  const { mean, epistemic, aleatoric, members } = Methods.laplace(target, { position }, Float64Array.of(1, 0, 2, -1));
  near(epistemic[0], precision[2] / det, 1e-6, "variance");
  near(epistemic[1], (4 * precision[2] + 4 * precision[1] + precision[0]) / det, 1e-6, "variance");
  near(mean[0], middle[0], 1e-4, "mean");
  assert.equal(aleatoric[1], 0.25);
  const spread = members.reduce((sum, p) => sum + (p[0] - mean[0]) ** 2, 0) / members.length / epistemic[0];
  assert.ok(spread > 0.3 && spread < 2.5, `${spread}: twenty draws, chi-squared`);
});

test("of a line mean field finds the mean, and a variance of each weight given the other", () => {
  const { target, precision, det, middle } = linear(),
    found = finish(Methods.meanField(target, new Float64Array(2)));
  middle.forEach((value, k) => near(found.middle[k], value, 0.03, "mean"));
  [precision[0], precision[2]].forEach((p, k) => near(found.logSd[k], -0.5 * Math.log(p), 0.12, "log sd"));
  assert.ok(precision[2] / det > 2 / precision[0], "the posterior itself is wider: by more than that");
});

test("the prior says one half on average, and five networks are five", () => {
  const target = State.targetOf(State.complete(State.presets.start)),
    x = Float64Array.of(1, 0, -1, 2);
  const prior = finish(Methods.fit("prior", target, x)),
    five = finish(Methods.fit("ensemble", target, x)),
    one = finish(Methods.fit("map", target, x));
  prior.mean.forEach((p) => near(p, 0.5, 0.18, "prior: five standard errors of two hundred draws"));
  assert.equal(five.members.length, 5);
  assert.ok(five.members.some((p) => p[0] === one.mean[0]), "MAP is the best of them");
  assert.ok(one.epistemic.every((v) => v < 1e-12) && five.epistemic.some((v) => v > 1e-9));
  assert.throws(() => finish(Methods.fit("nothing", target, x)), /method: given nothing/);
});

test("the truth scores as well as it says, and a score counts what it should", () => {
  for (const set of ["moons", "spiral"]) {
    const { x, y } = PlaygroundData.fresh({ set, spread: 0.3 }),
      mean = PlaygroundData.truth({ set, spread: 0.3 }, x),
      { says, right } = PlaygroundData.score(y, { mean }, false);
    near(right, says, 5 * Math.sqrt(0.25 / y.length), set);
    const other = PlaygroundData.score(y, { mean: mean.map((p) => 1 - p) }, false);
    near(other.right, 1 - right, 1e-9, "turned round");
  }
  const { x, y } = PlaygroundData.fresh({ set: "wave", spread: 0.2 }),
    of = (sd) => ({ mean: PlaygroundData.truth({ set: "wave", spread: 0.2 }, x), epistemic: x.map(() => 0), aleatoric: x.map(() => sd * sd) });
  near(PlaygroundData.score(y, of(0.2), true).right, 0.95, 5 * Math.sqrt(0.0475 / 2000), "band");
  near(PlaygroundData.score(y, of(0.1), true).right, 0.673, 0.053, "half the band");
});
