"""What a session on CUDA is asked for, and what happens where the driver fails."""

from typing import Any

import pytest
from refusals import one_line_error

from steadyseg.export.file.sessions import open_session

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checked_here")]
CUDA = "CUDAExecutionProvider"


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


def test_a_session_gets_the_defaults_and_auto_falls_back_to_the_cpu_in_silence(graphs, asked, capsys):
    file, own = graphs("vq-dnn"), {"cudnn_conv_algo_search": "EXHAUSTIVE", "cudnn_conv_use_max_workspace": "1"}
    capsys.readouterr()  # what the export printed
    for command in (["video", "street:0:1", "--model", file], ["verify", file], ["verify", file, "--reduced"]):
        assert "(the driver is too old)" in one_line_error(capsys, *command, "--device", "cuda")
    assert asked == [own, own | {"use_tf32": "0"}, own]
    assert open_session(file.read_bytes(), "auto")[1] == "cpu" and len(asked) == 4
    assert not capsys.readouterr().out  # ONNX Runtime's own fallback prints its error
