// Segments raw RGB frames with a file of `steadyseg export --stateful --motion off`, by onnxruntime-node.
//
//   npm ci --ignore-scripts     # the scripts would fetch CUDA's libraries, which the CPU needs not
//   ffmpeg -i drive.mp4 -vf scale=480:360 -pix_fmt rgb24 -f rawvideo - | node steadyseg_client.mjs m.onnx > labels.raw
//   node steadyseg_client.mjs m.onnx --verify     # runs the proof of a file that was exported --with-proof
//
// Frames have the network's size, which the program prints; labels.raw gets one byte for each pixel, its class. There
// is no optical flow here, so files that follow motion can be verified but not run.

import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import ort from 'onnxruntime-node';
import { verify } from './proof.mjs';

// The metadata of an ONNX file, which onnxruntime-node does not give: field 14 of its protobuf message, one {1: key,
// 2: value} for each entry.
export function metadata(bytes) {
  const props = {};
  for (const [field, value] of fields(bytes)) {
    if (field !== 14) continue;
    const entry = new Map(fields(value));
    props[entry.get(1).toString()] = entry.get(2)?.toString() ?? '';
  }
  return props;
}

function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error('not a whole ONNX file');
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const wire = tag % 8;
    const size = wire === 2 ? varint() : wire === 5 ? 4 : wire === 1 ? 8 : 0;
    if (wire === 0) varint();
    else yield [Math.floor(tag / 8), bytes.subarray(at, at + size)];
    at += size;
  }
}

// A file and the state of one stream; everything but the path is read from the file's metadata.
export class Client {
  static async open(path) {
    const bytes = readFileSync(path);
    const props = metadata(bytes);
    if (props.steadyseg_format !== '1' || props.kind !== 'stream') {
      throw new Error(`${path}: no stream; make one with steadyseg export --stateful`);
    }
    const client = new Client();
    client.props = props;
    const value = (name) => JSON.parse(props[name]);
    if (![1, null].includes(value('streams'))) {
      throw new Error(`${path}: computes ${props.streams} streams a call, this is a client of one; export without --streams`);
    }
    [client.classes, client.motion] = [value('classes'), value('motion')];
    client.size = [value('input_height'), value('input_width')];
    client.stateSize = client.size.map((side) => Math.ceil(side / value('head_stride')));
    client.session = await ort.InferenceSession.create(bytes);
    client.states = {};
    for (const { name, shape, type } of client.session.inputMetadata) {
      if (!name.startsWith('state_')) continue;
      const dims = [1, ...shape.slice(1)];
      client.states[name] = new ort.Tensor(type, new Float32Array(dims.reduce((a, b) => a * b)), dims);
    }
    return client;
  }

  // The maps of the next frame, h x w x 3 bytes of RGB. `gap`: source frames since the last one, 0 to begin anew, as
  // after a seek; a scene cut begins anew by itself.
  async step(frame, gap = 1) {
    if (this.motion) throw new Error('this file follows motion, which is not computed here; export it with --motion off');
    const outputs = await this.run({
      frame: new ort.Tensor('uint8', frame, [1, ...this.size, 3]),
      gap: scalar(Math.max(gap, 1)),
      reset: scalar(this.started && gap ? 0 : 1),
    });
    this.started = true;
    return outputs;
  }

  // One call with named inputs; the states go from call to call.
  async run(inputs) {
    const outputs = await this.session.run({ ...inputs, ...this.states });
    for (const name in this.states) this.states[name] = outputs[name.replace('_in', '_out')];
    return outputs;
  }
}

const scalar = (value) => new ort.Tensor('float32', Float32Array.of(value), [1, 1]);

async function main([path, flag]) {
  if (!path) throw new Error('usage: node steadyseg_client.mjs MODEL.onnx [--verify] < frames > labels');
  const client = await Client.open(path);
  if (flag === '--verify') {
    const { found, bounds, holds } = await verify(client);
    const shown = Object.entries(found).map(([name, value]) => `${name} ${value.toPrecision(6)} (bound ${bounds[name]})`);
    console.log(`${holds ? 'equal' : 'NOT EQUAL'} by onnxruntime-node: ${shown.join(', ')}`);
    return holds ? 0 : 1;
  }
  if (client.props.lag !== '0') throw new Error(`its maps come ${client.props.lag} frames late; export it without --lag`);
  console.error(`frames of ${client.size[1]}x${client.size[0]}, RGB, 8 bits`);
  const length = 3 * client.size[0] * client.size[1];
  let waiting = Buffer.alloc(0);
  for await (const chunk of process.stdin) {
    waiting = Buffer.concat([waiting, chunk]);
    for (; waiting.length >= length; waiting = waiting.subarray(length)) {
      const { label, entropy } = await client.step(Uint8Array.from(waiting.subarray(0, length)));
      await new Promise((written) => process.stdout.write(label.data, written));
      const pixels = new Uint32Array(256);
      label.data.forEach((value) => pixels[value]++);
      const most = pixels.indexOf(Math.max(...pixels));
      const uncertainty = entropy.data.reduce((sum, value) => sum + value, 0) / entropy.data.length / 255;
      const share = ((100 * pixels[most]) / label.data.length).toFixed();
      console.error(`${client.classes[most]} ${share} %, mean uncertainty ${uncertainty.toFixed(3)}`);
    }
  }
  return 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  main(process.argv.slice(2)).then((code) => (process.exitCode = code), (error) => {
    console.error(`steadyseg_client: ${error.message}`);
    process.exitCode = 2;
  });
}
