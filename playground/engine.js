/** Hamiltonian Monte Carlo on small tanh networks, in slices of time between the frames of a page; no DOM. */
const Playground = (() => {
  "use strict";
  const isPositive = (number) => number > 0 && number < Infinity;
  const isCount = (number) => Number.isInteger(number) && number > 0;
  const every = (list, test) => typeof list === "object" && list !== null && Array.prototype.every.call(list, test);
  const vectors = (count, length) => Array.from({ length: count }, () => new Float64Array(length));
  function expect(right, name, given, expected) {
    if (!right) throw new Error(`${name}: given ${given}, expected ${expected}`);
  }

  /** Math.tanh to 1e-15, in half its time: a quotient of polynomials (Pade's) of x / 8, doubled thrice; 1 at 20. */
  function tanh(x) {
    const z = Math.min(Math.max(x, -20), 20) / 8, s = z * z;
    let t = (z * (135135 + s * (17325 + s * (378 + s)))) / (135135 + s * (62370 + s * (3150 + s * 28)));
    for (let k = 0; k < 3; k++) t = (2 * t) / (1 + t * t);
    return t;
  }

  /** sfc32 (Doty-Humphrey, PractRand) of two integers: uniform() in (0, 1); normal(), N(0, 1) by Box and Muller. */
  function generator(seed, stream = 0) {
    expect(Number.isInteger(seed) && Number.isInteger(stream), "seed, stream", [seed, stream], "integers");
    let [a, b, c, counter] = [seed | 0, stream | 0, Math.floor(seed / 2 ** 32) | 0, 1];
    function uniform() {
      const next = (a + b + counter++) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = (((c << 21) | (c >>> 11)) + next) | 0;
      return ((next >>> 0) + 0.5) / 2 ** 32;
    }
    for (let i = 0; i < 20; i++) uniform(); // near seeds take some rounds to part
    return { uniform, normal: () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()) };
  }

  /**
   * The log posterior of a tanh network at a standardised position: weight = scale of its layer * entry, the entry
   * N(0, 1), so that other scales change the likelihood alone. Order as JAX's ravel_pytree: log noise if learnt; of
   * each layer the biases, then the kernel [input, unit]. A learnt noise is half-Cauchy with median noiseScale.
   * @param {object} spec widths: units from input to output, the last 1; scales: prior sd of each layer; x: inputs
   *   [point, feature]; y: labels 0 and 1, or measurements [point]; weights: powers of their likelihoods, 0 to 1;
   *   biases: boolean; likelihood: "bernoulli", "normal"; noise: sd, null: learnt; noiseScale: both in units of y
   * @returns {object} size: of a position; logDensity(position, gradient): nats, with constants and Jacobian, fills the
   *   gradient unless null; logLikelihood(position): nats; predict(position, x, out): logits or means [point];
   *   noise(position): sd; key: a string, equal for targets of equal predictions; isNormal; numFeatures
   */
  function target(spec) {
    const { widths, scales, x, biases = false, likelihood = "bernoulli", noise = null, noiseScale = 0.5 } = spec;
    const isNormal = likelihood === "normal", learnt = isNormal && noise === null ? 1 : 0;
    expect(every(widths, isCount) && widths.length > 1 && widths.at(-1) === 1, "widths", widths, "counts, the last 1");
    expect(every(scales, isPositive) && scales.length === widths.length - 1, "scales", scales, "one a layer, above 0");
    const known = isNormal ? learnt || isPositive(noise) : likelihood === "bernoulli" && noise === null;
    expect(known && isPositive(noiseScale), "likelihood", [likelihood, noise, noiseScale], "bernoulli; normal, sd > 0");
    const fits = isNormal ? Number.isFinite : (label) => label === 0 || label === 1;
    expect(every(spec.y, fits), "y", spec.y, isNormal ? "finite numbers" : "labels 0 and 1");
    const y = Float64Array.from(spec.y), numPoints = y.length, numFeatures = widths[0];
    const isWhole = every(x, Number.isFinite) && x.length === numPoints * numFeatures;
    expect(isWhole, "x", x, `${numPoints} x ${numFeatures} finite numbers`);
    const isShare = (power) => power >= 0 && power <= 1, powers = Float64Array.from(spec.weights ?? y.map(() => 1));
    expect(every(powers, isShare) && powers.length === numPoints, "weights", powers, `${numPoints} from 0 to 1`);
    // [unit, point] everywhere, so that innermost loops run over points; computing a density allocates nothing.
    const block = Math.max(numPoints, 64), extra = biases ? 1 : 0; // a bias is the weight of a first unit that is 1
    const [values, slopes] = [0, 1].map(() => widths.map((width) => new Float64Array((width + extra) * block)));
    const output = values[scales.length], slope = slopes[scales.length], observed = Float64Array.from(x);
    let size = learnt;
    const layers = Array.from(scales, (scale, l) => {
      const [inputs, units, start, hidden] = [widths[l] + extra, widths[l + 1], size, l < scales.length - 1];
      size += inputs * units;
      const [from, to, before, after] = [values[l], values[l + 1], slopes[l], slopes[l + 1]];
      return { inputs, units, start, scale, from, to, before, after, hidden, shift: hidden ? extra : 0 };
    });
    const backward = layers.slice().reverse(), sdOf = (position) => (learnt ? Math.exp(position[0]) : noise);
    function forward(position, x, first, count) {
      for (let i = 0; i < numFeatures; i++)
        for (let n = 0; n < count; n++) values[0][(i + extra) * count + n] = x[(first + n) * numFeatures + i];
      for (const { inputs, units, start, scale, from, to, hidden, shift } of layers) {
        if (biases) from.fill(1, 0, count);
        for (let j = 0, b = shift * count; j < units; j++, b += count) {
          for (let n = 0; n < count; n++) to[b + n] = 0;
          for (let i = 0, a = 0; i < inputs; i++, a += count) {
            const weight = scale * position[start + i * units + j];
            for (let n = 0; n < count; n++) to[b + n] += weight * from[a + n];
          }
          if (hidden) for (let n = 0; n < count; n++) to[b + n] = tanh(to[b + n]);
        }
      }
    }
    /** Also leaves its derivatives by the outputs in slope. */
    function logLikelihood(position) {
      forward(position, observed, 0, numPoints);
      const sd = sdOf(position), constant = isNormal ? Math.log(sd) + 0.5 * Math.log(2 * Math.PI) : 0;
      let total = 0;
      for (let n = 0; n < numPoints; n++) {
        const z = isNormal ? (y[n] - output[n]) / sd : (2 * y[n] - 1) * output[n];
        const small = isNormal ? 0 : Math.exp(-Math.abs(z)); // never overflows
        total += powers[n] * (isNormal ? -0.5 * z * z - constant : Math.min(z, 0) - Math.log1p(small));
        slope[n] = powers[n] * (isNormal ? z / sd : ((2 * y[n] - 1) * (z > 0 ? small : 1)) / (1 + small));
      }
      return total;
    }
    function logDensity(position, gradient) {
      const ratio = learnt ? sdOf(position) / noiseScale : 0;
      let value = logLikelihood(position) - 0.5 * (size - learnt) * Math.log(2 * Math.PI);
      for (let k = learnt; k < size; k++) value -= 0.5 * position[k] * position[k];
      if (learnt) value += Math.log(2 / (Math.PI * noiseScale)) - Math.log1p(ratio * ratio) + position[0];
      if (!gradient) return value;
      for (let k = learnt; k < size; k++) gradient[k] = -position[k];
      if (learnt) gradient[0] = 1 - 2 / (1 + 1 / (ratio * ratio));
      for (let n = 0; learnt && n < numPoints; n++) gradient[0] += slope[n] * (y[n] - output[n]) - powers[n];
      for (const { inputs, units, start, scale, from, before, after, shift } of backward)
        for (let i = 0, a = 0; i < inputs; i++, a += numPoints) {
          for (let n = 0; n < numPoints; n++) before[a + n] = 0;
          for (let j = 0, b = shift * numPoints; j < units; j++, b += numPoints) {
            const k = start + i * units + j, weight = scale * position[k];
            let total = 0;
            for (let n = 0; n < numPoints; n++) {
              total += after[b + n] * from[a + n];
              before[a + n] += weight * after[b + n];
            }
            gradient[k] += scale * total;
          }
          for (let n = 0; n < numPoints; n++) before[a + n] *= 1 - from[a + n] * from[a + n]; // of tanh
        }
      return value;
    }
    function predict(position, x, out) {
      for (let first = 0; first < out.length; first += block) {
        const count = Math.min(block, out.length - first);
        forward(position, x, first, count);
        for (let n = 0; n < count; n++) out[first + n] = output[n];
      }
      return out;
    }
    const key = JSON.stringify([widths, biases, Array.from(scales), likelihood, noise]);
    return { size, logDensity, logLikelihood, predict, noise: sdOf, key, isNormal, numFeatures, observed, powers };
  }

  /**
   * Hamiltonian Monte Carlo (Neal 2011) on any {size, logDensity(position, gradient)}: with 1 to 2 m - 1 steps, each as
   * likely, m = trajectory / learnt step size; with metric 1, since a learnt diagonal gave no more effective draws.
   * @param {object} options chains; seed; capacity: draws kept of each chain; warmUp, renewal: transitions of each that
   *   tune its step size, at first and after a change; enough: draws of each that settle a target; maxSteps: largest m;
   *   trajectory: mean length, in prior sds; acceptance: what its mean is tuned to; start: a place for all chains
   */
  function sampler(first, { start = null, ...options } = {}) {
    const counts = { chains: 4, seed: 1, capacity: 250, warmUp: 300, renewal: 150, enough: 50, maxSteps: 64 };
    const sizes = { trajectory: 1, acceptance: 0.8 }, settings = { ...sizes, ...counts, ...options };
    for (const [name, value] of Object.entries(settings))
      expect(name in counts ? isCount(value) : name in sizes && isPositive(value), name, value, "an option, above 0");
    let target, chains, fresh, tuned, settled, weights, worth, rounds, tuning, turn, imposed = null, serial = 0;
    /** Each chain's last draws: row = chain * capacity + number made before % capacity; id 0: no draw. */
    function noDraws() {
      const [id, logDensity, logLikelihood] = vectors(3, settings.chains * capacity);
      const [made, accepted] = vectors(2, settings.chains), positions = new Float64Array(id.length * target.size);
      return { capacity, made, accepted, divergences: 0, id, logDensity, logLikelihood, positions };
    }
    /** Tune for a target from the positions and step sizes that there are; where none fit, from draws of the prior. */
    function tune(newTarget, length) {
      expect(isCount(newTarget?.size), "target.size", newTarget?.size, "an integer above 0");
      if (newTarget.size !== target?.size) {
        [settled, length] = [null, settings.warmUp];
        chains = Array.from({ length: settings.chains }, (_, c) => {
          const [empty, gradient, trial, slope, momentum] = vectors(5, newTarget.size), logAverage = Math.log(0.1);
          const random = generator(settings.seed, c + 1), position = empty.map((_, k) => start?.[k] ?? random.normal());
          return { random, position, gradient, trial, slope, momentum, logAverage };
        });
      }
      target = newTarget;
      for (const chain of chains) {
        chain.density = target.logDensity(chain.position, chain.gradient);
        expect(Number.isFinite(chain.density), "log density", chain.density, "a finite number where a chain is");
        Object.assign(chain, { anchor: chain.logAverage, logStep: chain.logAverage, error: 0, count: 0 });
      }
      [tuning, rounds, turn, weights, tuned, fresh] = [length, 0, 0, null, null, noDraws()];
    }
    const phase = () => (imposed !== null ? "imposed" : rounds < tuning ? "warm-up" : "sampling");
    const learnt = (chain) => Math.exp(rounds < tuning ? chain.logStep : chain.logAverage);
    const { capacity, enough } = settings, held = (draws = fresh) => Math.min(capacity, ...draws.made);
    function transition(c) {
      const chain = chains[c], { random, position, gradient, trial, slope, momentum } = chain, { size } = target;
      const step = imposed ?? learnt(chain), mean = Math.ceil(settings.trajectory / learnt(chain));
      const numSteps = 1 + Math.floor(random.uniform() * (2 * Math.min(mean, settings.maxSteps) - 1));
      let energy = -chain.density, rise = 0, density = 0;
      for (let k = 0; k < size; k++) energy += 0.5 * (momentum[k] = random.normal()) ** 2;
      trial.set(position);
      slope.set(gradient);
      for (let s = 0; s < numSteps && rise < 1000; s++) {
        for (let k = 0; k < size; k++) trial[k] += step * (momentum[k] += 0.5 * step * slope[k]);
        density = target.logDensity(trial, slope);
        rise = -density - energy;
        for (let k = 0; k < size; k++) rise += 0.5 * (momentum[k] += 0.5 * step * slope[k]) ** 2;
      }
      const diverged = !(rise < 1000), chance = diverged ? 0 : Math.min(1, Math.exp(-rise)); // NaN, too, has diverged
      if (random.uniform() < chance)
        Object.assign(chain, { position: trial, trial: position, gradient: slope, slope: gradient, density });
      if (phase() === "warm-up") { // dual averaging (Hoffman and Gelman 2014), by chain: with one for all, some froze
        chain.error += (settings.acceptance - chance - chain.error) / (++chain.count + 10);
        chain.logStep = chain.anchor - (Math.sqrt(chain.count) / 0.05) * chain.error;
        chain.logAverage += chain.count ** -0.75 * (chain.logStep - chain.logAverage);
      }
      fresh.divergences += diverged;
      keep(c, chance);
    }
    function keep(c, chance) {
      const row = c * capacity + (fresh.made[c]++ % capacity), { position, density } = chains[c];
      fresh.positions.set(position, row * target.size);
      fresh.logLikelihood[row] = target.logLikelihood ? target.logLikelihood(position) : NaN;
      [fresh.id[row], fresh.logDensity[row], fresh.accepted[c]] = [++serial, density, fresh.accepted[c] + chance];
    }
    /** Go on from positions [chain][draw] drawn of this target before, with step sizes and acceptance [chain]. */
    function restore({ positions, stepSize, acceptance }) {
      [rounds, tuned, fresh] = [tuning, null, noDraws()];
      chains.forEach((chain, c) => {
        chain.logAverage = Math.log(stepSize[c]);
        for (const position of positions[c]) {
          chain.position.set(position);
          chain.density = target.logDensity(chain.position, chain.gradient);
          keep(c, acceptance[c]);
        }
      });
    }
    /** Make transitions, one at least, until a limit is reached; return how many. */
    function advance({ transitions = Infinity, milliseconds = Infinity }) {
      expect(Math.min(transitions, milliseconds) < Infinity, "advance", [transitions, milliseconds], "one limit");
      for (let made = 1, begun = performance.now(); ; made++) {
        transition(turn);
        turn = (turn + 1) % chains.length;
        if (turn === 0 && phase() === "warm-up" && ++rounds === tuning) [tuned, fresh] = [fresh, noDraws()];
        if (made >= transitions || performance.now() - begun >= milliseconds) return made;
      }
    }
    /**
     * Go on with another target. Meanwhile the last settled draws are shown, weighted by ratios of the densities at the
     * same standardised position, unless worth fewer than 50: then few carry it all. The chains go on from where they
     * are: they travel, and tune anew. Of 25 step sizes most are wild: acceptances of 0.92 to 0.98; 150: 0.89 to 0.91.
     * @returns {{weights: ?Float64Array, effectiveSampleSize: number}} weights [row], of sum 1; null if dropped
     */
    function retarget(newTarget) {
      if (held() >= enough && shown().kind === "fresh") settled = fresh;
      tune(newTarget, Math.max(settings.renewal, tuning - rounds)); // the first warm-up is not cut short
      if (!settled) return { weights, effectiveSampleSize: 0 };
      const { id, logDensity, positions } = settled, { size } = target;
      const density = (row) => target.logDensity(positions.subarray(row * size, (row + 1) * size), null);
      const logs = logDensity.map((old, row) => (id[row] ? density(row) - old : -Infinity)), top = Math.max(...logs);
      const ratios = logs.map((log) => Math.exp(log - top)), total = ratios.reduce((a, b) => a + b);
      worth = total ** 2 / ratios.reduce((a, b) => a + b * b, 0); // as if the draws were independent
      if (worth >= 50 && imposed === null) weights = ratios.map((ratio) => ratio / total);
      return { weights, effectiveSampleSize: worth };
    }
    /** Use one step size for all chains, whatever comes of it, with as many steps as before; null: those learnt. */
    function imposeStepSize(step) {
      expect(step === null || isPositive(step), "step size", step, "a positive number or null");
      [imposed, tuned, fresh, weights] = [step, null, noDraws(), null];
    }
    /** Draws to average, weights [row] or null, kind ("fresh", "reweighted", "warm-up", "imposed"); next: to follow. */
    function shown() {
      const isTuned = tuned && held() < Math.min(enough, held(tuned)), draws = isTuned ? tuned : fresh;
      const kind = phase() !== "sampling" ? phase() : isTuned ? "warm-up" : "fresh";
      const numDraws = (held(draws) * chains.length) / (kind === "warm-up" ? 2 : 1); // half of those still travelled
      if (weights && numDraws < worth) return { draws: settled, weights, kind: "reweighted", next: fresh };
      return { draws, weights: null, kind, next: fresh };
    }
    /** How it goes; tuned: share of the tuning; draws: of each chain; acceptance and stepSize [chain]; divergences. */
    function state() {
      const acceptance = fresh.accepted.map((total, c) => total / fresh.made[c]), { divergences } = fresh;
      const stepSize = Float64Array.from(chains, (chain) => imposed ?? learnt(chain));
      return { phase: phase(), tuned: rounds / tuning, draws: held(), acceptance, stepSize, divergences };
    }
    tune(first);
    return { advance, retarget, restore, imposeStepSize, shown, state, target: () => target };
  }
  return { generator, target, sampler, every, expect, vectors, tanh };
})();
if (typeof module !== "undefined") module.exports = Playground;
