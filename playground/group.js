/** Several tasks, each with its network, that share a normal prior and so learn from each other; needs engine.js. */
const Group = ((engine) => {
  "use strict";
  const { every, expect } = engine;

  /**
   * The log posterior of all tasks: weight of task t in layer l = mean + sd[l] * offset[t]. Means and offsets are
   * N(0, 1), so that other sds change the likelihood alone; a learnt sd is half-normal, its logarithm sampled.
   * Order: log sds if learnt [layer]; means, as in engine.js's position of one network; offsets [task], in that order.
   * @param {object} spec widths, biases: of every task's network, as in engine.js; tasks: {x, y, weights} each, as
   *   there; one without points, or whose weights are 0, learns from the others alone; sds [layer]: 0 (tasks are
   *   equal) or more, null: learnt; hyperScale: that of the half-normal
   * @returns {object} what engine.js's target returns; predict(position, x, out): x, a Float64Array, is as many parts
   *   of equal length as there are tasks, and part t is predicted by task t; sds(position) [layer]
   */
  function target(spec) {
    const { widths, tasks, sds = null, hyperScale = 1, biases = false } = spec;
    expect(every(tasks, (task) => task) && tasks.length > 0, "tasks", tasks, "one {x, y, weights} or more");
    const scales = Array.from(widths ?? []).slice(1).fill(1), shared = { widths, biases, scales };
    const networks = Array.from(tasks, ({ x, y, weights }) => engine.target({ ...shared, x, y, weights }));
    const isSd = (sd) => sd >= 0 && sd < Infinity, fits = every(sds, isSd) && sds.length === scales.length;
    expect(sds === null || fits, "sds", sds, "one a layer, 0 or more; null: learnt");
    expect(hyperScale > 0 && hyperScale < Infinity, "hyperScale", hyperScale, "a positive number");
    const numTasks = networks.length, { size: numWeights, numFeatures } = networks[0];
    const start = sds === null ? scales.length : 0, size = start + numWeights * (1 + numTasks); // means begin at start
    const sizes = scales.map((_, l) => (widths[l] + (biases ? 1 : 0)) * widths[l + 1]);
    const layer = Uint8Array.from(sizes.flatMap((count, l) => new Array(count).fill(l))); // [weight]
    const sd = Float64Array.from(sds ?? scales), [weights, slopes] = [0, 1].map(() => new Float64Array(numWeights));
    const ofNormal = 0.5 * Math.log(2 * Math.PI), ofSd = Math.log(2 / hyperScale) - ofNormal;

    function readSds(position) {
      for (let l = 0; l < start; l++) sd[l] = Math.exp(position[l]);
    }
    function readWeights(position, t) {
      for (let k = 0, o = start + (1 + t) * numWeights; k < numWeights; k++, o++)
        weights[k] = position[start + k] + sd[layer[k]] * position[o];
      return weights;
    }
    function logLikelihood(position) {
      readSds(position);
      let total = 0;
      for (let t = 0; t < numTasks; t++) total += networks[t].logLikelihood(readWeights(position, t));
      return total;
    }
    function logDensity(position, gradient) {
      readSds(position);
      let value = start * ofSd - (size - start) * ofNormal;
      for (let l = 0; l < start; l++) value += position[l] - 0.5 * (sd[l] / hyperScale) ** 2;
      for (let k = start; k < size; k++) value -= 0.5 * position[k] * position[k];
      if (!gradient) return value + logLikelihood(position);
      for (let l = 0; l < start; l++) gradient[l] = 1 - (sd[l] / hyperScale) ** 2;
      for (let k = start; k < size; k++) gradient[k] = -position[k];
      for (let t = 0; t < numTasks; t++) {
        value += networks[t].logDensity(readWeights(position, t), slopes) + numWeights * ofNormal;
        for (let k = 0, o = start + (1 + t) * numWeights; k < numWeights; k++, o++) {
          const l = layer[k], slope = slopes[k] + weights[k]; // of the likelihood: less that of the network's own prior
          value += 0.5 * weights[k] * weights[k];
          gradient[start + k] += slope;
          gradient[o] += sd[l] * slope;
          if (start) gradient[l] += sd[l] * position[o] * slope;
        }
      }
      return value;
    }
    function predict(position, x, out) {
      const count = out.length / numTasks, part = (list, length, t) => list.subarray(t * length, (t + 1) * length);
      expect(Number.isInteger(count), "out", `${out.length} predictions`, `a multiple of ${numTasks}, the tasks`);
      readSds(position);
      for (let t = 0; t < numTasks; t++)
        networks[t].predict(readWeights(position, t), part(x, count * numFeatures, t), part(out, count, t));
      return out;
    }
    const sdsOf = (position) => Array.from(sd, (fixed, l) => (start ? Math.exp(position[l]) : fixed));
    const key = JSON.stringify(["group", widths, biases, numTasks, start ? null : Array.from(sd)]);
    const ofLabels = { isNormal: false, noise: () => null };
    return { size, logDensity, logLikelihood, predict, key, numFeatures, ...ofLabels, sds: sdsOf };
  }
  return { target };
})(typeof Playground === "undefined" ? require("./engine.js") : Playground); // a page loads engine.js first; Node here
if (typeof module !== "undefined") module.exports = Group;
