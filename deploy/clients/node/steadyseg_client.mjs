// Segments raw RGB frames with a file of `steadyseg export --stateful --motion off`, by onnxruntime-node.
//
//   npm ci --ignore-scripts     # the scripts would fetch CUDA's libraries, which the CPU does not need
//   ffmpeg -i drive.mp4 -vf scale=480:360 -pix_fmt rgb24 -f rawvideo - | node steadyseg_client.mjs m.onnx > labels.raw
//   node steadyseg_client.mjs m.onnx --verify     # runs the proof of a file that was exported --with-proof
//
// Frames have the network's size, which the program prints; labels.raw gets one byte for each pixel, its class. There
// is no optical flow here, so files that follow motion can be verified but not run.

import { readFileSync, realpathSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import ort from 'onnxruntime-node';
import { described, metadata, refuse } from './metadata.mjs';
import { MAPS, verify } from './proof.mjs';

const MAX_STATE_VALUES = 2 ** 30;

// A file and the state of one stream; everything but the path is read from the file's metadata.
export class Client {
  static async open(path) {
    const bytes = readFileSync(path);
    const props = metadata(bytes);
    const client = Object.assign(new Client(), described(props, path), { props });
    client.session = await ort.InferenceSession.create(bytes);
    client.checkGraph();
    client.states = {};
    for (const { name, shape, type } of client.session.inputMetadata) {
      if (!name.startsWith('state_')) continue;
      const dims = [1, ...shape.slice(1)];
      client.states[name] = new ort.Tensor(type, new Float32Array(dims.reduce((a, b) => a * b)), dims);
    }
    return client;
  }

  // Requires the inputs and outputs that the metadata describe.
  checkGraph() {
    const { inputMetadata, outputNames, outputMetadata } = this.session;
    const states = inputMetadata.filter(({ name }) => name.startsWith('state_')).map(({ shape }) => shape.slice(1));
    const sizes = states.map((sides) => sides.reduce((a, b) => a * b, 1));
    if (!sizes.every(Number.isInteger) || sizes.reduce((a, b) => a + b, 0) > MAX_STATE_VALUES) {
      refuse('graph', 'its states have free sizes or more than 2^30 values');
    }
    if (inputMetadata.length !== (this.motion ? 5 : 3) + states.length) {
      refuse('graph', 'its inputs are not those of its metadata');
    }
    const [found, expected] = [outputMetadata[MAPS.length]?.shape.slice(-3), [this.classes.length, ...this.stateSize]];
    if (outputNames.slice(0, 4).join() !== MAPS.join() || found?.join() !== expected.join()) {
      refuse('graph', 'its maps and probabilities are not those of its metadata');
    }
  }

  // The maps of the next frame, h x w x 3 bytes of RGB. `gap`: source frames since the last one; 0 resets the
  // states, as after a seek. A scene cut resets them too.
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

async function main([path, flag, ...more]) {
  if (!path || path.startsWith('-') || (flag && flag !== '--verify') || more.length) throw new Error('usage: node steadyseg_client.mjs MODEL.onnx [--verify] < frames > labels');
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
  process.stdout.on('error', () => {}); // which would end the process with a trace; the write below tells the error
  let waiting = Buffer.alloc(0);
  let frames = 0;
  for await (const chunk of process.stdin) {
    waiting = Buffer.concat([waiting, chunk]);
    for (; waiting.length >= length; waiting = waiting.subarray(length), frames++) {
      const { label, entropy } = await client.step(Uint8Array.from(waiting.subarray(0, length)));
      await new Promise((written, failed) => {
        process.stdout.write(label.data, (error) => (error ? failed(error) : written()));
      });
      const pixels = new Uint32Array(256);
      label.data.forEach((value) => pixels[value]++);
      const most = pixels.indexOf(Math.max(...pixels));
      const uncertainty = entropy.data.reduce((sum, value) => sum + value, 0) / entropy.data.length / 255;
      const share = ((100 * pixels[most]) / label.data.length).toFixed();
      console.error(`${client.classes[most]} ${share} %, mean uncertainty ${uncertainty.toFixed(3)}`);
    }
  }
  if (waiting.length || !frames) throw new Error('the input ends within a frame, or holds none; is its size right?');
  return 0;
}

const started = process.argv[1]; // absent in `node -e`; import.meta.url has its links resolved
if (started && import.meta.url === pathToFileURL(realpathSync(started)).href) {
  main(process.argv.slice(2)).then((code) => (process.exitCode = code), (error) => {
    console.error(`steadyseg_client: ${error.message.replace(/\p{Cc}+/gu, ' ')}`);
    process.exitCode = 2;
  });
}
