"""Make any segmentation network steady: temporal smoothing of its softmax, and what that does to flicker.

    python demos/smooth_any_network.py

Any callable that maps (1, 3, h, w) to logits will do; here it is a pretrained network on the procedural street.
"""

import torch

from core.prediction import Prediction
from core.preprocess import Normalize
from core.temporal import TemporalSmoothing
from seg.street.drive import Street
from seg.torch_segmenter import open_segmenter

FRAMES = 60


def main() -> None:
    pretrained = open_segmenter("street-tiny", mode="dnn")
    network, normalize = pretrained.module.predictor.network, Normalize(pretrained.meta.mean, pretrained.meta.std)
    smooth, state = TemporalSmoothing(tau=1.25), None  # the published decay: exp(-0.8) a frame
    street = Street(seed=7, height=pretrained.meta.height, width=pretrained.meta.width)
    changed = {"one look": 0.0, "steady": 0.0}
    before: dict[str, torch.Tensor] = {}

    for frame in street.frames(FRAMES):
        image = torch.from_numpy(frame.image).permute(2, 0, 1)[None].float()
        with torch.inference_mode():
            now = Prediction.from_logits(network(normalize(image)))
        steady, state = smooth(now, state)  # state goes in and out: keep one per stream, None starts anew
        for name, labels in (("one look", now.labels), ("steady", steady.labels)):
            changed[name] += float((before[name] != labels).float().mean()) if name in before else 0.0
            before[name] = labels

    for name, total in changed.items():
        print(f"{name:9s} {total / (FRAMES - 1):.2%} of the pixels change their label from frame to frame")


if __name__ == "__main__":
    main()
