// The graph of one method in a worker: a frame in, maps and pictures out; the temporal state stays here.
import { drawn, Paper, summary } from "./drawing.js";
import { answering, Trouble } from "./trouble.js";
import { wholeFile } from "./whole_file.js";

const MAPS = ["label", "confidence", "entropy", "disagreement", "energy"]; // the last one needs familiarity statistics
const CARRIED = ["state_00_out", "state_01_out", "state_02_out", "state_03_out", "state_04_out"]; // a graph has all, some, or none of them
const LEAST_EQUAL = 0.98; // share of noise's pixels that a graphics card must label as the processor does
let ort, session, manifest, paper;
let state = {}; // input name -> tensor: outputs of the previous frame

async function open({ base, manifest: whole, file, provider, threads }) {
  manifest = whole;
  const onGpu = provider === "webgpu";
  const runtime = manifest.runtime[provider];
  const files = [runtime.wasm, file, runtime.entry, runtime.glue]; // the last two are checked here, then loaded by their names
  const [machine, model] = await Promise.all(files.map((one) => wholeFile(base, one)));
  postMessage({ loaded: true });
  ort = await import(new URL(runtime.entry.path, base).href);
  ort.env.logLevel = "error";
  ort.env.wasm.wasmPaths = { mjs: new URL(runtime.glue.path, base).href };
  ort.env.wasm.wasmBinary = machine;
  ort.env.wasm.numThreads = threads;
  const options = { executionProviders: [provider], graphOptimizationLevel: "all" };
  if (onGpu) options.preferredOutputLocation = Object.fromEntries(CARRIED.map((name) => [name, "gpu-buffer"]));
  session = await ort.InferenceSession.create(model, options);
  paper = new Paper(manifest);
  forget();
  const pixels = new Uint8ClampedArray(4 * manifest.width * manifest.height);
  await run(pixels, 1, true); // the first run allocates, and fails if this provider cannot compute the graph
  if (onGpu) await testCard(model);
  forget();
}

// Throws Trouble where the graphics card gives noise other labels than the processor.
async function testCard(model) {
  const noise = new Uint8ClampedArray(4 * manifest.width * manifest.height).map((_, place) => Math.imul(place, 2654435761) >>> 24);
  const { label } = await run(noise, 1, true);
  const card = session;
  session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] });
  forget();
  const expected = (await run(noise, 1, true)).label.data;
  forget();
  const again = (await run(noise, 1, true)).label.data; // a graph that draws dropout differs from itself
  forget();
  await session.release();
  session = card;
  const share = (other) => other.filter((one, place) => one === expected[place]).length / expected.length;
  const equal = share(label.data);
  if (equal < LEAST_EQUAL * share(again)) throw new Trouble(`the graphics card labels only ${Math.floor(100 * equal)} % of the pixels as the processor does`);
}

function forget() {
  for (const tensor of Object.values(state)) tensor.dispose();
  state = {};
  for (const { name, shape } of session.inputMetadata) {
    if (!name.startsWith("state_")) continue;
    state[name] = new ort.Tensor("float32", new Float32Array(shape.reduce((all, one) => all * one, 1)), shape);
  }
}

// Runs the graph on RGBA pixels of the network's size; returns its outputs by name.
async function run(pixels, gap, reset) {
  const { height, width } = manifest;
  const rgb = new Uint8Array(3 * height * width);
  for (let from = 0, to = 0; to < rgb.length; from += 4, to += 3) {
    rgb[to] = pixels[from];
    rgb[to + 1] = pixels[from + 1];
    rgb[to + 2] = pixels[from + 2];
  }
  const feeds = {
    frame: new ort.Tensor("uint8", rgb, [1, height, width, 3]),
    gap: new ort.Tensor("float32", [gap], [1, 1]),
    reset: new ort.Tensor("float32", [reset ? 1 : 0], [1, 1]),
    ...state,
  };
  const wanted = session.outputNames.filter((name) => name !== "probs");
  const found = await session.run(feeds, wanted);
  for (const name of Object.keys(state)) {
    state[name].dispose();
    state[name] = found[name.replace("_in", "_out")];
  }
  return found;
}

async function step({ bitmap, crop, pixels, gap, reset, view, wantsMaps }) {
  const { classes } = manifest;
  pixels ??= paper.read(bitmap, crop);
  const began = performance.now();
  const found = await run(pixels, gap, reset);
  const maps = Object.fromEntries(MAPS.filter((name) => found[name]).map((name) => [name, found[name].data]));
  const familiarity = found.familiarity ? { score: found.familiarity.data[0], expected: found.expected_accuracy.data[0] } : null;
  const finite = maps.confidence[0] > 0; // as `Maps.finite`
  const facts = { ...summary(maps.label, maps.confidence, classes.length), finite, familiarity, network: true, answered: true, stepMs: performance.now() - began };
  if (wantsMaps) return [{ facts, maps }, Object.values(maps).map((map) => map.buffer)];
  return drawn(pixels, maps, facts, view, manifest);
}

onmessage = answering(open, step);
