"""Makes a segmentation run's result a pretrained checkpoint (core/model/bundle.py).

python -m seg.bundle runs/camvid/model.safetensors camvid-unet-s --licence "..." --results stills.json stream.json
"""

from core.model.bundle import bundle, bundle_arguments
from seg.pretrained import FOLDER

if __name__ == "__main__":
    given = bundle_arguments(__doc__).parse_args()
    print(bundle(given.source, given.name, given.licence, given.command, given.results, FOLDER))
