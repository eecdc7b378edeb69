"""Options of ONNX Runtime's CUDA provider: what is refused on any machine, and what a session is asked for."""

from typing import Any

import pytest
import torch
from made.graphs import Graphs
from made.methods import opened
from refusals import one_line_error, refusal

from steadyseg.export.file.sessions import open_session

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checked_here")]
CUDA = "CUDAExecutionProvider"


def test_a_cuda_graph_of_random_masks_is_refused(graphs: Graphs) -> None:
    asked = {"device": "cuda", "provider_options": ("enable_cuda_graph=1",)}
    assert "may repeat the random dropout masks of mode vq-bnn" in refusal(opened, str(graphs("vq-bnn")), **asked)
    if not torch.cuda.is_available():
        assert "device cuda was asked for" in refusal(opened, str(graphs("vq-dnn")), **asked)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The options of each session on CUDA that is tried; every try fails as a driver may fail."""
    import onnxruntime

    if CUDA not in onnxruntime.get_available_providers():
        pytest.skip("this build of ONNX Runtime has no CUDA")
    tried: list[dict[str, Any]] = []

    class Session(onnxruntime.InferenceSession):  # type: ignore[misc]
        def _create_inference_session(self, providers: Any, *others: Any) -> None:
            if providers[0] != "CPUExecutionProvider":
                tried.append(dict(providers[0][1]))
                raise RuntimeError("the driver is too old")
            super()._create_inference_session(providers, *others)

    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    return tried


def test_a_session_gets_the_options_besides_the_defaults(
    graphs: Graphs, asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    file, defaults = graphs("vq-dnn"), {"cudnn_conv_algo_search": "EXHAUSTIVE", "cudnn_conv_use_max_workspace": "1"}
    flags = ["--device", "cuda", "--config", "provider_options=prefer_nhwc=1,cudnn_conv_algo_search=HEURISTIC"]
    own = defaults | {"prefer_nhwc": "1", "cudnn_conv_algo_search": "HEURISTIC"}
    capsys.readouterr()  # what the export printed
    for command in (["video", "street:0:1", "--model", file], ["verify", file], ["verify", file, "--reduced"]):
        assert "(the driver is too old)" in one_line_error(capsys, *command, *flags)
    assert asked == [own, own | {"use_tf32": "0"}, own]


def test_auto_falls_back_to_the_cpu_in_silence_but_not_with_options(
    graphs: Graphs, asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    path = graphs("vq-dnn")
    capsys.readouterr()  # what the export printed
    assert open_session(path.read_bytes(), "auto")[1] == "cpu" and len(asked) == 1
    assert not capsys.readouterr().out  # ONNX Runtime's own fallback prints its error
    for command in (["video", "street:0:1", "--model", path], ["verify", path]):
        refused = one_line_error(capsys, *command, "--config", "provider_options=use_tf32=0")
        assert "the CPU computes here" in refused
