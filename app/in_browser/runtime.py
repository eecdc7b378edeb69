"""The package onnxruntime-web, which computes in the browser: one pinned version, fetched once, checked by its hash.

python -m steadyseg.app.in_browser.runtime        # fetches it now
"""

import hashlib
import io
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

from steadyseg.core.errors import InputError
from steadyseg.core.system.fetching import FetchError, fetch, silence_timeout
from steadyseg.core.system.files import cache_file

VERSION = "1.30.0"
NAME = f"onnxruntime-web-{VERSION}.tgz"
URL = f"https://registry.npmjs.org/onnxruntime-web/-/{NAME}"
SHA256 = "d2228df7e4616bc3348bf504ee888f3bec43789a273f0a63f3e68d203ce3bf71"
BYTES = 33_106_585
WASM, JSPI = "ort-wasm-simd-threaded", "ort-wasm-simd-threaded.jspi"
PROVIDERS: Mapping[str, tuple[str, ...]] = {
    "wasm": ("ort.wasm.min.mjs", f"{WASM}.mjs", f"{WASM}.wasm"),
    "webgpu": ("ort.jspi.min.mjs", f"{JSPI}.mjs", f"{JSPI}.wasm"),
}
"""Provider -> entry, glue and machine code. WebGPU's build is for browsers whose WebAssembly can wait for a promise
(JSPI). It has 16.8 MB; the build that unwinds its stack instead has 26.8 MB."""
LICENCE = Path(__file__).with_name("onnxruntime-licence.txt")


def runtime_files(package: bytes) -> dict[str, bytes]:
    """Returns the content of every file of PROVIDERS by name, from the bytes of the package."""
    wanted = [name for names in PROVIDERS.values() for name in names]
    try:
        with tarfile.open(fileobj=io.BytesIO(package), mode="r:gz") as archive:
            members = {name: archive.extractfile(f"package/dist/{name}") for name in wanted}
            found = {name: member.read() for name, member in members.items() if member is not None}
    except (tarfile.TarError, KeyError, OSError) as error:  # although its hash was right
        raise InputError(f"{cache_path()}: cannot be unpacked ({error}); delete it and try again") from error
    for script in (name for name in found if name.endswith(".mjs")):
        for name in wanted:
            found[script] = found[script].replace(f'"{name}"'.encode(), f'"{served(name)}"'.encode())
    return {served(name): data for name, data in found.items()}


def served(name: str) -> str:
    """Returns the name on the page. Servers that lack a type for .mjs, as nginx, send one that browsers refuse."""
    return name.replace(".mjs", ".js")


def cached_package(path: Path, url: str = URL) -> bytes:
    """Returns the package at `path`, and first fetches it from `url` if it is missing or incomplete."""
    # Checks the size first, so that no huge file is read into memory.
    if path.is_file() and path.stat().st_size == BYTES:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() == SHA256:
            return data
    print(f"fetching {url} ({BYTES / 1e6:.0f} MB, once)", file=sys.stderr, flush=True)
    try:
        with silence_timeout():
            fetch(url, path, sha256=SHA256)
    except FetchError as failure:
        raise InputError(
            f"{url} {failure}; without a network copy {NAME} to {path} (`npm pack onnxruntime-web@{VERSION}` makes it)"
        ) from failure
    return path.read_bytes()


def cache_path() -> Path:
    """Returns the place of the package in the user's cache."""
    return cache_file(NAME)


if __name__ == "__main__":
    try:
        cached_package(cache_path())
        print(cache_path())
    except InputError as error:
        sys.exit(f"steadyseg: {error}")
