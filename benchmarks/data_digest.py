"""What was measured on, as one short text that changes with the data."""

import hashlib

from seg.camvid import ImageFolderSplit


def data_digest(splits: list[ImageFolderSplit]) -> str:
    """Over the bytes of every image and label."""
    total = hashlib.sha256()
    for split in splits:
        for example in split.examples:
            for path in (example.image, example.label):
                total.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:12]
