"""What is written is read again: every frame, at its time, in its colours, and whole even after an interruption."""

import itertools
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from made.processes import free_port
from made.video import grey_frames, quarters
from made.waiting import PATIENCE_S, wait_for
from PIL import Image
from refusals import error_after_work, refusal

from steadyseg.app.sources.open_source import open_source
from steadyseg.app.video.sinks import MaskSink
from steadyseg.app.video.stream_sink import StreamSink
from steadyseg.app.video.video_writer import VideoSink
from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps

PROJECT = Path(__file__).parents[2]


def read(path: Path) -> list[Frame]:
    with open_source(str(path)) as source:
        frames = list(source)
        assert not +source.losses
    return frames


def noise(count: int = 10) -> list[np.ndarray]:
    """Smooth colours, as in real pictures: yuv420p halves the resolution of colour."""
    import cv2

    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 255, (count, 3, 4, 3), np.uint8)
    return [cv2.resize(image, (64, 48), interpolation=cv2.INTER_CUBIC) for image in coarse]


def psnr(left: np.ndarray, right: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / np.square(left.astype(float) - right).mean()))


def written(path: Path, images: Iterable[np.ndarray], times_s: Sequence[float] = (), fps: float = 25.0) -> VideoSink:
    """The sink of a file of 64 x 48 with these images, by default one each 1 / `fps`."""
    with VideoSink(path, 64, 48, fps) as sink:
        for index, image in enumerate(images):
            sink.write(image, times_s[index] if times_s else index / fps)
    return sink


@pytest.mark.parametrize("name", ["out.mp4", "out.MOV", "out.mkv"])
def test_every_frame_comes_back_at_its_time(tmp_path: Path, name: str) -> None:
    images = noise()
    assert written(tmp_path / name, images, fps=30.0).notes == ()
    frames = read(tmp_path / name)
    assert [frame.time_s for frame in frames] == pytest.approx([index / 30 for index in range(10)], abs=1e-3)
    assert min(psnr(frame.image, image) for frame, image in zip(frames, images, strict=True)) > 32
    assert os.listdir(tmp_path) == [name]


def test_the_file_is_what_browsers_play(tmp_path: Path) -> None:
    written(tmp_path / "out.mp4", noise())
    with av.open(str(tmp_path / "out.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.pix_fmt, stream.frames) == ("h264", "yuv420p", 10)
        assert stream.average_rate == 25 and stream.duration * stream.time_base == pytest.approx(0.4)
        assert stream.codec_context.colorspace == stream.codec_context.color_range == 1  # BT.709, limited
    data = (tmp_path / "out.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")


def test_flat_colours_survive(tmp_path: Path) -> None:
    written(tmp_path / "out.mp4", 5 * [quarters()])
    image = read(tmp_path / "out.mp4")[-1].image
    for rows, columns in ((0, 0), (0, 1), (1, 0), (1, 1)):
        inside = np.s_[rows * 24 + 6 : rows * 24 + 18, columns * 32 + 6 : columns * 32 + 26]
        assert np.abs(image[inside].astype(int) - quarters()[inside]).max() <= 4


def test_variable_frame_times_are_kept(tmp_path: Path) -> None:
    times_s = [0.0, 1 / 30, 0.2, 0.25, 3.0, 3.001, 60.0]
    assert written(tmp_path / "out.mp4", noise(7), times_s, fps=30.0).notes == ()
    assert [frame.time_s for frame in read(tmp_path / "out.mp4")] == pytest.approx(times_s, abs=1e-3)


def test_two_frames_of_one_time_are_both_kept_and_said(tmp_path: Path) -> None:
    sink = written(tmp_path / "out.mp4", noise(3), (0.0, 0.0, 0.04))
    assert len(read(tmp_path / "out.mp4")) == 3
    assert sink.notes[0].startswith("1 frames moved to a later time")


def test_odd_sides_are_padded_by_their_own_edge(tmp_path: Path) -> None:
    with VideoSink(tmp_path / "out.mp4", 63, 47, 25.0) as sink:
        for index in range(5):
            sink.write(quarters()[:47, :63], index / 25)
    assert sink.notes == ("padded by one pixel to 64x48 (H.264 needs even sides)",)
    image = read(tmp_path / "out.mp4")[-1].image
    assert image.shape == (48, 64, 3)
    assert np.abs(image[30:, 63].astype(int) - 255).max() < 8 and np.abs(image[47, 40:].astype(int) - 255).max() < 8


def test_a_frame_of_another_size_is_fitted_and_said(tmp_path: Path) -> None:
    sink = written(tmp_path / "out.mp4", (quarters(), np.full((96, 64, 3), 200, np.uint8)))
    assert sink.notes == ("1 frames of another size fitted into 64x48",)
    last = read(tmp_path / "out.mp4")[-1].image
    assert abs(int(last[24, 32, 0]) - 200) < 8 and last[24, 4, 0] < 12


def test_an_interruption_leaves_a_whole_file_of_what_was_written(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), VideoSink(tmp_path / "out.mp4", 64, 48, 25.0) as sink:
        for index, image in enumerate(grey_frames(20)):
            if index == 7:
                raise KeyboardInterrupt
            sink.write(image, index / 25)
    assert [round(frame.image.mean()) for frame in read(tmp_path / "out.mp4")] == pytest.approx(
        [20 + 4 * index for index in range(7)], abs=2
    )
    assert os.listdir(tmp_path) == ["out.mp4"]


def test_without_a_frame_nothing_is_left_behind(tmp_path: Path) -> None:
    with VideoSink(tmp_path / "out.mp4", 64, 48, 25.0):
        assert len(os.listdir(tmp_path)) == 1
    assert os.listdir(tmp_path) == []


def test_a_file_that_appears_meanwhile_is_left_alone_and_the_video_kept(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    with pytest.raises(InputError, match="appeared during the work") as caught, VideoSink(path, 64, 48, 25.0) as sink:
        sink.write(quarters(), 0.0)
        path.write_text("of somebody else")
    assert path.read_text() == "of somebody else"
    (other,) = set(os.listdir(tmp_path)) - {"out.mp4"}
    assert other in str(caught.value) and len(read(tmp_path / other)) == 1


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that even root cannot write to")
@pytest.mark.parametrize(
    "make", [lambda path: VideoSink(path, 64, 48, 25.0).__enter__(), lambda p: MaskSink(p, CAMVID)]
)
def test_a_folder_that_cannot_be_written_to_is_refused(make: object) -> None:
    with pytest.raises(InputError, match="cannot be"):
        make(Path("/proc/out.mp4"))


def made_maps() -> Maps:
    label = (np.arange(48 * 64).reshape(48, 64) % 11).astype(np.uint8)
    entropy = (np.arange(48 * 64).reshape(48, 64) % 256).astype(np.uint8)
    return Maps(label=label, confidence=255 - entropy, entropy=entropy, disagreement=entropy // 2)


def test_masks_come_back_as_ids_and_grey_values(tmp_path: Path) -> None:
    maps = made_maps()
    MaskSink(tmp_path / "masks", CAMVID).write(maps, "000007")
    with Image.open(tmp_path / "masks" / "000007.png") as picture:
        assert picture.mode == "P"
        assert (np.array(picture) == maps.label).all()
        assert (np.array(picture.convert("RGB")) == CAMVID.palette()[maps.label]).all()
    with Image.open(tmp_path / "masks" / "000007_uncertainty.png") as picture:
        assert picture.mode == "L"
        assert (np.array(picture) == maps.entropy).all()
    table = (tmp_path / "masks" / "classes.csv").read_text().splitlines()
    assert (table[0], table[9], table[-1]) == ("id,name,red,green,blue", "8,Car,64,0,128", "11,void,0,0,0")


@pytest.mark.parametrize(
    ("name", "message"), [("full", "is not empty"), ("file", "is a file"), ("no/where", "cannot be")]
)
def test_a_place_that_cannot_take_masks_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "000000.png").touch()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=message):
        MaskSink(tmp_path / name, CAMVID)
    MaskSink(tmp_path / "full", CAMVID, overwrite=True).write(made_maps(), "000000")


RECEIVER = """
import os, sys
import av
options = {"listen": "1"} if sys.argv[1].startswith("rtmp") else {"rtsp_flags": "listen", "listen_timeout": "300"}
with av.open(sys.argv[1], options=options) as container:
    for index, frame in enumerate(container.decode(video=0)):
        print(frame.width, frame.height, frame.key_frame, flush=True)
        if index == 60:
            os._exit(0)
"""


@pytest.mark.parametrize("scheme", ["rtmp", "rtsp"])
def test_a_stream_reaches_a_server_and_its_loss_is_said(scheme: str) -> None:
    address = f"{scheme}://127.0.0.1:{free_port()}/live/word"
    command = [sys.executable, "-c", RECEIVER, address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:

        def connected() -> StreamSink | None:
            try:
                return StreamSink(address, 64, 48, 25.0, Fraction(1)).__enter__()
            except InputError as error:
                assert "Connection refused" in str(error)
                return None

        sink = wait_for(connected)
        with pytest.raises(InputError, match="the stream was lost after") as caught:
            for index in range(100_000):
                sink.write(np.full((48, 64, 3), index % 200, np.uint8), index / 25)
        assert receiver.stdout
        lines = receiver.stdout.read().splitlines()
    assert lines == [f"64 48 {index % 50 == 0}" for index in range(61)], "a key frame every 2 s"
    assert "64x48, 25 frames/s" in sink.notes[0] and "word" not in sink.notes[0] + str(caught.value)


def test_every_frame_of_a_stream_is_sent_before_the_next() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(PATIENCE_S)
        with StreamSink(f"udp://127.0.0.1:{receiver.getsockname()[1]}", 64, 48, 25.0, Fraction(1)) as sink:
            for index, image in enumerate(grey_frames(12)):
                sink.write(image[:, :40], index / 25)
                assert receiver.recv(65536)
    assert sink.notes[1:] == ("12 frames of another size fitted into 64x48",)


def test_a_stream_by_udp_is_a_live_source() -> None:
    address, ended = f"udp://127.0.0.1:{free_port()}", threading.Event()

    def send() -> None:
        with StreamSink(address, 64, 48, 25.0, Fraction(1)) as sink:
            for index in itertools.takewhile(lambda _: not ended.wait(0.01), itertools.count()):
                sink.write(quarters(), index / 25)

    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(send)
        with open_source(address) as source:
            frames = list(itertools.islice(source, 5))
            ended.set()
        sent.result()
    assert source.info.live and {frame.image.shape for frame in frames} == {(48, 64, 3)}


def test_a_server_that_is_not_there_or_never_answers_is_one_line(monkeypatch, capsys):
    command = ["video", "street:7:2", "--model", "street-tiny", "-o"]
    refused = error_after_work(capsys, *command, f"rtmp://me:secret@127.0.0.1:{free_port()}/live/word")
    assert "Connection refused" in refused and "secret" not in refused and "word" not in refused
    assert "not an address (Invalid IPv6 URL)" in error_after_work(capsys, *command, "rtmp://[::1/word")
    assert "no stream is written there; expected rtsp, rtmp" in error_after_work(capsys, *command, "srt://host/x")
    monkeypatch.setattr("steadyseg.app.video.stream_sink.OPEN_S", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sink = StreamSink(f"rtmp://127.0.0.1:{silent.getsockname()[1]}/live/word", 64, 48, 25.0, Fraction(1))
        assert "no answer within 2 s" in refusal(sink.__enter__)
