// The entries of a file's metadata, which may come from anyone, and the limits of `steadyseg` for them.

const MAX_CHARACTERS = 2 ** 20;
const MAX_SIDE = 2 ** 14;

export function refuse(name, fault) {
  throw new Error(`malformed ${name} (${fault}); export it again with steadyseg export`);
}

// The metadata of an ONNX file, which onnxruntime-node does not give: field 14 of its protobuf message, one {1: key,
// 2: value} for each entry.
export function metadata(bytes) {
  const props = Object.create(null);
  for (const [field, value] of fields(bytes)) {
    if (field !== 14) continue;
    const entry = new Map(fields(value));
    props[entry.get(1)?.toString() ?? ''] = entry.get(2)?.toString() ?? '';
  }
  return props;
}

function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      if (byte === undefined || scale > 2 ** 63) throw new Error('not a whole ONNX file');
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const wire = tag % 8;
    const size = wire === 2 ? varint() : wire === 5 ? 4 : wire === 1 ? 8 : 0;
    if (![0, 1, 2, 5].includes(wire) || size > bytes.length - at) throw new Error('not a whole ONNX file');
    if (wire === 0) varint();
    else yield [Math.floor(tag / 8), bytes.subarray(at, at + size)];
    at += size;
  }
}

export function parse(props, key) {
  if (props[key] === undefined) refuse(key, 'it is missing');
  if (props[key].length > MAX_CHARACTERS) refuse(key, `more than ${MAX_CHARACTERS} characters`);
  try {
    return JSON.parse(props[key]);
  } catch {
    return refuse(key, 'no JSON');
  }
}

export function whole(value, name, low, high) {
  if (Number.isInteger(value) && value >= low && value <= high) return value;
  const given = typeof value === 'number' ? value : 'no number';
  return refuse(name, `${given}, expected a whole number from ${low} to ${high}`);
}

// The metadata of a stream of one camera.
export function described(props, path) {
  if (props.steadyseg_format !== '1' || props.kind !== 'stream') {
    throw new Error(`${path}: no stream; make one with steadyseg export --stateful`);
  }
  const streams = parse(props, 'streams');
  if (streams !== null && whole(streams, 'streams', 1, 256) !== 1) {
    throw new Error(`${path}: computes ${streams} streams a call, this is a client of one; export without --streams`);
  }
  const size = ['input_height', 'input_width'].map((name) => whole(parse(props, name), name, 1, MAX_SIDE));
  const stride = whole(parse(props, 'head_stride'), 'head_stride', 1, 2);
  const motion = parse(props, 'motion');
  if (typeof motion !== 'boolean') refuse('motion', 'expected true or false');
  const classes = parse(props, 'classes');
  if (!Array.isArray(classes) || classes.length < 2 || classes.length > 255) {
    refuse('classes', 'expected 2 to 255 names'); // the void id also takes one of the 256 labels
  }
  const isName = (name) => typeof name === 'string' && /^[^\p{C}\p{Zl}\p{Zp}]{1,100}$/u.test(name);
  if (!classes.every(isName) || new Set(classes).size !== classes.length) {
    refuse('classes', 'names are different texts of 1 to 100 printable characters');
  }
  return { classes, motion, size, stateSize: size.map((side) => Math.ceil(side / stride)) };
}
