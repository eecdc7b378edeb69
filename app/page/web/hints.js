// Sentences that explain the words of the page once a pointer or the focus rests on them.
(() => {
  "use strict";
  const METHODS = {
    "(dnn)": "One forward pass of the network over each frame, dropout off. It has no memory, so labels may flicker.",
    "(vq-dnn)": "One forward pass, averaged with those of the recent frames along their motion: steadier at the same cost.",
    "(bnn)": "The mean of several forward passes with dropout on, each of which leaves out other features. It is slower.",
    "(vq-bnn)": "One forward pass with dropout on, averaged with those of the recent frames along their motion.",
  };
  const MAPS = {
    "entropy": "Entropy of the predicted probabilities: 0 for a certain class, 1 where all are equally likely.",
    "confidence": "1 minus the probability of the likeliest class.",
    "disagreement": "The part of the uncertainty that comes from forward passes or frames that contradict each other, enlarged 4 times. The rest is doubt that they share.",
    "prediction set": "Number of classes in a set that holds the true class of a pixel as often as it was calibrated for.",
    "energy": "High where no class has a high logit, compared with pixels of the training recordings.",
  };
  const TAU = { "": "After so many frames a prediction counts 37 % in the mean. A longer memory is steadier and follows changes later." };
  // By CSS selector: what the words of such an element contain, and the sentence.
  const HINTS = { "#mode label": METHODS, "#against label": METHODS, "[role=option]": MAPS, "#second": MAPS, "#tau": TAU };

  function explain(event) {
    for (const [selector, sentences] of Object.entries(HINTS)) {
      const found = event.target.closest?.(selector);
      if (!found) continue;
      const words = found.querySelector("input[role=combobox]")?.value ?? found.textContent;
      const known = Object.keys(sentences).find((part) => words.includes(part));
      if (known !== undefined) found.title = sentences[known];
    }
  }
  for (const kind of ["pointerover", "focusin"]) document.addEventListener(kind, explain); // Gradio makes controls later and anew
})();
