/**
 * Other ways to fit a target of engine.js: one network, several, Laplace's method, mean field, the prior. Each is a
 * generator that yields its progress, 0 to 1, so that a page can stop and go on. Needs engine.js; no DOM.
 */
const Methods = ((engine) => {
  "use strict";
  const { generator, vectors, expect } = engine;
  const logistic = (z) => 1 / (1 + Math.exp(-z));
  const NETWORKS = 5, MOST = 200; // of an ensemble; draws that stand for a distribution
  const CLIMB = { steps: 1000, rate: 0.05 }, ELBO = { steps: 1500, rate: 0.05, particles: 4, start: 0.1 };

  /** Adam upwards (Kingma and Ba 2015), rate falling to 0 along half a cosine, gradients of norm 10 at most: the book's
   *  training.clipped_adam. */
  function adam(size, rate, steps) {
    const [first, second] = vectors(2, size);
    let count = 0;
    return (vector, gradient) => {
      const now = 0.5 * rate * (1 + Math.cos((Math.PI * count++) / steps)), norm = Math.hypot(...gradient);
      const clip = norm < 10 ? 1 : 10 / norm;
      for (let k = 0; k < size; k++) {
        first[k] += 0.1 * (clip * gradient[k] - first[k]);
        second[k] += 0.001 * ((clip * gradient[k]) ** 2 - second[k]);
        const spread = Math.sqrt(second[k] / (1 - 0.999 ** count)) + 1e-8;
        vector[k] += (now * first[k]) / (1 - 0.9 ** count) / spread;
      }
    };
  }

  /** A place drawn from N(0, 1), the prior of what engine.js samples; a noise's logarithm starts there, too. */
  function drawn(target, seed, stream) {
    const random = generator(seed, stream);
    return Float64Array.from({ length: target.size }, () => random.normal());
  }

  /** Climb the log posterior from a place; return the mode {position, value} near which that ends. */
  function* climb(target, start, { steps, rate } = CLIMB) {
    const position = Float64Array.from(start), gradient = new Float64Array(target.size);
    const move = adam(target.size, rate, steps);
    for (let s = 0; s < steps; s++) {
      target.logDensity(position, gradient);
      move(position, gradient);
      if (s % 20 === 0) yield s / steps;
    }
    return { position, value: target.logDensity(position, null) };
  }

  /** Climb from five draws of the prior. */
  function* ensemble(target, seed = 1) {
    const found = [];
    for (let i = 0; i < NETWORKS; i++) {
      const climbing = climb(target, drawn(target, seed, 100 + i));
      let step = climbing.next();
      for (; !step.done; step = climbing.next()) yield (i + step.value) / NETWORKS;
      found.push(step.value);
    }
    return found;
  }
  const best = (modes) => modes.reduce((a, b) => (b.value > a.value ? b : a));

  /** Derivatives of the outputs at points by the weights [weight][point]: central differences, right to nine digits. */
  function jacobian(target, position, x) {
    const moved = Float64Array.from(position), count = x.length / target.numFeatures, width = 1e-5;
    const at = (k, by) => {
      moved[k] = position[k] + by;
      return target.predict(moved, x, new Float64Array(count));
    };
    return Array.from(position, (_, k) => {
      const [high, low] = [at(k, width), at(k, -width)];
      moved[k] = position[k];
      return high.map((value, n) => (value - low[n]) / (2 * width));
    });
  }

  /** Lower triangle L [row][column] of a positive matrix = L L'. */
  function cholesky(matrix) {
    const root = vectors(matrix.length, matrix.length);
    for (let i = 0; i < matrix.length; i++)
      for (let j = 0; j <= i; j++) {
        let rest = matrix[i][j];
        for (let k = 0; k < j; k++) rest -= root[i][k] * root[j][k];
        root[i][j] = i === j ? Math.sqrt(rest) : rest / root[j][j];
      }
    return root;
  }

  /** Precision at a mode: Gauss and Newton's matrix of the likelihood plus the prior's 1; a learnt noise stays. */
  function curvature(target, position) {
    const { observed, powers, size, isNormal } = target, slopes = jacobian(target, position, observed);
    const outputs = target.predict(position, observed, new Float64Array(powers.length));
    const of = (z) => (isNormal ? 1 / target.noise(position) ** 2 : logistic(z) * logistic(-z));
    const curved = outputs.map((z, n) => powers[n] * of(z)), precision = vectors(size, size);
    for (let i = 0; i < size; i++)
      for (let j = 0; j < size; j++)
        precision[i][j] = slopes[i].reduce((sum, a, n) => sum + a * slopes[j][n] * curved[n], i === j ? 1 : 0);
    return precision;
  }

  /** A grid of the standard normal to 6 sds, so near that steep logistic curves are met, too. */
  const NODES = Array.from({ length: 193 }, (_, i) => (i - 96) / 16);
  const WEIGHTS = NODES.map((z) => Math.exp(-0.5 * z * z)), TOTAL = WEIGHTS.reduce((a, b) => a + b);

  /** Laplace's method: outputs linear in the weights round the mode, their distribution normal (Immer et al. 2021). */
  function laplace(target, { position }, x, seed = 1) {
    const root = cholesky(curvature(target, position)), { size, isNormal } = target;
    const slopes = jacobian(target, position, x), count = slopes[0].length,
      [variance, mean, square] = vectors(3, count);
    const middle = target.predict(position, x, new Float64Array(count)), solved = vectors(size, count);
    for (let i = 0; i < size; i++) { // forward substitution for all points at once
      for (let n = 0; n < count; n++) solved[i][n] = slopes[i][n];
      for (let j = 0; j < i; j++) for (let n = 0; n < count; n++) solved[i][n] -= root[i][j] * solved[j][n];
      for (let n = 0; n < count; n++) variance[n] += (solved[i][n] /= root[i][i]) ** 2;
    }
    const random = generator(seed, 300), squash = (z) => (isNormal ? z : logistic(z));
    const members = Array.from({ length: 20 }, () => {
      const out = Float64Array.from(middle);
      for (let i = 0; i < size; i++) {
        const z = random.normal();
        for (let n = 0; n < count; n++) out[n] += z * solved[i][n];
      }
      return out.map(squash);
    });
    if (isNormal) {
      const aleatoric = new Float64Array(count).fill(target.noise(position) ** 2);
      return { mean: middle, epistemic: variance, aleatoric, members };
    }
    NODES.forEach((z, i) => {
      for (let n = 0; n < count; n++) {
        const p = logistic(middle[n] + z * Math.sqrt(variance[n])), part = (WEIGHTS[i] / TOTAL) * p;
        mean[n] += part;
        square[n] += part * p;
      }
    });
    const epistemic = square.map((s, n) => s - mean[n] ** 2), aleatoric = square.map((s, n) => mean[n] - s);
    return { mean, epistemic, aleatoric, members };
  }

  /**
   * Mean field: a normal for every weight alone, by reparametrised gradients of the ELBO (Kingma and Welling 2014).
   * @returns {{middle: Float64Array, logSd: Float64Array}} of the standardised weights
   */
  function* meanField(target, start, seed = 1, { steps, rate, particles, start: width } = ELBO) {
    const { size } = target, random = generator(seed, 200), [position, gradient, noise] = vectors(3, size);
    const both = new Float64Array(2 * size), slope = new Float64Array(2 * size), move = adam(2 * size, rate, steps);
    both.set(start);
    both.fill(Math.log(width), size);
    for (let s = 0; s < steps; s++) {
      slope.fill(0, 0, size).fill(1, size); // of the normal's entropy
      for (let m = 0; m < particles; m++) {
        for (let k = 0; k < size; k++) noise[k] = random.normal();
        for (let k = 0; k < size; k++) position[k] = both[k] + Math.exp(both[size + k]) * noise[k];
        target.logDensity(position, gradient);
        for (let k = 0; k < size; k++) {
          slope[k] += gradient[k] / particles;
          slope[size + k] += (gradient[k] * noise[k] * Math.exp(both[size + k])) / particles;
        }
      }
      move(both, slope);
      if (s % 10 === 0) yield s / steps;
    }
    return { middle: both.slice(0, size), logSd: both.slice(size) };
  }

  /** Average predictions of networks at points: {mean, epistemic, aleatoric, members}, members the first twenty's. */
  function* mixture(target, positions, x) {
    const count = x.length / target.numFeatures, [mean, square] = vectors(2, count), members = [];
    let noise = 0;
    for (const [i, position] of positions.entries()) {
      const p = target.predict(position, x, new Float64Array(count)), share = 1 / positions.length;
      if (!target.isNormal) for (let n = 0; n < count; n++) p[n] = logistic(p[n]);
      if (target.isNormal) noise += share * target.noise(position) ** 2;
      for (let n = 0; n < count; n++) {
        mean[n] += share * p[n];
        square[n] += share * p[n] * p[n];
      }
      if (i < 20) members.push(p);
      yield i / positions.length;
    }
    const epistemic = mean.map((m, n) => Math.max(0, square[n] - m * m));
    return { mean, epistemic, aleatoric: mean.map((m, n) => (target.isNormal ? noise : m - square[n])), members };
  }

  const several = (draw) => Array.from({ length: MOST }, (_, i) => draw(i));
  /** What a method predicts at points. */
  function* fit(method, target, x, seed = 1) {
    expect(Object.hasOwn(names, method) && method !== "posterior", "method", method, Object.keys(names).join(", "));
    if (method === "prior") return yield* mixture(target, several((i) => drawn(target, seed, 1000 + i)), x);
    if (method === "meanfield") {
      const { middle, logSd } = yield* meanField(target, new Float64Array(target.size), seed);
      const random = generator(seed, 400), draw = () => middle.map((m, k) => m + Math.exp(logSd[k]) * random.normal());
      return yield* mixture(target, several(draw), x);
    }
    const modes = yield* ensemble(target, seed);
    if (method === "laplace") return laplace(target, best(modes), x, seed);
    const chosen = method === "map" ? [best(modes)] : modes;
    return yield* mixture(target, chosen.map(({ position }) => position), x);
  }
  const names = {
    map: "One network (MAP)", ensemble: "Ensemble of five", laplace: "Laplace", meanfield: "Mean field",
    posterior: "The posterior", prior: "The prior",
  };
  return { names, fit, climb, ensemble, best, jacobian, curvature, laplace, meanField, drawn };
})(typeof Playground === "undefined" ? require("./engine.js") : Playground);
if (typeof module !== "undefined") module.exports = Methods;
