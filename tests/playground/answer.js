// Answers tests/test_playground.py: JSON on standard input, JSON on standard output.
"use strict";
const Playground = require("../../playground/engine.js"),
  Group = require("../../playground/group.js"),
  Methods = require("../../playground/methods.js"),
  PlaygroundData = require("../../playground/data.js"),
  Diagnostics = require("../../playground/diagnostics.js");
const { sample, broken } = require("./common.js");

/** What a method's generator returns at its end. */
function finish(steps) {
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}
const lists = (found) => Object.fromEntries(Object.entries(found).map(([name, list]) => [name, Array.from(list)]));

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
  /** Modes of the five networks, and where they started. */
  ensemble({ spec }) {
    const target = Playground.target(spec);
    const starts = [0, 1, 2, 3, 4].map((i) => Array.from(Methods.drawn(target, 1, 100 + i)));
    return { starts, modes: finish(Methods.ensemble(target)).map(({ position }) => Array.from(position)) };
  },
  /** Laplace's averages at points, linear round a position. */
  laplace({ spec, position, grid }) {
    const { mean, epistemic, aleatoric } = Methods.laplace(Playground.target(spec), { position: Float64Array.from(position) }, Float64Array.from(grid));
    return lists({ mean, epistemic, aleatoric });
  },
  /** A mean-field fit, and the noise that it drew. */
  meanField({ spec, start, settings }) {
    const target = Playground.target(spec),
      { normal } = Playground.generator(1, 200);
    const fitted = finish(Methods.meanField(target, Float64Array.from(start), 1, settings));
    return { ...lists(fitted), noise: Array.from({ length: settings.steps * settings.particles * target.size }, normal) };
  },
  /** The generator's own probabilities. */
  truth: ({ state, x }) => Array.from(PlaygroundData.truth(state, x)),
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
