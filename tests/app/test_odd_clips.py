"""Clips that few cameras make: bright and deep colours, no frames, times that no clock shows, damage in the middle."""

import json
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pillow_heif as heif
import pytest
from made.video import quarters
from PIL import Image

from steadyseg.app.cli import main
from steadyseg.app.sources.open_source import open_source
from steadyseg.app.video.flags import VideoJob, VideoOptions
from steadyseg.app.video.job import open_for
from steadyseg.app.video.sinks import MaskSink
from steadyseg.app.video.video_writer import VideoSink
from steadyseg.core.classes import CAMVID
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame, Maps
from steadyseg.runtime.network_plan import StoredNetwork
from steadyseg.runtime.networks import FrameNetwork

MS = Fraction(1, 1000)


def encode(path: Path, images: list[np.ndarray], stamps_ms: list[int] | None = None, **settings: object) -> Path:
    """A video without B-frames whose packets get these stamps; `settings` of the encoder, such as its pixel format."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(str(settings.pop("codec", "libx264")), rate=25, options={"bf": "0"})
        stream.height, stream.width = images[0].shape[:2]
        for name, value in ({"pix_fmt": "yuv420p"} | settings).items():
            setattr(stream if name == "pix_fmt" else stream.codec_context, name, value)
        stream.codec_context.time_base = stream.time_base = MS
        packets = []
        for index, image in enumerate(images):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = 40 * index, MS
            packets += stream.encode(frame)
        for index, packet in enumerate([*packets, *stream.encode()]):
            packet.time_base = MS
            packet.pts = packet.dts = 40 * index if stamps_ms is None else stamps_ms[index]
            container.mux(packet)
    return path


@pytest.mark.parametrize(
    ("suffix", "jump_ms"), [(".mkv", 2**58), (".mp4", 10 * 3_600_000)], ids=["nine million years", "ten hours"]
)
def test_times_that_no_file_can_hold_leave_video_and_report(tmp_path, model, suffix, jump_ms):
    images = [np.full((48, 64, 3), 20 + index, np.uint8) for index in range(5)]
    path = encode(tmp_path / "far.mkv", images, [0, 40, jump_ms, jump_ms + 40, jump_ms + 80])
    out, report = tmp_path / f"out{suffix}", tmp_path / "report.json"
    command = ["video", path, "-o", out, "--report", report, "--model", model, "--backend", "torch"]
    assert main([str(word) for word in command]) == 0
    assert json.loads(report.read_text())["frames"] == 5
    with open_source(str(out)) as source:
        assert len(list(source)) == 5


def test_a_gap_that_mp4_cannot_hold_is_shortened_and_said(tmp_path: Path) -> None:
    with VideoSink(tmp_path / "out.mp4", 64, 48, 25.0) as sink:
        for time_s in (0.0, *(36_000.0 * number for number in range(1, 11)), 360_000.04):
            sink.write(quarters(), time_s)
    assert sink.notes == ("10 gaps between frames shortened to one hour (MP4 holds no long ones)",)
    with open_source(str(tmp_path / "out.mp4")) as source:
        assert [frame.time_s for frame in source] == pytest.approx(
            [*(3600 * number for number in range(11)), 36_000.04]
        )
    with av.open(str(tmp_path / "out.mp4")) as container:  # FFmpeg 5.1 drops frames where a difference exceeds 2^28
        assert all(packet.pts == packet.dts for packet in container.demux())


def test_hdr_is_read_at_8_bits_and_says_that_it_is_not_toned(tmp_path: Path) -> None:
    path = encode(
        tmp_path / "hdr.mkv", 3 * [quarters()], codec="libx265", pix_fmt="yuv420p10le", color_trc=16, color_primaries=9
    )
    with open_source(str(path)) as source:
        notes = " | ".join(source.info.notes)
        assert "colours are reduced to 8 bits" in notes and "HDR (smpte2084)" in notes
        image = next(iter(source)).image
    assert image.shape == (48, 64, 3) and np.abs(image[4:20, 4:28].mean((0, 1)) - (255, 0, 0)).max() < 12


@pytest.mark.slow
def test_a_folder_of_two_shapes_compiles_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, int]] = []
    opened = StoredNetwork.open

    def counting(stored: StoredNetwork, height: int, width: int) -> FrameNetwork:
        made.append((height, width))
        return opened(stored, height, width)

    monkeypatch.setattr(StoredNetwork, "open", counting)
    segmenter = open_for(VideoJob("", options=VideoOptions(model="street-tiny")))
    for index in range(6):
        segmenter.step(Frame(quarters(48, 64 if index % 2 else 84), index, index / 25))
    assert len(made) == 2


def test_masks_that_replace_earlier_ones_leave_none_of_them(tmp_path: Path) -> None:
    shades = np.zeros((4, 8), np.uint8)
    maps = Maps(shades, shades, shades, shades)
    folder = tmp_path / "masks"
    folder.mkdir()
    (folder / "hand_uncertainty.png").touch()
    MaskSink(folder, CAMVID, overwrite=True).write(maps, "2")
    assert (folder / "hand_uncertainty.png").exists(), "the folder was not ours"
    for names in (("0", "1", "2"), ("0",)):
        sink = MaskSink(folder, CAMVID, overwrite=True)
        (folder / "notes.png").write_bytes(b"somebody else's")
        for name in names:
            sink.write(maps, name)
    assert sorted(path.name for path in folder.iterdir()) == ["0.png", "0_uncertainty.png", "classes.csv", "notes.png"]
    MaskSink(folder, CAMVID, overwrite=True)  # before the first frame, nothing is lost
    assert (folder / "0.png").exists()


def test_pictures_of_a_phone_are_read_whole(tmp_path: Path) -> None:
    """The whole picture is read, not one of its four tiles. HEIC differs by a few levels: its encoder is lossy."""
    tiles = Path(__file__).parent / "tiles.avif"
    (frame,) = open_source(str(tiles))
    assert frame.image.shape == (1024, 1024, 3) and frame.image[-1, -1].tolist() == [0, 255, 255]
    picture = np.repeat(np.arange(0, 240, 2, np.uint8)[None, :, None], 90, 0).repeat(3, 2)
    heif.from_pillow(Image.fromarray(picture)).save(tmp_path / "a.HEIC", quality=95)
    (frame,) = open_source(str(tmp_path / "a.HEIC"))
    assert frame.image.shape == picture.shape and np.abs(frame.image.astype(int) - picture).mean() < 3


def test_a_file_of_several_pictures_is_no_frame(tmp_path: Path) -> None:
    several = heif.from_pillow(Image.new("RGB", (32, 32)))
    several.add_from_pillow(Image.new("RGB", (32, 32), "red"))
    several.save(tmp_path / "two.heic")
    with pytest.raises(InputError, match="several pictures in one file"):
        list(open_source(str(tmp_path / "two.heic")))


def test_pixels_that_are_not_square_stay_so_in_the_video(tmp_path: Path, model: str) -> None:
    film = encode(tmp_path / "film.mp4", 2 * [quarters()], sample_aspect_ratio=Fraction(64, 45))
    command = ["video", film, "-o", tmp_path / "out.mp4", "--model", model, "--backend", "torch"]
    assert main([str(word) for word in command]) == 0
    with open_source(str(film)) as one, open_source(str(tmp_path / "out.mp4")) as other:
        assert one.info.pixel_shape == other.info.pixel_shape == Fraction(64, 45)


def test_a_clock_is_no_frame_rate(tmp_path: Path) -> None:
    """A browser's WebM announces 1000 frames a second: one for each millisecond of its clock."""
    path = tmp_path / "browser.webm"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libvpx", rate=1000)
        stream.height, stream.width, stream.pix_fmt = 48, 64, "yuv420p"
        stream.codec_context.time_base = stream.time_base = MS
        for index in range(12):
            frame = av.VideoFrame.from_ndarray(quarters(), format="rgb24")
            frame.pts, frame.time_base = 50 * index, MS
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    with av.open(str(path)) as container:
        assert container.streams.video[0].average_rate == 1000
    with open_source(str(path)) as source:
        assert source.info.fps == pytest.approx(20) and len(list(source)) == 12


def test_raw_h264_has_the_rate_that_its_stream_says(tmp_path: Path) -> None:
    """FFmpeg announces 25 for any raw stream."""
    path = tmp_path / "raw.h264"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=60)
        stream.height, stream.width, stream.pix_fmt = 48, 64, "yuv420p"
        for _ in range(4):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(quarters(), format="rgb24")))
        container.mux(stream.encode())
    with open_source(str(path)) as source:
        assert source.info.fps == 60 and [frame.time_s for frame in source] == pytest.approx(
            [0, 1 / 60, 2 / 60, 3 / 60]
        )
