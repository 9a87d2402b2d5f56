// Answers tests/test_playground.py: JSON on standard input, JSON on standard output.
"use strict";
const Playground = require("../../playground/engine.js"),
  Group = require("../../playground/group.js"),
  Diagnostics = require("../../playground/diagnostics.js");
const { sample, broken } = require("./common.js");

const answers = {
  /** Densities, gradients and predictions at positions. */
  evaluate({ spec, positions, grid }) {
    const target = (spec.tasks ? Group : Playground).target(spec),
      x = Float64Array.from(grid),
      gradient = new Float64Array(target.size),
      out = new Float64Array(x.length / target.numFeatures);
    return positions.map((position) => ({
      value: target.logDensity(position, gradient),
      gradient: Array.from(gradient),
      logLikelihood: target.logLikelihood(position),
      predictions: Array.from(target.predict(position, x, out)),
    }));
  },
  /** R-hats and effective sample size of chains. */
  diagnose(chains) {
    const series = chains.map((chain) => Float64Array.from(chain));
    return [Diagnostics.rhat(series), Diagnostics.effectiveSampleSize(series)];
  },
  /** Draws [quantity][chain][draw] of probabilities, or of means and noise; of a twin that is changed, if it is. */
  draw({ spec, grid, changes, options }) {
    const engine = changes.length ? broken(...changes) : Playground,
      target = engine.target(spec),
      out = new Float64Array(grid.length / target.numFeatures);
    const quantities = (position) => {
      target.predict(position, grid, out);
      return target.isNormal ? [...out, target.noise(position)] : Array.from(out, (z) => 1 / (1 + Math.exp(-z)));
    };
    return sample(engine, target, quantities, options).map((chains) => chains.map((chain) => Array.from(chain)));
  },
};
const { kind, questions } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(questions.map(answers[kind])));
