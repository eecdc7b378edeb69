// The numbers below the pictures, the timeline, the shares in the legend, and the inspected pixel.
(() => {
  "use strict";
  const TIMELINE_S = 20;
  const HISTORY_S = 8;
  const RATE_S = 2; // frames/s and flicker are means over the last two seconds
  const STRIP_MS = 250; // a reader cannot follow faster changes
  const live = (window.steadyseg ??= {});
  let samples = []; // {at, age, facts} of the last TIMELINE_S seconds
  let drawnAt = 0;

  const all = (selector) => document.querySelectorAll(selector);
  const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;
  const since = (seconds) => samples.filter((one) => one.at > performance.now() - 1e3 * seconds);
  const escaped = (text) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

  function put(fact, text) {
    for (const place of all(`[data-fact="${fact}"]`)) if (place.textContent !== text) place.textContent = text;
  }

  function classes() {
    const entries = [...(document.querySelector(".legend")?.querySelectorAll(".entry[data-class]") ?? [])];
    return entries.map((entry) => ({
      name: entry.dataset.name,
      color: entry.dataset.color,
    }));
  }

  live.begun = () => {
    samples = [];
    drawnAt = 0;
  };

  live.told = (facts, age) => {
    const at = performance.now();
    samples.push({ at, age, facts });
    while (samples.length && samples[0].at < at - 1e3 * TIMELINE_S) samples.shift();
    if (at - drawnAt < STRIP_MS) return;
    drawnAt = at;
    strip(facts);
    captions();
    timeline();
    shares(facts.shares);
    inspect(facts);
  };

  live.figures = () => {
    const recent = since(RATE_S);
    const span = recent.length > 1 ? (recent.at(-1).at - recent[0].at) / 1e3 : 0;
    const ages = recent.map((one) => one.age).filter((age) => age !== null).sort((a, b) => a - b);
    return { rate: span ? (recent.length - 1) / span : 0, age: ages[ages.length >> 1] ?? null, ...live.counts };
  };

  function strip(facts) {
    const { rate, age, camera, shown } = live.figures();
    put("fps", rate.toFixed(1));
    put("age", age === null ? "-" : `${age.toFixed(0)} ms`);
    put("dropped", `${Math.max(0, camera - shown)} of ${camera}`);
    put("confidence", facts.confidence.toFixed(2));
    put("unsure", percent(facts.unsure));
    const recent = since(RATE_S).map((one) => one.facts.flicker);
    const [before, after] = ["left", "right"].map((side, index) => {
      const known = recent.map((pair) => pair[index]).filter((value) => value != null);
      const mean = known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
      put(`flicker-${side}`, mean === null ? "-" : percent(mean, 1));
      for (const bar of all(`[data-bar=flicker-${side}]`)) bar.style.width = `${Math.min(100, 400 * (mean ?? 0))}%`;
      return mean;
    });
    const fewer = before && after !== null ? 1 - after / before : null;
    put("fewer", fewer === null ? "" : `: ${percent(Math.abs(fewer))} ${fewer < 0 ? "more" : "fewer"}`);
    const { level, words, caveat } = facts.verdict;
    document.body.dataset.verdict = level; // marks the figures that nothing verifies
    for (const line of all(".stage .verdict")) {
      const text = caveat ? `${words}; ${caveat}` : words;
      if (line.textContent !== text) line.textContent = text; // screen readers read only changes
      line.dataset.level = level;
    }
    const pace = facts.opened ? "" : `, ${facts.step_ms.toFixed(0)} ms a frame`;
    put("backend", `${facts.backend}${pace}${networkRate()}`);
  }

  function networkRate() {
    const recent = since(RATE_S).filter((one) => !one.facts.opened);
    if (recent.length < 2) return "";
    const calls = recent.at(-1).facts.network_frames - recent[0].facts.network_frames;
    return calls < 0 ? "" : `, network ${((1e3 * calls) / (recent.at(-1).at - recent[0].at)).toFixed(0)}/s`;
  }

  function line(key) {
    const end = performance.now();
    return samples
      .map((one) => `${(600 - (600 * (end - one.at)) / (1e3 * TIMELINE_S)).toFixed(1)},${(58 - 56 * one.facts[key]).toFixed(1)}`)
      .join(" ");
  }

  function timeline() {
    for (const [name, key] of [["confidence", "confidence"], ["unsure", "unsure"]]) {
      const points = line(key);
      for (const drawn of all(`.timeline polyline.${name}`)) drawn.setAttribute("points", points);
    }
  }

  function shares(values) {
    for (const legend of all(".legend")) {
      const places = legend.querySelectorAll(".entry[data-class] .share");
      if (places.length !== values.length) continue; // the legend is already another model's
      places.forEach((place, index) => (place.textContent = percent(values[index])));
    }
  }

  function inspect(facts) {
    if (!live.watch) return; // the answer to a frame that was sent before the inspection ended
    const known = classes();
    const recent = since(HISTORY_S).filter((one) => one.facts.probs);
    for (const panel of all(".inspect .chart")) {
      const side = panel.closest("[data-side]")?.dataset.side;
      if (!facts.probs || facts.probs[0].length !== known.length) continue;
      const index = side === "left" ? 0 : facts.probs.length - 1;
      panel.innerHTML = bars(facts.probs[index], known) + history(recent, index, known);
      panel.closest(".inspect").classList.add("shown");
    }
  }

  function bars(probs, known) {
    const row = 15;
    const drawn = probs.map((value, index) => {
      const y = index * row;
      return `<text x="0" y="${y + 11}">${escaped(known[index].name)}</text>
        <rect x="92" y="${y + 2}" width="${(150 * value).toFixed(1)}" height="${row - 4}" rx="2" fill="${known[index].color}"
          stroke="currentColor" stroke-width="0.6"/>
        <text x="${(98 + 150 * value).toFixed(1)}" y="${y + 11}">${percent(value)}</text>`;
    });
    return `<svg class="bars" viewBox="0 0 290 ${known.length * row}" role="img" aria-label="Class probabilities of the pixel">
      ${drawn.join("")}</svg>`;
  }

  // Stacked areas: every class keeps its place, so that a change of the label is a change of colour.
  function history(recent, side, known) {
    if (recent.length < 2) return "";
    const end = performance.now();
    const x = recent.map((one) => (200 - (200 * (end - one.at)) / (1e3 * HISTORY_S)).toFixed(1));
    const floor = recent.map(() => 0);
    const areas = known.map((one, index) => {
      const low = recent.map((_, place) => `${x[place]},${(100 - 100 * floor[place]).toFixed(1)}`);
      recent.forEach((sample, place) => (floor[place] += sample.facts.probs[Math.min(side, sample.facts.probs.length - 1)][index] ?? 0));
      const high = recent.map((_, place) => `${x[place]},${(100 - 100 * floor[place]).toFixed(1)}`);
      return `<polygon fill="${one.color}" points="${[...low, ...high.reverse()].join(" ")}"/>`;
    });
    return `<svg class="history" viewBox="0 0 200 100" preserveAspectRatio="none" role="img"
      aria-label="The last ${HISTORY_S} seconds">${areas.join("")}</svg>`;
  }

  function watchAt(frame, x, y) {
    live.watch = [Math.min(1, Math.max(0, x)), Math.min(1, Math.max(0, y))];
    samples.forEach((one) => (one.facts.probs = null));
    for (const mark of all(".stage .mark")) {
      mark.style.left = `${100 * live.watch[0]}%`;
      mark.style.top = `${100 * live.watch[1]}%`;
      mark.classList.add("shown");
    }
    for (const panel of all(".inspect")) panel.classList.add("shown");
  }

  function unwatch() {
    live.watch = null;
    for (const shown of all(".inspect.shown, .stage .mark.shown")) shown.classList.remove("shown");
  }

  document.addEventListener("click", (event) => {
    const frame = event.target.closest?.(".stage .frame");
    const canvas = frame?.querySelector("canvas");
    if (canvas && frame.closest(".stage").classList.contains("playing")) {
      const place = canvas.getBoundingClientRect();
      watchAt(frame, (event.clientX - place.left) / place.width, (event.clientY - place.top) / place.height);
    } else if (event.target.closest?.("[data-do-not-watch]")) unwatch();
  });

  // Keyboard: Enter places the mark in the middle, arrows move it, Escape removes it.
  document.addEventListener("keydown", (event) => {
    const frame = event.target.closest?.(".stage .frame");
    if (!frame) return;
    const steps = { ArrowLeft: [-0.02, 0], ArrowRight: [0.02, 0], ArrowUp: [0, -0.02], ArrowDown: [0, 0.02], Enter: [0, 0] };
    if (event.key === "Escape") unwatch();
    if (!steps[event.key]) return;
    event.preventDefault();
    const [x, y] = live.watch ?? [0.5, 0.5];
    watchAt(frame, x + steps[event.key][0], y + steps[event.key][1]);
  });

  // Switches a class on or off in the legends of both tabs.
  document.addEventListener("change", (event) => {
    const box = event.target.closest?.(".legend input[type=checkbox]");
    if (!box) return;
    for (const twin of all(`.legend input[value="${box.value}"]`)) twin.checked = box.checked;
    const first = document.querySelector(".legend");
    live.settings.hidden = [...first.querySelectorAll("input:not(:checked)")].map((one) => Number(one.value));
  });

  function captions() {
    const scales = JSON.parse(document.querySelector("[data-scales]")?.dataset.scales ?? "{}");
    const [caption, low, high] = scales[live.settings.second] ?? [];
    const modes = JSON.parse(document.querySelector("[data-modes]")?.dataset.modes ?? "{}");
    put("title-left", modes[live.settings.against] ?? "");
    put("title-right", modes[live.settings.mode] ?? "");
    if (caption) [["second", caption], ["low", low], ["high", high]].forEach(([fact, text]) => put(fact, text));
  }
  live.settingsChanged = captions;
  // Another model has another legend, in which every class is on.
  live.modelChanged = () => {
    live.settings.hidden = [];
    for (const box of all(".legend input")) box.checked = true;
  };
})();
