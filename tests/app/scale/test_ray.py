"""A real Ray: what the engine refuses, that nothing listens beyond loopback, that a batch on it is a batch."""

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from pathlib import Path

import pytest
from made.batches import contents
from made.cluster import LOOPBACK, TOKEN, head
from made.processes import words_of
from made.waiting import PATIENCE_S
from refusals import steadyseg

from steadyseg.app.scale.engines.processes import WorkerLost
from steadyseg.app.scale.engines.ray_pool import RayPool

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
]


@pytest.fixture(scope="module")
def embedded() -> Iterator[RayPool]:
    pool = RayPool()
    yield pool
    pool.close()


def test_a_dead_worker_is_an_answer_and_has_a_successor(embedded: RayPool) -> None:
    def result(task: Callable[..., object], *arguments: object) -> object:
        future = embedded.submit(task, *arguments)
        wait([future], PATIENCE_S)
        return embedded.result(future)

    assert result(os.getenv, "RAY_USAGE_STATS_ENABLED") == "0"
    assert (
        result(os.getenv, "RAY_AUTH_TOKEN") == os.environ["RAY_AUTH_TOKEN"] and len(os.environ["RAY_AUTH_TOKEN"]) == 64
    )
    assert result(lambda: os.getpid()) != os.getpid()
    with pytest.raises(WorkerLost, match=r"died|crash"):
        result(lambda: os.abort())
    assert result(lambda: os.getpid()) != os.getpid()


def listening() -> set[str]:
    """Addresses at which something listens, in hexadecimal as /proc has them, and their sockets' inodes."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A":
                found.add(f"{words[1]} {words[9]}")
    return found


def test_nothing_of_it_listens_beyond_loopback(embedded: RayPool) -> None:
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    inodes = {inode for pid in pids if b"ray" in words_of(pid) for inode in _sockets(Path(f"/proc/{pid}"))}
    open_to_all = [
        one
        for one in listening()
        if one.split()[1] in inodes
        and not one.startswith(("0100007F:", "00000000000000000000000001000000:", "0000000000000000FFFF00000100007F:"))
    ]
    assert not open_to_all


def _sockets(place: Path) -> set[str]:
    """Their inodes; a process and each of its files may go away meanwhile."""
    found = set()
    with contextlib.suppress(OSError):
        for link in (place / "fd").iterdir():
            with contextlib.suppress(OSError):
                if (target := os.readlink(link)).startswith("socket:"):
                    found.add(target[8:-1])
    return found


def test_an_address_that_does_not_answer_is_refused_in_time(tmp_path: Path) -> None:
    for address, said in (("127.0.0.1:1", "no answer within 12 s"), ("no address", "")):
        assert f"--ray {address}: {said}" in refused(tmp_path, address)


def refused(folder: Path, address: str) -> str:
    """The one line that a batch on Ray says, and nothing is made."""
    done = steadyseg("batch", "street:1:10", "-o", folder / "out", "--ray", address)
    lines = done.stderr.strip().splitlines()
    assert (done.returncode, len(lines), done.stdout) == (2, 1, ""), done.stdout + done.stderr
    assert not list((folder / "out").glob("street*"))
    return lines[0]


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Two cores and two GPUs, which are but numbers to Ray."""
    with head("--num-cpus=2", "--num-gpus=2") as address:
        yield address


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TOKEN.items():
        monkeypatch.setenv(name, value)


def test_a_cluster_of_another_ray_or_that_asks_for_a_token_is_refused(cluster, tmp_path, monkeypatch):
    for name in TOKEN:
        monkeypatch.delenv(name, raising=False)
    assert "asks for a token; set RAY_AUTH_MODE=token" in refused(tmp_path, cluster)
    for name, value in TOKEN.items():
        monkeypatch.setenv(name, value)
    with head("--num-cpus=1", before="ray.__version__ = '2.40.0'") as address:
        assert "Version mismatch" in (line := refused(tmp_path, address)) and "2.40.0" in line


@pytest.mark.usefixtures("token")
def test_a_batch_on_a_cluster_is_a_batch_and_no_frame_is_rays(cluster: str, model: str, tmp_path: Path) -> None:
    flags = ["street:1:20", "street:2:20", "--masks", "--model", model, "--backend", "torch", "--max-frames", "20"]
    for out, where in (("local", []), ("cluster", ["--ray", cluster])):
        done = steadyseg("batch", *flags, "-o", tmp_path / out, *where)
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads((tmp_path / out / "summary.json").read_text())["done"] == 2
    found = contents(tmp_path / "cluster")
    assert len(found) == 2 * (2 * 20 + 1) and found == contents(tmp_path / "local")
    before, after = map(float, on_cluster(cluster, STORE).split())
    assert before < 1000 and after >= 10**6  # a frame of the street has 518,400 bytes


STORE = """
import ray  # whose figures of memory need grpcio
from ray._private.internal_api import get_memory_info_reply, get_state_from_address
def created():
    return get_memory_info_reply(get_state_from_address(sys.argv[1])).store_stats.cumulative_created_bytes
ray.init(sys.argv[1], log_to_driver=False)
print(created())
kept = ray.put(bytes(10**6))  # this it would see
print(created())
"""


def on_cluster(address: str, code: str, *more: object) -> str:
    """What Python says that runs in a process of its own, as one of this machine."""
    command = [sys.executable, "-c", f"import sys; {code}", address, str(PATIENCE_S), *map(str, more)]
    done = subprocess.run(command, env=os.environ | LOOPBACK, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


GPUS = """
import os
from concurrent.futures import wait
from steadyseg.app.scale.engines.ray_pool import RayPool
from steadyseg.core.errors import InputError
try:
    RayPool(sys.argv[1], gpus=3)
except InputError as error:
    print(error)
pool = RayPool(sys.argv[1], gpus=1)
print(pool.most())
seen = [pool.submit(os.getenv, "CUDA_VISIBLE_DEVICES") for _ in range(2)]
wait(seen, float(sys.argv[2]))
print(all(pool.result(one) in ("0", "1") for one in seen))
pool.close()
"""


@pytest.mark.usefixtures("token")
def test_a_worker_on_a_gpu_has_one_of_its_own(cluster: str) -> None:
    refused, most, seen = on_cluster(cluster, GPUS).splitlines()
    assert "a worker needs 3 GPU, and the cluster has 2 in all" in refused
    assert (most, seen) == ("2", "True")


LAME = """
from concurrent.futures import wait
from pathlib import Path
from steadyseg.app.scale.engines.ray_pool import RayPool
from steadyseg.core.errors import InputError
Path(sys.argv[3], "of_a_later_steadyseg.py").write_text("def run(): pass")
sys.path.append(sys.argv[3])
import of_a_later_steadyseg
pool = RayPool(sys.argv[1])
future = pool.submit(of_a_later_steadyseg.run)
wait([future], float(sys.argv[2]))
try:
    pool.result(future)
except InputError as error:
    print(error)
pool.close()
"""


@pytest.mark.usefixtures("token")
def test_a_machine_that_lacks_the_package_says_so(cluster: str, tmp_path: Path) -> None:
    said = on_cluster(cluster, LAME, tmp_path)
    assert "No module named 'of_a_later_steadyseg'); install this version of SteadySeg on every machine" in said
