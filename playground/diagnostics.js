/**
 * What the playground's draws say, and how far they may be trusted: averages of predictions; of chains [chain][draw]
 * R-hat and effective sample size, NaN if no chain moves. `draws` are those of sampler.shown(). Needs engine.js.
 */
const Diagnostics = ((engine) => {
  "use strict";
  const { expect, vectors } = engine;
  const sum = (list) => list.reduce((a, b) => a + b, 0);

  /**
   * Collect one number of every draw, of as many draws as all chains hold.
   * @param {function(number): number} valueOf of a row, such as (row) => draws.logDensity[row]
   * @returns {Float64Array[]} [chain][draw], oldest first
   */
  function series({ capacity, made }, valueOf) {
    const length = Math.min(capacity, ...made);
    const row = (c, i) => c * capacity + ((made[c] - length + i) % capacity);
    return Array.from(made, (_, c) => Float64Array.from({ length }, (_, i) => valueOf(row(c, i))));
  }

  /** Halve the chains: a trend within a chain then shows as a difference between two. */
  function halves(chains) {
    const lengths = Array.from(chains, (chain) => chain.length), length = lengths[0] >> 1;
    const same = lengths.every((other) => other === lengths[0]) && length > 3;
    expect(same, "series", `chains of ${lengths} draws`, "one chain or more, of one length, 8 or more");
    return Array.from(chains).flatMap((chain) => [chain.slice(0, length), chain.slice(-length)]);
  }

  /** Mean autocovariance of chains at any lag; variance within chains, and that of a draw of any chain. */
  function moments(chains) {
    const length = chains[0].length, means = chains.map((chain) => sum(chain) / length);
    const mean = sum(means) / chains.length, between = sum(means.map((m) => (m - mean) ** 2)) / (chains.length - 1);
    function covariance(lag) {
      let total = 0;
      chains.forEach((chain, c) => {
        for (let i = 0; i + lag < length; i++) total += (chain[i] - means[c]) * (chain[i + lag] - means[c]);
      });
      return total / length / chains.length;
    }
    const variance = covariance(0);
    return { covariance, within: (variance * length) / (length - 1), total: variance + between };
  }

  /** R-hat as ArviZ's and the book's (Vehtari et al. 2021): of ranks, the larger of those of location and of spread. */
  function rhat(chains) {
    const parts = halves(chains), sorted = Float64Array.from(parts.flatMap((part) => Array.from(part))).sort();
    const middle = (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
    const folded = parts.map((part) => part.map((value) => Math.abs(value - middle)));
    const [location, spread] = [parts, folded].map((of) => moments(normalScores(of)));
    return Math.max(Math.sqrt(location.total / location.within), Math.sqrt(spread.total / spread.within));
  }

  /** Replace values by the normal quantiles of their ranks; equal values share the mean of their ranks. */
  function normalScores(chains) {
    const all = chains.flatMap((chain) => Array.from(chain));
    const order = Array.from(all.keys()).sort((i, j) => all[i] - all[j]);
    const scores = new Float64Array(all.length);
    for (let first = 0, next; first < order.length; first = next) {
      for (next = first + 1; next < order.length && all[order[next]] === all[order[first]];) next++;
      const rank = (first + 1 + next) / 2, score = normalQuantile((rank - 0.375) / (all.length + 0.25));
      for (let i = first; i < next; i++) scores[order[i]] = score;
    }
    return chains.map((chain, c) => scores.slice(c * chain.length, (c + 1) * chain.length));
  }

  /** Quantile of N(0, 1): Newton's steps from the middle never overshoot; its distribution's series: Marsaglia 2004. */
  function normalQuantile(p) {
    let z = 0;
    for (let step = 1; Math.abs(step) > 1e-12; z -= step) {
      const density = Math.exp(-0.5 * z * z) / Math.sqrt(2 * Math.PI);
      let [total, term] = [z, z];
      for (let i = 3; Math.abs(term) > 1e-17; i += 2) total += term *= (z * z) / i;
      step = (0.5 - p) / density + total;
    }
    return z;
  }

  /**
   * Effective sample size of the mean: autocorrelation over all halved chains, cut off by Geyer's monotone pairs, as in
   * ArviZ's method "mean" (Vehtari et al. 2021).
   */
  function effectiveSampleSize(chains) {
    const parts = halves(chains), { covariance, within, total } = moments(parts);
    const length = parts[0].length, numDraws = parts.length * length;
    const correlation = (lag) => 1 - (within - covariance(lag)) / total;
    let [even, odd, least, time] = [1, correlation(1), Infinity, -1];
    for (let lag = 1; lag < length - 3 && even + odd > 0; lag += 2) {
      least = Math.min(least, even + odd);
      time += 2 * least;
      [even, odd] = [correlation(lag + 1), correlation(lag + 2)];
    }
    return numDraws / Math.max(time + Math.max(even, 0), 1 / Math.log10(numDraws));
  }

  /**
   * Predictions of draws at some points, each computed once: weights may change, and nothing is predicted again. The
   * table remembers twice as many draws as there are rows: those that are shown, and those that come next.
   * @param {Float64Array} x points [point, feature], such as a grid
   * @param {number} every predict by every draw, or by one of so many
   * @returns {{update: function, average: function, of: function}}
   */
  function predictionTable(x, every = 1) {
    const entries = new Map(); // by the draw's id
    let key = null;

    function predict(target, position) {
      const p = target.predict(position, x, new Float64Array(x.length / target.numFeatures));
      if (!target.isNormal) for (let n = 0; n < p.length; n++) p[n] = 1 / (1 + Math.exp(-p[n]));
      return { key, p, noise: target.isNormal ? target.noise(position) ** 2 : null };
    }
    const isCurrent = (id) => entries.has(id) && entries.get(id).key === key;
    /**
     * Predict by the draws that are missing, newest first and chains in turn, until the time is up.
     * @returns {number} how many draws are missing still
     */
    function update({ id, made, capacity, positions }, target, { milliseconds = Infinity } = {}) {
      const end = performance.now() + milliseconds;
      let missing = 0;
      key = target.key;
      for (let age = 1; age <= capacity; age++)
        for (let c = 0; c < made.length; c++) {
          const row = c * capacity + ((made[c] - age) % capacity);
          if (made[c] < age || id[row] % every || isCurrent(id[row])) continue;
          if (performance.now() >= end) missing++;
          else entries.set(id[row], predict(target, positions.subarray(row * target.size, (row + 1) * target.size)));
        }
      for (const oldest of entries.keys()) if (entries.size > 2 * id.length) entries.delete(oldest);
      return missing;
    }
    /**
     * Average over the draws that have been predicted; the variance of a label is epistemic + aleatoric.
     * @param {?Float64Array} weights [row], not negative; null: all alike
     * @returns {{mean: Float64Array, epistemic: Float64Array, aleatoric: Float64Array, chains: Float64Array[]}} mean of
     *   the probability of label 1, or of the means [point]; variance over draws of the same; mean of p(1 - p), or of
     *   the squared noise; and the first of each chain alone [chain][point]
     */
    function average({ id, made, capacity }, weights = null) {
      const rows = Array.from(id.keys()).filter((row) => isCurrent(id[row]));
      expect(rows.length, "draws", 0, "one that update has predicted, or more");
      const numPoints = of(id[rows[0]]).length, [mean, square] = vectors(2, numPoints);
      const chains = vectors(made.length, numPoints), totals = new Float64Array(made.length);
      let squaredNoise = null;
      for (const row of rows) {
        const { p, noise } = entries.get(id[row]), c = Math.floor(row / capacity), chain = chains[c];
        const weight = weights ? weights[row] : 1;
        totals[c] += weight;
        if (noise !== null) squaredNoise += weight * noise;
        for (let n = 0; n < numPoints; n++) {
          const part = weight * p[n];
          chain[n] += part;
          square[n] += part * p[n];
        }
      }
      const total = sum(totals);
      for (const chain of chains) for (let n = 0; n < numPoints; n++) mean[n] += chain[n] / total;
      chains.forEach((chain, c) => chain.forEach((_, n) => (chain[n] /= totals[c])));
      const epistemic = mean.map((m, n) => Math.max(0, square[n] / total - m * m)); // rounding might leave less than 0
      const aleatoric = mean.map((m, n) => (squaredNoise === null ? m - square[n] / total : squaredNoise / total));
      return { mean, epistemic, aleatoric, chains };
    }
    /** The predictions [point] of one draw, by its id; undefined if they are missing. */
    const of = (id) => (isCurrent(id) ? entries.get(id).p : undefined);
    return { update, average, of };
  }

  return { series, rhat, effectiveSampleSize, predictionTable };
})(typeof Playground === "undefined" ? require("./engine.js") : Playground); // a page loads it first; Node here
if (typeof module !== "undefined") module.exports = Diagnostics;
