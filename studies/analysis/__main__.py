"""Studies of networks: how robust they are, what their feature maps hold, and the loss around their weights.

python -m steadyseg.studies.analysis STUDY MODEL ... --data DATA
"""

import sys

from steadyseg.app import cli
from steadyseg.app.commands import Command

PROGRAM = "python -m steadyseg.studies.analysis"
STUDIES = {
    "fourier": "How much of each spatial frequency is in the feature maps, block by block.",
    "variance": "How feature maps vary over positions and over dropout draws, before and after smoothing.",
    "hessian": "Eigenvalues of the loss's Hessian: the largest of every mini-batch, and the density of all.",
    "landscape": "Loss and accuracy on a plane through the weights.",
    "lesion": "What is lost without one convolution, attention or MLP block, block or smoothing layer at a time.",
    "similarity": "How alike layers are (CKA), of one network or several, and how far maps correlate in space.",
    "reliability": "How honest confidence is by class, distance from a boundary, region size and novelty.",
}
ROBUSTNESS = Command(
    "Study how networks stand corruptions, small changes, attacks and other pictures; several are compared.",
    "steadyseg.studies.robustness.flags:RobustnessJob",
    "steadyseg.studies.robustness.command:run_robustness",
)
ANALYSES = Command(
    "Study networks: how robust they are, what their feature maps hold, and the loss around their weights.",
    kinds={"robustness": ROBUSTNESS}
    | {
        name: Command(
            summary,
            f"steadyseg.studies.analysis.flags:{name.capitalize()}Job",
            "steadyseg.studies.analysis.command:run_study",
        )
        for name, summary in STUDIES.items()
    },
)


def main(arguments: list[str] | None = None) -> int:
    return cli.main(arguments, ANALYSES, PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
