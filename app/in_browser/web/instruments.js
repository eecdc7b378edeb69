// The metrics below the pictures, the shares in the legend, and the inspected pixel.
const HISTORY_S = 8;
const RATE_S = 2; // frames/s and age are computed over the last two seconds
const STRIP_MS = 250; // numbers that change faster cannot be read

const percent = (share) => `${(100 * share).toFixed(0)} %`;
const escaped = (text) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

export function put(fact, text) {
  const place = document.querySelector(`[data-fact="${fact}"]`);
  if (place.textContent !== text) place.textContent = text;
}

// Returns the verdict on a frame, as `Segmenter` in core/segmenter.py.
export function verdictOf({ finite, familiarity }, { novel, doubtful }, { calibrated, expected }) {
  if (!finite) return "no answer";
  if (!calibrated) return "not calibrated";
  if (!familiarity || !expected) return "no statistics";
  if (familiarity.expected >= doubtful) return "expected";
  return familiarity.score <= Math.fround(novel) ? "unlike" : "doubtful"; // the graph computes in float32
}

export class Instruments {
  #classes;
  #words;
  #samples = []; // {at, age, facts} of the last HISTORY_S
  #drawnAt = 0;
  shown = 0;
  ages = []; // of all shown frames, for measurements

  constructor({ classes, verdicts }) {
    this.#classes = classes;
    this.#words = verdicts;
  }

  begin() {
    this.#samples = [];
    this.#drawnAt = this.shown = 0;
    this.ages = [];
  }

  tell(facts, age, presented) {
    const at = performance.now();
    this.shown += 1;
    this.ages.push(age);
    if (this.ages.length > 100000) this.ages.splice(0, 50000);
    this.#samples.push({ at, age, facts });
    while (this.#samples[0].at < at - 1e3 * HISTORY_S) this.#samples.shift();
    if (at - this.#drawnAt < STRIP_MS) return;
    this.#drawnAt = at;
    const { rate, median } = this.figures();
    put("rate", rate.toFixed(1));
    put("age", `${median.toFixed(0)} ms`);
    put("dropped", `${Math.max(0, presented - this.shown)} of ${presented}`);
    if (facts.verdict) this.#showVerdict(facts);
    put("confidence", facts.confidence.toFixed(2));
    put("unsure", percent(facts.unsure));
    document.querySelectorAll("#legend .share").forEach((place, index) => (place.textContent = percent(facts.shares[index])));
    this.#inspect(facts);
  }

  #showVerdict({ verdict, familiarity }) {
    const [line, words] = [document.querySelector("#verdict"), this.#words[verdict].replace("{right}", percent(familiarity?.expected))];
    if (line.textContent !== words) line.textContent = words; // screen readers read only changes
    line.dataset.level = verdict;
  }

  figures() {
    const recent = this.#samples.filter((one) => one.at > performance.now() - 1e3 * RATE_S);
    const span = recent.length > 1 ? (recent.at(-1).at - recent[0].at) / 1e3 : 0;
    const ages = recent.map((one) => one.age).sort((a, b) => a - b);
    return { rate: span ? (recent.length - 1) / span : 0, median: ages[ages.length >> 1] ?? 0 };
  }

  // Drops the history of the pixel that was inspected before.
  forgetPixel() {
    for (const sample of this.#samples) sample.facts.probs = null;
  }

  #inspect(facts) {
    if (!facts.probs) return;
    const recent = this.#samples.filter((one) => one.facts.probs);
    document.querySelector("#inspect .chart").innerHTML = this.#bars(facts.probs) + this.#history(recent);
  }

  #bars(probs) {
    const row = 15;
    const drawn = probs.map((value, index) => {
      const { name, color } = this.#classes[index];
      const y = index * row;
      return `<text x="0" y="${y + 11}">${escaped(name)}</text>
        <rect x="92" y="${y + 2}" width="${(150 * value).toFixed(1)}" height="${row - 4}" rx="2" fill="rgb(${color})"
          stroke="currentColor" stroke-width="0.6"/>
        <text x="${(98 + 150 * value).toFixed(1)}" y="${y + 11}">${percent(value)}</text>`;
    });
    return `<svg class="bars" viewBox="0 0 290 ${probs.length * row}" role="img" aria-label="Class probabilities of the pixel">
      ${drawn.join("")}</svg>`;
  }

  // Stacked areas: every class keeps its place, so that a change of the label is a change of colour.
  #history(recent) {
    if (recent.length < 2) return "";
    const end = performance.now();
    const x = recent.map((one) => (200 - (200 * (end - one.at)) / (1e3 * HISTORY_S)).toFixed(1));
    const floor = recent.map(() => 0);
    const edge = () => recent.map((_, place) => `${x[place]},${(100 - 100 * floor[place]).toFixed(1)}`);
    const areas = this.#classes.map(({ color }, index) => {
      const low = edge();
      recent.forEach((sample, place) => (floor[place] += sample.facts.probs[index]));
      return `<polygon fill="rgb(${color})" points="${[...low, ...edge().reverse()].join(" ")}"/>`;
    });
    return `<svg class="history" viewBox="0 0 200 100" preserveAspectRatio="none" role="img"
      aria-label="The last ${HISTORY_S} seconds">${areas.join("")}</svg>`;
  }
}
