"""The proof that a file carries; docs/reference/files.md describes its entries. Copy it beside steadyseg_client.py."""

import base64
import math

import numpy as np
from steadyseg_client import MAPS, parse, refuse, whole

PARTS = "version turns draws block motion_block map_step probability_step bounds reduced_bounds".split()
BOUNDS = [
    *"labels_equal probability_mean probability_max map_levels_mean".split(),
    *"familiarity_max mean_z2 variance_difference".split(),
]
MAX_TURNS = 100


def plan_of(props):
    """The entry `proof`, checked as in `steadyseg verify`: no plan computes for ever or bounds nothing."""
    if "proof" not in props:
        raise ValueError("this file carries no proof; export it with --stateful --with-proof")
    plan = parse(props, "proof")
    if not isinstance(plan, dict) or plan.keys() != set(PARTS):
        refuse("proof", f"expected an object of {', '.join(PARTS)}")
    whole(plan["version"], "version", 1, 1)
    turns = plan["turns"]
    if not isinstance(turns, list) or not 1 <= len(turns) <= MAX_TURNS:
        refuse("proof", f"expected 1 to {MAX_TURNS} turns")
    for turn in turns:
        if not isinstance(turn, list) or len(turn) != 3:
            refuse("proof", "a turn is [frame, gap, reset]")
        [whole(value, "turn", 0, MAX_TURNS) for value in turn]
    if whole(plan["draws"], "draws", 0, 1000) == 1:
        refuse("draws", "one draw has no variance")
    for name in PARTS[3:7]:
        whole(plan[name], name, 1, 2**20)
    for limits in (plan["bounds"], plan["reduced_bounds"]):
        if not isinstance(limits, dict) or limits.keys() != set(BOUNDS):
            refuse("bounds", f"expected {', '.join(BOUNDS)}")
        for value in limits.values():
            if type(value) not in (int, float) or not 0 <= value <= 1e6:
                refuse("bounds", "expected numbers from 0 to 1000000")
    return plan


def stored_arrays(client, plan):
    """The stored arrays by name; refuses an array with another size than plan and metadata give."""
    turns, values = len(plan["turns"]), len(client.classes) * math.prod(client.state_size)
    moved = [turns, *(-(-side // plan["motion_block"]) for side in client.state_size)]
    pictures = 1 + max(frame for frame, _, _ in plan["turns"])
    shapes = {"frame": (pictures, *(-(-side // plan["block"]) for side in client.size), 3)}
    if client.motion:
        shapes |= {"motion": (*moved, 2), "trust": moved}
    row = -(-values // plan["probability_step"])
    shapes["probability"] = (1 if plan["draws"] else turns, row)
    if plan["draws"]:
        shapes["probability_variance"] = (1, row)
    else:
        shapes |= dict.fromkeys(MAPS, (turns, -(-math.prod(client.size) // plan["map_step"])))
    return {name: stored(client.props.get(f"proof_{name}", ""), name, shape) for name, shape in shapes.items()}


def stored(text, name, shape):
    kind = "<i2" if name == "motion" else "<f4" if name.startswith("probability") else "u1"
    try:
        found = np.frombuffer(base64.b64decode(text, validate=True), kind)
    except ValueError:
        refuse(f"proof_{name}", f"expected base64 of {kind}")
    if found.size != math.prod(shape) or not np.isfinite(found).all():
        refuse(f"proof_{name}", f"expected {math.prod(shape)} finite values, got {found.size}")
    return found.reshape(shape)


def enlarged(values, block, size):
    """Every value `block` times along both axes, cut to the size."""
    return values.repeat(block, 0).repeat(block, 1)[: size[0], : size[1]]


class Proof:
    """Runs the proof of a client's file."""

    def __init__(self, client):
        self.client, self.plan = client, plan_of(client.props)
        self.stored = stored_arrays(client, self.plan)

    def inputs(self):
        """The inputs of every turn."""
        plan, client, block = self.plan, self.client, self.plan["motion_block"]
        for number, (frame, gap, reset) in enumerate(plan["turns"]):
            picture = enlarged(self.stored["frame"][frame], plan["block"], client.size)
            inputs = {"frame": picture[None], "gap": [[gap]], "reset": [[reset]]}
            if client.motion:
                motion = enlarged(self.stored["motion"][number], block, client.state_size)
                trust = enlarged(self.stored["trust"][number], block, client.state_size)
                inputs["motion"] = (client.flow.grid + motion.astype(np.float32) / np.float32(32))[None]
                inputs["trust"] = (trust.astype(np.float32) / np.float32(255))[None]
            yield inputs

    def values(self, outputs, name):
        """The sampled values of an output; the output after the four maps has the probabilities."""
        step = self.plan["probability_step" if name == "probability" else "map_step"]
        name = self.client.outputs[4] if name == "probability" else name
        return outputs[name].numpy().reshape(-1)[::step].astype(np.float64)

    def differences(self):
        """Found differences by the names of the bounds."""
        turns = list(self.inputs())
        if self.plan["draws"]:
            return self.moments_apart(turns)
        apart = {name: [] for name in (*MAPS, "probability")}
        for number, inputs in enumerate(turns):
            outputs = self.client.run(inputs)
            for name, rows in apart.items():
                rows.append(np.abs(self.values(outputs, name) - self.stored[name][number]))
        return {
            "labels_equal": np.mean(np.array(apart["label"]) == 0),
            "probability_mean": np.mean(apart["probability"]),
            "probability_max": np.max(apart["probability"]),
            "map_levels_mean": max(np.mean(apart[name]) for name in MAPS[1:]),
        }

    def moments_apart(self, turns):
        """Compares mean and variance over random draws of dropout, of the last turn."""
        draws = self.plan["draws"]
        drawn = [self.values([self.client.run(one) for one in turns][-1], "probability") for _ in range(draws)]
        mean, spread = np.mean(drawn, 0), np.var(drawn, 0, ddof=1)
        expected, variance = (self.stored[name][0] for name in ("probability", "probability_variance"))
        z2 = ((mean - expected) ** 2 / ((spread + variance) / draws))[spread + variance > 1e-8]
        return {"mean_z2": z2.mean(), "variance_difference": abs(spread.sum() / variance.sum() - 1)}

    def verify(self):
        """Prints what was found, and returns the exit code."""
        bounds, found = self.plan["bounds"], self.differences()  # NaN is within no bound
        holds = all(v >= bounds[k] if k == "labels_equal" else v <= bounds[k] for k, v in found.items())
        text = ", ".join(f"{name} {value:.6g} (bound {bounds[name]:g})" for name, value in found.items())
        print(f"{'equal' if holds else 'NOT EQUAL'} by ONNX Runtime on {self.client.device}: {text}")
        return 0 if holds else 1
