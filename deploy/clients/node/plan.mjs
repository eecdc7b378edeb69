// The entries of a file's proof, checked as in `steadyseg verify`: no plan computes for ever or bounds nothing.

import { parse, refuse, whole } from './metadata.mjs';

const PARTS = 'version turns draws block motion_block map_step probability_step bounds reduced_bounds'.split(' ');
const BOUNDS = 'labels_equal probability_mean probability_max map_levels_mean familiarity_max mean_z2 variance_difference';
const MAX_TURNS = 100;

const hasExactly = (value, names) => value !== null && typeof value === 'object' && !Array.isArray(value) &&
  Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));

export function planOf(props) {
  if (props.proof === undefined) {
    throw new Error('this file carries no proof; export it with --stateful --with-proof');
  }
  const plan = parse(props, 'proof');
  if (!hasExactly(plan, PARTS)) refuse('proof', `expected an object of ${PARTS.join(', ')}`);
  whole(plan.version, 'version', 1, 1);
  if (!Array.isArray(plan.turns) || !plan.turns.length || plan.turns.length > MAX_TURNS) {
    refuse('proof', `expected 1 to ${MAX_TURNS} turns`);
  }
  for (const turn of plan.turns) {
    if (!Array.isArray(turn) || turn.length !== 3) refuse('proof', 'a turn is [frame, gap, reset]');
    turn.forEach((value) => whole(value, 'turn', 0, MAX_TURNS));
  }
  if (whole(plan.draws, 'draws', 0, 1000) === 1) refuse('draws', 'one draw has no variance');
  for (const name of PARTS.slice(3, 7)) whole(plan[name], name, 1, 2 ** 20);
  for (const limits of [plan.bounds, plan.reduced_bounds]) {
    const isBound = (value) => typeof value === 'number' && value >= 0 && value <= 1e6;
    if (!hasExactly(limits, BOUNDS.split(' ')) || !Object.values(limits).every(isBound)) {
      refuse('bounds', `expected a number from 0 to 1000000 for each of ${BOUNDS}`);
    }
  }
  return plan;
}

// The stored arrays by name; refuses an array with another size than plan and metadata give.
export function storedArrays(props, plan, { classes, motion, size, stateSize }, maps) {
  const [turns, row] = [plan.turns.length, (values, step) => Math.ceil(values / step)];
  const blocks = ([h, w], block) => Math.ceil(h / block) * Math.ceil(w / block);
  const moved = turns * blocks(stateSize, plan.motion_block);
  const values = row(classes.length * stateSize[0] * stateSize[1], plan.probability_step);
  const pictures = 1 + Math.max(...plan.turns.map(([frame]) => frame));
  const counts = { frame: [Uint8Array, pictures * blocks(size, plan.block) * 3] };
  if (motion) Object.assign(counts, { motion: [Int16Array, 2 * moved], trust: [Uint8Array, moved] });
  counts.probability = [Float32Array, plan.draws ? values : turns * values];
  if (plan.draws) counts.probability_variance = [Float32Array, values];
  else for (const name of maps) counts[name] = [Uint8Array, turns * row(size[0] * size[1], plan.map_step)];
  const array = ([name, [Type, count]]) => {
    const [key, length] = [`proof_${name}`, count * Type.BYTES_PER_ELEMENT];
    const bytes = Uint8Array.from(Buffer.from(props[key] ?? '', 'base64'));
    if (bytes.length !== length || Buffer.from(bytes).toString('base64') !== props[key]) {
      refuse(key, `expected base64 of ${length} bytes`);
    }
    const found = new Type(bytes.buffer);
    if (!found.every(Number.isFinite)) refuse(key, 'a value is not finite');
    return [name, found];
  };
  return Object.fromEntries(Object.entries(counts).map(array));
}
