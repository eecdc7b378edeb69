// The page: its buttons and settings, and the loop from the newest frame to the two pictures.
import { Instruments, put, verdictOf } from "./instruments.js";
import { isolate } from "./isolation.js";
import { Settings } from "./settings.js";
import { Segmenter, Source } from "./steadyseg.js";
import { requireBrowser, sentence } from "./trouble.js";
import { readManifest, wholeFile } from "./whole_file.js";

const base = new URL(".", location.href);
const asked = new URLSearchParams(location.search);
const one = (selector) => document.querySelector(selector);

let manifest, instruments, settings;
let wanted = null; // {found, abort} for the current settings
let running = null; // {found, abort} that computes
let source = null;
let turn = 0; // increased by every start and stop; work of an earlier turn ends
let lost = ""; // the reason why WebGPU failed while it ran

function say(text, trouble = false) {
  const line = one("#message");
  if (line.textContent !== text) line.textContent = text;
  line.classList.toggle("trouble", trouble);
}

// Returns {found: a promise of the segmenter for the current settings, abort: an AbortController that closes it}.
function open() {
  if (wanted) return wanted;
  const abort = new AbortController();
  const found = Segmenter.open(base, {
    mode: settings.method.mode, provider: one("#provider").value, threads: Number(asked.get("threads")) || undefined,
    live: settings.live, signal: abort.signal,
  });
  found.catch(() => {}); // its awaiters get the error
  return (wanted = { found, abort });
}

// Returns the open segmenter of the current settings and closes the one before; undefined once the turn is over.
async function latest(mine) {
  while (mine === turn) {
    const opened = open();
    const found = await opened.found.catch((error) => opened === wanted && Promise.reject(error));
    if (opened !== wanted) continue; // the settings have changed meanwhile
    if (running !== opened) running?.abort.abort();
    running = opened;
    return found;
  }
}

// Reacts to another method or provider. The running segmenter finishes its frame; `latest` closes it.
function change() {
  if (wanted !== running || !source) wanted?.abort.abort();
  if (!source) running = null;
  else say("opening ...");
  wanted = null;
}

function free() {
  wanted?.abort.abort();
  running?.abort.abort();
  wanted = running = null;
}

async function sourceOf(kind) {
  if (kind === "camera") return Source.camera();
  if (kind === "sample") return Source.video(new Blob([await wholeFile(base, manifest.sample)]), "The street sample", true);
  const [file] = one("#file").files;
  return Source.video(file, file.name);
}

async function start(kind) {
  halt();
  const mine = turn;
  instruments.begin();
  one("[data-do=stop]").disabled = false;
  say(kind === "camera" ? "asking for the camera ..." : "opening ...");
  try {
    const found = await sourceOf(kind);
    if (mine !== turn) return found.close();
    source = found;
    await show(mine);
  } catch (error) {
    if (mine === turn) stop(sentence(error), true);
  }
}

// Computes and draws frame after frame; the settings are read again for each.
async function show(mine) {
  if (!(await latest(mine))) return;
  one("#stage").classList.add("playing");
  const cards = ["overlay", "shade"].map((name) => one(`#${name}`).getContext("bitmaprenderer"));
  while (mine === turn) {
    const segmenter = await latest(mine);
    if (mine !== turn) return;
    const frame = await source.next();
    if (mine !== turn) return frame?.bitmap.close();
    if (!frame) return stop(source.why, source.why.includes("damaged"));
    const question = { ...frame, tau: settings.tau, view: settings.view };
    const found = await segmenter.step(frame.bitmap, question).catch((error) => mine === turn && goOnWithout(segmenter, error));
    if (!found) continue;
    const { facts, overlay, shade } = found;
    if (mine !== turn) return [overlay, shade].forEach((picture) => picture.close());
    cards[0].transferFromImageBitmap(overlay);
    cards[1].transferFromImageBitmap(shade);
    facts.verdict = running === wanted ? verdictOf(facts, manifest, settings.method) : null; // null: of the method before
    instruments.tell(facts, performance.now() - frame.at, source.presented);
    put("runs", [`${segmenter.runsOn}, ${facts.stepMs.toFixed(0)} ms a frame, ${instruments.figures().answers.toFixed(1)} a second`, ...segmenter.notes, lost].filter(Boolean).join("; "));
    say("");
  }
}

// Goes on with WebAssembly where the graphics card is lost, and shows the reason.
function goOnWithout(segmenter, error) {
  if (segmenter.provider !== "webgpu") throw error;
  lost = `WebGPU failed (${error.message})`;
  one("#provider").value = "wasm";
  change();
}

function halt() {
  turn += 1;
  source?.close();
  source = null;
}

function stop(why = "", trouble = false) {
  halt();
  free();
  one("[data-do=stop]").disabled = true;
  put("runs", "not running");
  say(why, trouble);
}

function connect() {
  document.addEventListener("click", (event) => {
    const action = event.target.closest("[data-do]")?.dataset.do;
    if (action === "stop") stop();
    else if (action === "file") one("#file").click();
    else if (action) start(action);
  });
  one("#file").addEventListener("change", () => one("#file").files.length && start("file"));
  one("#file").addEventListener("click", () => (one("#file").value = "")); // the same file may be chosen again
  one("#mode").addEventListener("change", () => {
    settings.describe();
    change();
  });
  one("#provider").addEventListener("change", () => {
    lost = "";
    change();
  });
  one("#live").addEventListener("change", change);
  addEventListener("pagehide", () => stop());
}

try {
  say("opening ...");
  requireBrowser();
  if (!(await isolate())) {
    manifest = await readManifest(base);
    instruments = new Instruments(manifest);
    settings = new Settings(manifest, asked);
    connect();
    globalThis.steadyseg = { instruments, get source() { return source; }, open: () => open().found }; // for tests and measurements
    say("");
    open().found.then((segmenter) => put("runs", `ready: ${[segmenter.runsOn, ...segmenter.notes].join("; ")}`), (error) => turn === 0 && stop(sentence(error), true));
  }
} catch (error) {
  say(sentence(error), true);
}
