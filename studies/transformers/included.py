"""Measures the included classifiers on both test sets, as the trained networks are measured.

python -m steadyseg.studies.transformers.included --data DATA cifar10-resnet18-plain cifar10-resnet18-mc-smooth
"""

import argparse
import sys
from pathlib import Path

from steadyseg.classification.data.open import open_classification
from steadyseg.classification.evaluate import Classifier
from steadyseg.classification.pretrained import read_classifier
from steadyseg.core.system.machine import choose_device, keep_freed_memory
from steadyseg.studies.harness.networks import rests_on
from steadyseg.studies.harness.study import PAGES, Cache, exit_code, origin
from steadyseg.studies.transformers.measure import FOLDERS, OFFICIAL, PASSES, figures_of

RECORD = PAGES / "transformers" / "included.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", metavar="NETWORK", help="included classifiers of CIFAR-10")
    parser.add_argument("--data", type=Path, required=True, help="folder with cifar10-jpeg/ and cifar10/")
    given = parser.parse_args()
    return exit_code("included", lambda: measure_included(given.data, given.networks))


def measure_included(data: Path, networks: list[str]) -> None:
    """Measures each classifier that has no figures of these weights and pictures, in fp32 at temperature 1."""
    keep_freed_memory()
    cache = Cache(RECORD)
    tests = {name: open_classification(data / folder, "test") for name, folder in FOLDERS.items()}
    for name in networks:
        digest = rests_on(name, tests[OFFICIAL].list_hash)
        if cache.get(name, digest) is not None:
            continue
        opened = read_classifier(name)
        meta = opened.meta
        classifier = Classifier([opened.network()], meta.mean, meta.std, choose_device("auto"))
        rows = {
            test: figures_of(classifier, pictures, meta.height, PASSES[test], f"{name} {test}")
            for test, pictures in tests.items()
        }
        cache.put(name, digest, rows, origin())


if __name__ == "__main__":
    sys.exit(main())
