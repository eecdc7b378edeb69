"""Segments a video and prints the classes that are seen, and how sure the network is.

python demos/segment_video.py [FILE|street|0 [MODEL]]
"""

print(__doc__.partition("\n\n")[0], flush=True)  # before the imports, which take seconds

import sys

if "--help" in sys.argv:
    print(__doc__.partition("\n\n")[2])
    sys.exit()

import numpy as np

from steadyseg import MethodOptions, open_segmenter, open_source, read_ahead, segment


def main(spec: str = "street:7:50", model: str = "road-realtime") -> None:
    segmenter = open_segmenter(model, MethodOptions(mode="vq-dnn"))  # smoothed over time
    names = segmenter.classes.names
    with open_source(spec) as source:
        for frame, maps in segment(read_ahead(source), segmenter):  # read_ahead decodes in a thread of its own
            confidence = maps.confidence.mean() / 255  # maps are uint8 at the frame's size: 255 = 1
            unsure = (maps.confidence < 0.5 * 255).mean()
            shares = np.bincount(maps.label.ravel(), minlength=len(names)) / maps.label.size
            top = ", ".join(f"{names[i]} {shares[i]:.0%}" for i in np.argsort(-shares)[:3])
            print(f"{frame.time_s:6.2f} s  confidence {confidence:.3f}  pixels below 50 %: {unsure:6.2%}  {top}")


if __name__ == "__main__":
    main(*sys.argv[1:])
