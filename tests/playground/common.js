// What the tests of engine.js and of group.js share.
"use strict";
const assert = require("node:assert/strict"),
  fs = require("node:fs"),
  path = require("node:path");
const Diagnostics = require("../../playground/diagnostics.js");

/** The text of a file of the playground. */
const read = (name) => fs.readFileSync(path.join(__dirname, "../../playground", name), "utf8");

const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
const variance = (list, m = mean(list)) => mean(list.map((v) => (v - m) ** 2));
const near = (found, expected, bound, what = "") =>
  assert.ok(Math.abs(found - expected) <= bound, `${what}: ${found}, expected ${expected} +- ${bound}`);
const normals = (random, length, scale = 1) => Float64Array.from({ length }, () => scale * random.normal());

/** Mean of [chain][draw], its standard error from the effective sample size, and that. */
function estimate(chains) {
  const all = chains.flatMap((chain) => Array.from(chain)),
    ess = Math.min(Diagnostics.effectiveSampleSize(chains), all.length);
  return { value: mean(all), error: Math.sqrt(variance(all) / ess), ess };
}

/** Draws [chain][draw] of each quantity of a position, after warm-up. */
function sample(engine, target, quantities, { draws = 1000, ...options } = {}) {
  const sampler = engine.sampler(target, { capacity: draws, ...options });
  sampler.advance({ transitions: 4 * (300 + draws) });
  const { draws: held, kind } = sampler.shown(),
    rows = new Map();
  assert.equal(kind, "fresh");
  const of = (row) => {
    if (!rows.has(row)) rows.set(row, quantities(held.positions.subarray(row * target.size, (row + 1) * target.size)));
    return rows.get(row);
  };
  return Array.from(of(0), (_, q) => Diagnostics.series(held, (row) => of(row)[q]));
}

/** The engine with its source changed, for twins that are broken on purpose. */
function broken(...changes) {
  let text = read("engine.js");
  for (const [from, to] of changes) {
    assert.equal(text.split(from).length, 2, `found once: ${from}`);
    text = text.replace(from, () => to);
  }
  const module = { exports: {} };
  new Function("module", text)(module);
  return module.exports;
}

module.exports = { read, mean, near, normals, estimate, sample, broken };
