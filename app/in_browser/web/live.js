// Frames that never wait: the network runs on the newest one in a worker of its own, and its maps are carried to the frames meanwhile.
// It answers the questions of worker.js, and asks that worker for maps.
import { drawn, Paper, summary } from "./drawing.js";
import { Motion } from "./motion.js";
import { answering, Trouble } from "./trouble.js";

const CHANGED_DOUBT = 0.5; // a frame waits for the network where the mean doubt is above this, and where the last call took less than
const QUICK_MS = 20; // (as in runtime/every.py)
let manifest, paper, motion, network;
let shown = null; // {maps, facts, since} of the newest answer; since: the motion from its frame to the newest one
let running = null; // the same of the call that runs; `answer` is its promise, `done` is true where it has ended
let asked = { gap: 0, reset: true }; // of the next call
let heard = null; // {resolve, reject} of the question to the network

async function open(question) {
  manifest = question.manifest;
  [paper, motion, shown, running] = [new Paper(manifest), new Motion(manifest.width, manifest.height), null, null];
  const script = URL.createObjectURL(new Blob([`import ${JSON.stringify(new URL("worker.js", import.meta.url).href)};`], { type: "text/javascript" }));
  network = new Worker(script, { type: "module" });
  network.onmessage = ({ data }) => {
    if (data.loaded) postMessage({ loaded: true });
    else if (data.trouble) heard.reject(new Trouble(data.trouble));
    else heard.resolve(data.result);
  };
  network.onerror = (event) => heard.reject(new Trouble(`The worker failed (${event.message ?? "its script cannot be loaded"}).`));
  await ask({ open: question }).finally(() => URL.revokeObjectURL(script));
}

function ask(question) {
  return new Promise((resolve, reject) => {
    heard = { resolve, reject };
    network.postMessage({ number: 0, ...question });
  });
}

// Starts a call on the newest frame.
function call(pixels) {
  const mine = { since: null, age: 0, done: false };
  mine.answer = ask({ step: { pixels, ...asked, wantsMaps: true } }).then((found) => Object.assign(mine, found, { done: true, news: true }));
  mine.answer.catch(() => (mine.done = true)); // whoever takes the answer hears of it
  asked = { gap: 0, reset: false };
  return mine;
}

async function take() {
  const { answer } = running;
  running = null;
  shown = await answer;
}

async function step({ bitmap, crop, pixels, gap, frames, reset, view, wantsMaps }) {
  pixels ??= paper.read(bitmap, crop);
  const moved = motion.next(pixels);
  asked = { gap: asked.gap + gap, reset: asked.reset || reset };
  for (const one of [shown, running]) if (one && moved) Object.assign(one, { since: motion.compose(one.since, moved), age: one.age + frames });
  if (running?.done) await take();
  const waits = !shown || asked.reset || shown.facts.stepMs < QUICK_MS || shown.since?.doubt > CHANGED_DOUBT;
  if (waits && running) await take();
  running ??= call(pixels);
  if (waits) await take();
  const { since, facts: told, maps: whole } = shown;
  const maps = since && told.finite ? motion.carry(whole, since, manifest.classes.length) : whole;
  const facts = { ...told, ...summary(maps.label, maps.confidence, manifest.classes.length), network: !since, answered: Boolean(shown.news) };
  if (since && told.familiarity) facts.familiarity = { ...told.familiarity, expected: told.familiarity.expected * Math.max(0, 1 - manifest.lost_a_frame * shown.age) };
  shown.news = false;
  if (wantsMaps) return [{ facts, maps: structuredClone(maps) }, []];
  return drawn(pixels, maps, facts, view, manifest);
}

onmessage = answering(open, step);
