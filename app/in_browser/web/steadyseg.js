// A folder of `steadyseg export --target web` as a segmenter in this tab: one frame in, its maps and pictures out, the state inside.
//
//   const segmenter = await Segmenter.open("site/");
//   const { overlay, shade, facts } = await segmenter.step(await createImageBitmap(video));
//   segmenter.close();
import { requireBrowser, Trouble } from "./trouble.js";
import { readManifest } from "./whole_file.js";

export { Source } from "./source.js";
export { Trouble } from "./trouble.js";

const MOST_THREADS = 4; // more than that are the slow cores of a phone
const VIEW = { opacity: 0.5, hidden: [], second: "entropy" }; // second: entropy, or novel where the method knows its own world

export class Segmenter {
  #worker;
  #waiting = new Map(); // number -> {resolve, reject} of a question to the worker
  #asked = 0;

  // mode: of the manifest's methods, the first without it; provider: auto, webgpu or wasm; signal: of an AbortController, closes
  // it whenever it comes. Throws Trouble with a plain sentence.
  static async open(base, { mode, provider = "auto", threads = MOST_THREADS, signal } = {}) {
    requireBrowser();
    const home = new URL(base, document.baseURI);
    const manifest = await readManifest(home);
    const method = mode ? manifest.methods.find((one) => one.mode === mode) : manifest.methods[0];
    if (!method) throw new Trouble(`This folder has no method ${mode}: it has ${manifest.methods.map((one) => one.mode).join(", ")}.`);
    const notes = [];
    if (provider !== "wasm") {
      const why = await whyNoGpu(manifest, provider === "webgpu");
      if (!why) {
        try {
          return await new Segmenter()._open(home, manifest, method, "webgpu", 1, notes, signal);
        } catch (error) {
          notes.push(`WebGPU failed (${error.message})`);
        }
      } else notes.push(why);
    }
    const most = Math.min(threads, MOST_THREADS, navigator.hardwareConcurrency || 1);
    const several = globalThis.crossOriginIsolated;
    if (!several) notes.push("one thread, because this page is not isolated from others (its server sends no COOP and COEP headers and there is no service worker)");
    return new Segmenter()._open(home, manifest, method, "wasm", several ? most : 1, notes, signal);
  }

  async _open(base, manifest, method, provider, threads, notes, signal) {
    Object.assign(this, { manifest, method, provider, threads, notes });
    signal?.throwIfAborted();
    signal?.addEventListener("abort", () => this.close("stopped"), { once: true });
    const file = method.files[provider] ?? method.files.any;
    const home = JSON.stringify(new URL("worker.js", import.meta.url).href);
    // By way of a blob: such a worker has this page's policy (connect-src 'self'), a file from a plain server has none.
    const script = URL.createObjectURL(new Blob([`import ${home};`], { type: "text/javascript" }));
    this.#worker = new Worker(script, { type: "module" });
    this.#worker.onmessage = ({ data }) => this.#hear(data);
    this.#worker.onerror = (event) => this.close(`The worker failed (${event.message ?? "its script cannot be loaded"}).`);
    try {
      await this.#ask({ open: { base: base.href, manifest, file, provider, threads } });
    } catch (error) {
      this.close();
      throw error;
    } finally {
      URL.revokeObjectURL(script);
    }
    return this;
  }

  // What computes, in words.
  get runsOn() {
    if (this.provider === "webgpu") return "WebGPU";
    return this.threads > 1 ? `WebAssembly, ${this.threads} threads` : "WebAssembly, one thread";
  }

  // An ImageBitmap (it is used up; `crop` is [x, y, width, height] of it, its middle without it) or ImageData of the network's
  // own size -> {facts, overlay, shade}: two ImageBitmaps for the caller to close. gap: source frames since the last one;
  // tau: decay time of the mean in frames, the method's own without it; watch: [x, y] in 0..1, whose probabilities are wanted.
  // facts.world: {novelty, expected}: the share of the own world that is as novel, and of the pixels that should be right; or null.
  async step(image, { gap = 1, reset = false, tau, crop, watch = null, view = VIEW } = {}) {
    return this.#step(image, { gap, reset, tau, crop, watch, view });
  }

  // The same, but {facts, maps}: label, confidence, entropy, disagreement and, where the method knows its own world, novel_regions;
  // a Uint8Array each.
  async maps(image, { gap = 1, reset = false, tau, crop, watch = null } = {}) {
    return this.#step(image, { gap, reset, tau, crop, watch, wantsMaps: true });
  }

  #step(image, { tau, crop, gap, ...rest }) {
    // exp(-gap / tau) is all that the graph makes of both, so another tau is another gap.
    const scaled = this.method.tau && tau ? (gap * this.method.tau) / tau : gap;
    if (image instanceof ImageData) return this.#ask({ step: { ...rest, gap: scaled, pixels: image.data } });
    return this.#ask({ step: { ...rest, gap: scaled, bitmap: image, crop: crop ?? this.middle(image.width, image.height) } }, [image]);
  }

  // [x, y, width, height]: the largest part in the middle of a picture that has the network's shape.
  middle(width, height) {
    const aspect = this.manifest.width / this.manifest.height;
    const [w, h] = width / height > aspect ? [height * aspect, height] : [width, width / aspect];
    return [(width - w) / 2, (height - h) / 2, w, h];
  }

  // Frees everything; whoever still waits is told the reason.
  close(reason = "closed") {
    this.#worker?.terminate();
    for (const { reject } of this.#waiting.values()) reject(new Trouble(reason));
    this.#waiting.clear();
  }

  #ask(question, transferred = []) {
    const number = ++this.#asked;
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject });
      this.#worker.postMessage({ number, ...question }, transferred);
    });
  }

  #hear({ number, result, trouble }) {
    const { resolve, reject } = this.#waiting.get(number);
    this.#waiting.delete(number);
    if (trouble) reject(new Trouble(trouble));
    else resolve(result);
  }
}

// Why WebGPU is not used; null: it can be tried. `forced`: also one that a processor plays.
async function whyNoGpu(manifest, forced) {
  if (!manifest.runtime.webgpu) return "this folder has no files for WebGPU";
  if (!navigator.gpu) return "this browser has no WebGPU";
  const adapter = await navigator.gpu.requestAdapter();
  if (!adapter) return "WebGPU finds no graphics card";
  const played = adapter.info.isFallbackAdapter || adapter.info.architecture === "swiftshader";
  if (played && !forced) return "WebGPU would run on the processor";
  if (typeof WebAssembly.Suspending !== "function") return "WebGPU here needs a browser with JSPI (Chrome 137 or newer)";
  return null;
}
