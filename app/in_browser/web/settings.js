// The settings of the page with their descriptions, and the facts of the manifest that it shows.

const NAMES = { dnn: "single frame", "vq-dnn": "smoothed", bnn: "random draws", "vq-bnn": "random draws, smoothed" };
const SECONDS = {
  entropy: ["uncertainty (entropy)", "certain", "uncertain"],
  energy: ["energy of the logits", "usual", "rarer than 1 pixel in 100"],
}; // the second picture: its title, and the meaning of its darkest and brightest colours
const one = (selector) => document.querySelector(selector);
const number = (selector) => Number(one(selector).value);

export class Settings {
  #manifest;

  // asked: URLSearchParams of the address, which may hold mode and provider.
  constructor(manifest, asked) {
    this.#manifest = manifest;
    this.#fill(asked);
    this.describe();
    one("#second").addEventListener("change", () => this.#describeSecond());
    for (const name of ["#tau", "#opacity"]) one(name).addEventListener("input", () => this.#describeNumbers());
  }

  get method() {
    return this.#manifest.methods.find((entry) => entry.mode === one("#mode input:checked").value);
  }

  // No frame waits for the network.
  get live() {
    return one("#live").value === "live";
  }

  get tau() {
    return number("#tau");
  }

  // The view of `Segmenter.step`. The energy needs a method with familiarity statistics.
  get view() {
    const hidden = [...document.querySelectorAll("#legend input:not(:checked)")].map((box) => Number(box.value));
    return { opacity: number("#opacity") / 100, hidden, second: this.method.reference_scores ? one("#second").value : "entropy" };
  }

  // Shows the facts of the chosen method.
  describe() {
    const { tau, temperature, calibrated, note, reference_scores: known } = this.method;
    one("#tau-row").hidden = tau === null;
    if (tau !== null) one("#tau").value = tau;
    const fitted = `its temperature ${temperature.toFixed(2)} was fitted for this method${tau === null ? "" : ` at tau ${tau}`}`;
    one("#calibration").textContent = calibrated ? `Calibrated: ${fitted}.` : `Not calibrated: ${note || "no temperature was fitted"}.`;
    one("#second-row").hidden = !known;
    one("#verdict").removeAttribute("data-level");
    one("#verdict").textContent = known
      ? "Shows if the pictures resemble the training recordings."
      : "Nothing to compare the pictures with: the graph has no statistics of the training recordings for this method.";
    this.#describeSecond();
    this.#describeNumbers();
  }

  #describeSecond() {
    const [title, low, high] = SECONDS[this.view.second];
    for (const [place, text] of [["#second-title", title], ["#low", low], ["#high", high]]) one(place).textContent = text;
  }

  #describeNumbers() {
    one("#tau-shown").textContent = `${number("#tau")} frames`;
    one("#opacity-shown").textContent = `${number("#opacity")} %`;
  }

  #fill(asked) {
    const { model, licence, runtime, classes, methods, shades, width, height } = this.#manifest;
    one("#stage").style.setProperty("--aspect", width / height);
    for (const [place, text] of [["#model", model], ["#licence", licence], ["#runtime", runtime.version]]) one(place).textContent = text;
    for (const [index, { name, color }] of classes.entries()) {
      const entry = document.createElement("label");
      const box = Object.assign(document.createElement("input"), { type: "checkbox", value: index, checked: true });
      const patch = document.createElement("i");
      patch.style.background = `rgb(${color})`;
      const share = Object.assign(document.createElement("span"), { className: "share" });
      entry.append(box, patch, name, share);
      one("#legend").append(entry);
    }
    for (const { mode } of methods) {
      const entry = document.createElement("label");
      const checked = mode === (asked.get("mode") ?? methods[0].mode);
      entry.append(Object.assign(document.createElement("input"), { type: "radio", name: "mode", value: mode, checked }), `${NAMES[mode]} (${mode})`);
      one("#mode").append(entry);
    }
    if (!one("#mode input:checked")) one("#mode input").checked = true;
    one("#provider").value = asked.get("provider") ?? "auto";
    one("#live").value = asked.get("network") ?? "live";
    const paper = one("#scale").getContext("2d");
    paper.putImageData(new ImageData(new Uint8ClampedArray(shades.flatMap((color) => [...color, 255])), 256), 0, 0);
  }
}
