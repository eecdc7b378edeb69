// The proof that a file carries in its metadata; docs/reference/files.md describes its entries.

import ort from 'onnxruntime-node';
import { refuse } from './metadata.mjs';
import { planOf, storedArrays } from './plan.mjs';

export const MAPS = ['label', 'confidence', 'entropy', 'disagreement'];
const scalar = (value) => new ort.Tensor('float32', Float32Array.of(value), [1, 1]);

// Runs the proof; returns the differences by the names of the bounds, the bounds, and whether all are within them.
export async function verify(client) {
  const plan = planOf(client.props);
  const stored = storedArrays(client.props, plan, client, MAPS);
  // Each stored value, of `parts` numbers, `block` times along both axes, cut to h x w; `change` gets value, x, y and
  // the number of the part.
  const enlarged = (Type, name, number, block, [h, w], parts, change = (value) => value) => {
    const [from, to] = [stored[name], new Type(h * w * parts)];
    const [rows, columns] = [Math.ceil(h / block), Math.ceil(w / block)];
    for (let y = 0, at = 0; y < h; y++) {
      for (let x = 0; x < w; x++) {
        const place = (number * rows + Math.floor(y / block)) * columns + Math.floor(x / block);
        for (let part = 0; part < parts; part++) to[at++] = change(from[place * parts + part], x, y, part);
      }
    }
    return to;
  };
  const run = (turn) => {
    const [frame, gap, reset] = plan.turns[turn];
    const inputs = { gap: scalar(gap), reset: scalar(reset) };
    const pixels = enlarged(Uint8Array, 'frame', frame, plan.block, client.size, 3);
    inputs.frame = new ort.Tensor('uint8', pixels, [1, ...client.size, 3]);
    if (client.motion) {
      const [block, size] = [plan.motion_block, client.stateSize];
      const moved = (value, x, y, part) => (part ? y : x) + value / 32;
      const motion = enlarged(Float32Array, 'motion', turn, block, size, 2, moved);
      const trust = enlarged(Float32Array, 'trust', turn, block, size, 1, (value) => value / 255);
      inputs.motion = new ort.Tensor('float32', motion, [1, ...size, 2]);
      inputs.trust = new ort.Tensor('float32', trust, [1, ...size]);
    }
    return client.run(inputs);
  };
  const sampled = (outputs, name) => {
    const step = name === 'probability' ? plan.probability_step : plan.map_step;
    const output = name === 'probability' ? client.session.outputNames[MAPS.length] : name; // after the four maps
    const found = outputs[output].data.filter((_, place) => place % step === 0);
    if (found.length !== stored[name].length / (plan.draws ? 1 : plan.turns.length)) {
      refuse('graph', `${name} has not the size of its metadata`);
    }
    return found;
  };
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  let found;
  if (plan.draws) {
    const [expected, variance] = [stored.probability, stored.probability_variance];
    const [sum, squares] = [new Float64Array(expected.length), new Float64Array(expected.length)];
    for (let draw = 0; draw < plan.draws; draw++) {
      let outputs;
      for (const turn of plan.turns.keys()) outputs = await run(turn);
      sampled(outputs, 'probability').forEach((value, at) => ((sum[at] += value), (squares[at] += value * value)));
    }
    const spread = sum.map((value, at) => (squares[at] - (value * value) / plan.draws) / (plan.draws - 1));
    const z2 = [...sum.keys()].filter((at) => spread[at] + variance[at] > 1e-8).map((at) =>
      (sum[at] / plan.draws - expected[at]) ** 2 / ((spread[at] + variance[at]) / plan.draws));
    found = { mean_z2: mean(z2), variance_difference: Math.abs(mean(spread) / mean(variance) - 1) };
  } else {
    const apart = Object.fromEntries([...MAPS, 'probability'].map((name) => [name, []]));
    for (const turn of plan.turns.keys()) {
      const outputs = await run(turn);
      for (const name in apart) {
        const [got, expected] = [sampled(outputs, name), stored[name]];
        got.forEach((value, at) => apart[name].push(Math.abs(value - expected[turn * got.length + at])));
      }
    }
    found = {
      labels_equal: mean(apart.label.map((value) => (value === 0 ? 1 : 0))),
      probability_mean: mean(apart.probability),
      probability_max: apart.probability.reduce((a, b) => Math.max(a, b)),
      map_levels_mean: Math.max(...MAPS.slice(1).map((name) => mean(apart[name]))),
    };
  }
  const within = ([name, value]) => (name === 'labels_equal' ? value >= plan.bounds[name] : value <= plan.bounds[name]);
  return { found, bounds: plan.bounds, holds: Object.entries(found).every(within) };
}
