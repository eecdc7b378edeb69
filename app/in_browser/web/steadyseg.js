// A segmenter in this tab, from a folder of `steadyseg export --target web`: a frame in, maps and pictures out; it holds the state.
//
//   const segmenter = await Segmenter.open("site/");
//   const { overlay, shade, facts } = await segmenter.step(await createImageBitmap(video));
//   segmenter.close();
import { requireBrowser, Trouble } from "./trouble.js";
import { readManifest } from "./whole_file.js";

export { Source } from "./source.js";
export { Trouble } from "./trouble.js";

const MAX_THREADS = 4; // further cores of a phone are slow
const START_MS = 10000; // longest start of several threads once their files are here: without an answer one thread computes
const VIEW = { opacity: 0.5, hidden: [], second: "entropy" }; // second: entropy, or energy (if the method has familiarity statistics)

class Late extends Error {}

export class Segmenter {
  #worker;
  #waiting = new Map(); // number -> {resolve, reject} of a question to the worker
  #asked = 0;
  #loaded = () => {}; // called when the worker has its files

  // mode: one of the manifest's methods, by default the first; provider: auto, webgpu or wasm; live: no frame waits for the
  // network, whose maps are carried along the motion; signal: of an AbortController that closes the segmenter, also while it
  // opens. Throws Trouble with a sentence for the user.
  static async open(base, { mode, provider = "auto", threads = MAX_THREADS, live = false, signal } = {}) {
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
          return await new Segmenter()._open(home, manifest, method, "webgpu", 1, live, notes, signal);
        } catch (error) {
          notes.push(`WebGPU failed (${error.message})`);
        }
      } else notes.push(why);
    }
    const most = Math.min(threads, MAX_THREADS, navigator.hardwareConcurrency || 1);
    const several = globalThis.crossOriginIsolated;
    if (!several) notes.push("one thread, because this page is not isolated from others (its server sends no COOP and COEP headers and there is no service worker)");
    if (several && most > 1) {
      try {
        return await new Segmenter()._open(home, manifest, method, "wasm", most, live, notes, signal, START_MS);
      } catch (error) {
        if (!(error instanceof Late)) throw error;
        notes.push(`one thread, because ${most} threads did not start within ${START_MS / 1000} s`);
      }
    }
    return new Segmenter()._open(home, manifest, method, "wasm", 1, live, notes, signal);
  }

  async _open(base, manifest, method, provider, threads, live, notes, signal, patience = Infinity) {
    Object.assign(this, { manifest, method, provider, threads, live, notes });
    signal?.throwIfAborted();
    signal?.addEventListener("abort", () => this.close("stopped"), { once: true });
    const home = JSON.stringify(new URL(live ? "live.js" : "worker.js", import.meta.url).href);
    // A worker from a blob inherits this page's policy (connect-src 'self'); one from a file of a plain server would have no policy.
    const script = URL.createObjectURL(new Blob([`import ${home};`], { type: "text/javascript" }));
    this.#worker = new Worker(script, { type: "module" });
    this.#worker.onmessage = ({ data }) => this.#hear(data);
    this.#worker.onerror = (event) => this.close(`The worker failed (${event.message ?? "its script cannot be loaded"}).`);
    try {
      const opened = this.#ask({ open: { base: base.href, manifest, file: method.file, provider, threads } });
      await Promise.race([opened, this.#late(patience)]);
    } catch (error) {
      this.close();
      throw error;
    } finally {
      URL.revokeObjectURL(script);
    }
    return this;
  }

  // Provider and threads in words.
  get runsOn() {
    if (this.provider === "webgpu") return "WebGPU";
    return this.threads > 1 ? `WebAssembly, ${this.threads} threads` : "WebAssembly, one thread";
  }

  // image: an ImageBitmap, which is consumed (crop: [x, y, width, height] in it, by default `middle`), or ImageData of the
  // network's size. Returns {facts, overlay, shade}, the last two ImageBitmaps for the caller to close. gap: source frames since
  // the last call; tau: decay time of the mean in frames, by default the method's. facts.network: the network ran on this very
  // frame; facts.answered: it gave an answer since the last frame; facts.familiarity: {score, expected accuracy} in 0..1, or null; `verdictOf` in instruments.js says what
  // it means.
  async step(image, { gap = 1, reset = false, tau, crop, view = VIEW } = {}) {
    return this.#step(image, { gap, reset, tau, crop, view });
  }

  // Returns {facts, maps} instead: label, confidence, entropy, disagreement and, with familiarity statistics, energy, each a
  // Uint8Array.
  async maps(image, { gap = 1, reset = false, tau, crop } = {}) {
    return this.#step(image, { gap, reset, tau, crop, wantsMaps: true });
  }

  #step(image, { tau, crop, gap, ...rest }) {
    // In the graph's mean, another tau equals another gap: exp(-gap / tau). Scene cuts are detected up to a scaled gap of 5.
    const scaled = this.method.tau && tau ? (gap * this.method.tau) / tau : gap;
    if (image instanceof ImageData) return this.#ask({ step: { ...rest, gap: scaled, frames: gap, pixels: image.data } });
    return this.#ask({ step: { ...rest, gap: scaled, frames: gap, bitmap: image, crop: crop ?? this.middle(image.width, image.height) } }, [image]);
  }

  // Returns [x, y, width, height] of the largest centred part with the network's aspect.
  middle(width, height) {
    const aspect = this.manifest.width / this.manifest.height;
    const [w, h] = width / height > aspect ? [height * aspect, height] : [width, width / aspect];
    return [(width - w) / 2, (height - h) / 2, w, h];
  }

  // Fails so many milliseconds after the worker has its files.
  #late(patience) {
    return new Promise((_, reject) => {
      this.#loaded = () => Number.isFinite(patience) && setTimeout(() => reject(new Late("late")), patience);
    });
  }

  // Frees everything; pending calls fail with the reason.
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

  #hear({ number, result, trouble, loaded }) {
    if (loaded) return this.#loaded();
    const { resolve, reject } = this.#waiting.get(number);
    this.#waiting.delete(number);
    if (trouble) reject(new Trouble(trouble));
    else resolve(result);
  }
}

// Returns the reason why WebGPU cannot be used, or null. `forced`: an emulation on the processor is used too.
async function whyNoGpu(manifest, forced) {
  if (!manifest.runtime.webgpu) return "this folder has no files for WebGPU";
  if (!navigator.gpu) return "this browser has no WebGPU";
  const adapter = await navigator.gpu.requestAdapter();
  if (!adapter) return "WebGPU finds no graphics card";
  const isEmulated = adapter.info.isFallbackAdapter || adapter.info.architecture === "swiftshader";
  if (isEmulated && !forced) return "WebGPU would run on the processor";
  if (typeof WebAssembly.Suspending !== "function") return "WebGPU here needs a browser with JSPI (Chrome 137 or newer)";
  return null;
}
