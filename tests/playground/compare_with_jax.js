// A runner for compare_with_jax.py: JSON on standard input, JSON on standard output.
"use strict";
const Playground = require("../../playground/engine.js"),
  Diagnostics = require("../../playground/diagnostics.js");
const { cases, chains } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const found = cases.map(({ spec, positions, grid }) => {
  const target = Playground.target(spec),
    gradient = new Float64Array(target.size),
    out = new Float64Array(grid.length / spec.widths[0]);
  return positions.map((position) => ({
    value: target.logDensity(position, gradient),
    gradient: Array.from(gradient),
    logLikelihood: target.logLikelihood(position),
    predictions: Array.from(target.predict(position, grid, out)),
  }));
});
const series = chains.map((of) => of.map((chain) => Float64Array.from(chain)));
const diagnosed = series.map((of) => [
  Diagnostics.rhat(of),
  Diagnostics.splitRhat(of),
  Diagnostics.effectiveSampleSize(of),
]);
process.stdout.write(JSON.stringify({ found, diagnosed }));
