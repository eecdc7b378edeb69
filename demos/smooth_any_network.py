"""Temporal smoothing of any segmentation network's softmax: how many labels flicker, single frame against smoothed.

    python demos/smooth_any_network.py

Any callable that maps (1, 3, h, w) to logits will do; here it is an included network on the synthetic street.
"""

print(__doc__.partition("\n\n")[0], flush=True)  # before the imports, which take seconds

import sys

if "--help" in sys.argv:
    print(__doc__.partition("\n\n")[2])
    sys.exit()

import torch

from steadyseg import Normalize, Prediction, Street, TemporalSmoothing, open_model, set_dropout_active

FRAMES = 60


def main() -> None:
    model = open_model("road-realtime")
    network, meta = model.network(), model.meta
    set_dropout_active(network, False)
    normalize = Normalize(meta.mean, meta.std)
    smooth, state = TemporalSmoothing(tau=1.25), None  # the published decay: exp(-0.8) a frame
    changed = {"single frame": 0.0, "smoothed": 0.0}
    before: dict[str, torch.Tensor] = {}

    for frame in Street(seed=7, height=meta.height, width=meta.width).frames(FRAMES):
        image = torch.from_numpy(frame.image).permute(2, 0, 1)[None]
        with torch.inference_mode():
            single = Prediction.from_logits(network(normalize(image)))
        smoothed, state = smooth(single, state)  # the state goes in and out: one per stream, None resets it
        for name, labels in (("single frame", single.labels), ("smoothed", smoothed.labels)):
            changed[name] += float((before[name] != labels).float().mean()) if name in before else 0.0
            before[name] = labels

    for name, total in changed.items():
        print(f"{name:12s} {total / (FRAMES - 1):.2%} of the pixels change their label from frame to frame")


if __name__ == "__main__":
    main()
