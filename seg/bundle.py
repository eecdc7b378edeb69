"""Makes a segmentation run's result a pretrained checkpoint (core/bundle.py).

python -m seg.bundle runs/camvid/model.safetensors camvid-unet-s --licence "..." --results stills.json stream.json
"""

from pathlib import Path

from core.bundle import bundle, bundle_arguments
from seg.pretrained import FOLDER

if __name__ == "__main__":
    parser = bundle_arguments(__doc__)
    parser.add_argument("--uncertainty", type=Path, help="CamVid's folder: measure how unsure its test images leave it")
    parser.add_argument("--frames", type=Path, help="text file of base names: only these test images for --uncertainty")
    given = parser.parse_args()
    usual = None
    if given.uncertainty is not None:
        from seg.novelty import usual_uncertainty

        usual = usual_uncertainty(given.source, given.uncertainty, given.frames)
    print(bundle(given.source, given.name, given.licence, given.command, given.results, FOLDER, usual))
