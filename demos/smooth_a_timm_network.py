"""Spatial smoothing and MC dropout put into a network of the timm library, and what they do.

    python demos/smooth_a_timm_network.py [NAME]

Any CNN made of modules will do; its weights, pretrained ones too, stay as they are. Nothing is fetched here.
"""

print(__doc__.partition("\n\n")[0], flush=True)  # before the imports, which take seconds

import sys

if "--help" in sys.argv:
    print(__doc__.partition("\n\n")[2])
    sys.exit()

import timm
import torch

from steadyseg import InsertionPoint, MonteCarlo, PrependedLayer, insert_dropout, insert_smoothing, subsampling_points


def main(name: str = "resnet18") -> None:
    torch.manual_seed(0)
    network = timm.create_model(name, num_classes=10).eval()  # pretrained=True fetches weights
    before = measure_roughness(network, subsampling_points(network))

    places = insert_smoothing(network)  # before every module that halves a map; no shape changes
    after = measure_roughness(network, places)
    insert_dropout(network, rate=0.1)  # before the last two of these modules
    predict = MonteCarlo(network, samples=20)
    network.get_classifier().weight.data *= 300  # an untrained network gives all classes almost equal odds
    with torch.no_grad():
        prediction = predict(torch.rand(4, 3, 128, 128))

    for place in places:
        share = after[place.name] / before[place.name]
        print(f"{place.name}: its map of {place.channels} channels changes {share:.0%} as much from point to point")
    for number, (total, disagreement) in enumerate(zip(prediction.entropy, prediction.disagreement, strict=True)):
        print(
            f"picture {number}: uncertainty {total:.3f} nats, of which {disagreement:.3f} are the passes' disagreement"
        )


@torch.no_grad()
def measure_roughness(network: torch.nn.Module, places: list[InsertionPoint]) -> dict[str, float]:
    """Roughness of the input map of each of these modules: mean change to the right neighbour over the standard
    deviation."""
    found: dict[str, float] = {}
    handles = []
    for place in places:
        module = network.get_submodule(place.name)
        halving = module.module if isinstance(module, PrependedLayer) else module

        def measure(_: torch.nn.Module, inputs: tuple[torch.Tensor, ...], name: str = place.name) -> None:
            found[name] = float(inputs[0].diff(dim=-1).abs().mean() / inputs[0].std())

        handles.append(halving.register_forward_pre_hook(measure))
    network(torch.rand(2, 3, 128, 128, generator=torch.Generator().manual_seed(0)))
    for handle in handles:
        handle.remove()
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
