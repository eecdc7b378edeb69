"""Sentences that explain the words of the page when a pointer rests on them; app/page/web/instruments.js shows them."""

import json
from html import escape

from app.page.parts.settings import MODES
from app.video.views import DISAGREEMENT_GAIN, SCALES, MapName
from core.method import ModeName

METHODS: dict[ModeName, str] = {
    "dnn": "One pass of the network over each frame, dropout off. It has no memory, so labels may flicker.",
    "vq-dnn": "One pass, averaged with those of the recent frames along their motion: steadier at the same cost.",
    "bnn": "The mean of several passes with dropout on, each of which leaves out other features. It is slower.",
    "vq-bnn": "One pass with dropout on, averaged with those of the recent frames along their motion.",
}
MAPS: dict[MapName, str] = {
    "uncertainty": "Entropy of the predicted probabilities: 0 for a certain class, 1 where all are equally likely.",
    "confidence": "1 minus the probability of the likeliest class.",
    "disagreement": "The part of the uncertainty that comes from passes or frames that contradict each other, enlarged "
    f"{DISAGREEMENT_GAIN} times. The rest is doubt that they share.",
    "set-size": "Number of classes in a set that holds the true class of a pixel as often as it was calibrated for.",
    "energy": "High where no class has a high logit, compared with pixels of the training recordings.",
}
TAU = (
    "After so many frames a prediction counts 37 % in the mean. A longer memory is steadier and follows changes later."
)


def hints_attribute() -> str:
    """The sentences as the HTML attribute `data-hints`: JSON of {CSS selector: {words of an element: sentence}}, with
    empty words for any element."""
    methods = {name: METHODS[mode] for name, mode in MODES}
    maps = {SCALES[name].title: sentence for name, sentence in MAPS.items()}
    hints = {
        "#mode label": methods,
        "#against label": methods,
        "[role=option]": maps,
        "#second": maps,
        "#tau": {"": TAU},
    }
    return f"data-hints='{escape(json.dumps(hints))}'"
