#!/usr/bin/env python3
"""Segments videos by a model of `steadyseg export --target triton`: a thread and a sequence for each of them.

    pip install 'tritonclient[grpc]' opencv-python numpy      # and onnxruntime for a model that follows motion
    python triton_client.py localhost:8001 seg drive.mp4 rtsp://camera

The server keeps the state of every sequence and computes the frames that wait in one call.
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import np_to_triton_dtype


def segment(server, model, source, sequence):
    """Sends every frame of a source; its first begins the sequence, its last ends it."""
    client = triton.InferenceServerClient(server)  # one for each thread
    metadata = client.get_model_metadata(model)
    sizes = {one.name: tuple(one.shape) for one in metadata.inputs}
    flow = open_flow(sizes["trust"][1:]) if "motion" in sizes else None
    video = cv2.VideoCapture(source)
    read, picture = video.read()
    number = 0
    while read:
        frame = np.ascontiguousarray(picture[..., ::-1])
        read, picture = video.read()  # the frame after, since the server is told which one is the last
        arrays = {"frame": frame[None], "gap": np.ones((1, 1), np.float32)} | (flow(frame, 1) if flow else {})
        inputs = [given(name, value) for name, value in arrays.items()]
        found = client.infer(model, inputs, sequence_id=sequence, sequence_start=number == 0, sequence_end=not read)
        label, entropy = found.as_numpy("label")[0], found.as_numpy("entropy")[0]
        shares = np.bincount(label.ravel()) / label.size
        shown = f"class {shares.argmax()} {shares.max():.0%}; mean uncertainty {entropy.mean() / 255:.3f}"
        print(f"{source} {number}: {shown}", flush=True)
        number += 1


def given(name, value):
    one = triton.InferInput(name, list(value.shape), np_to_triton_dtype(value.dtype))
    one.set_data_from_numpy(value)
    return one


def open_flow(size):
    """The motion of the client beside this one, for the temporal mean of size (h, w)."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
    from steadyseg_client import Flow

    return Flow(tuple(map(int, size)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", help="host and gRPC port, such as localhost:8001")
    parser.add_argument("model")
    parser.add_argument("sources", nargs="+", help="videos, addresses of cameras, or pictures as %%05d.png")
    words = parser.parse_args()
    with ThreadPoolExecutor(len(words.sources)) as threads:
        jobs = [
            threads.submit(segment, words.server, words.model, source, number)
            for number, source in enumerate(words.sources, start=1)  # 0 is no sequence
        ]
        for job in jobs:
            job.result()  # raises what the thread raised


if __name__ == "__main__":
    main()
