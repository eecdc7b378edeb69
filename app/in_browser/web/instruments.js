// The metrics below the pictures, and the shares in the legend.
const RATE_S = 2; // frames/s and age are computed over the last two seconds
const STRIP_MS = 250; // numbers that change faster cannot be read

const percent = (share) => `${(100 * share).toFixed(0)} %`;

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
  #words;
  #samples = []; // {at, age, answered} of the last RATE_S
  #drawnAt = 0;
  shown = 0;
  ages = []; // of all shown frames, for measurements

  constructor({ verdicts }) {
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
    this.#samples.push({ at, age, answered: facts.answered });
    while (this.#samples[0].at < at - 1e3 * RATE_S) this.#samples.shift();
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
  }

  #showVerdict({ verdict, familiarity }) {
    const [line, words] = [document.querySelector("#verdict"), this.#words[verdict].replace("{right}", percent(familiarity?.expected))];
    if (line.textContent !== words) line.textContent = words; // screen readers read only changes
    line.dataset.level = verdict;
  }

  figures() {
    const recent = this.#samples;
    const span = recent.length > 1 ? (recent.at(-1).at - recent[0].at) / 1e3 : 0;
    const ages = recent.map((one) => one.age).sort((a, b) => a - b);
    const answers = recent.slice(1).filter((one) => one.answered).length;
    return { rate: span ? (recent.length - 1) / span : 0, answers: span ? answers / span : 0, median: ages[ages.length >> 1] ?? 0 };
  }
}
