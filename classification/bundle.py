"""Makes a classifier of a run a pretrained checkpoint (core/model/bundle.py).

python -m classification.bundle runs/plain/model.safetensors cifar10-resnet18-plain --licence "..." --results dnn.json
bnn.json
"""

from classification.pretrained import FOLDER
from core.model.bundle import bundle, bundle_arguments

if __name__ == "__main__":
    given = bundle_arguments(__doc__).parse_args()
    print(bundle(given.source, given.name, given.licence, given.command, given.results, FOLDER))
