"""Every kind of source, with good and hostile input."""

import gc
import io
import os
import threading
import tty
from collections import Counter
from fractions import Fraction
from functools import partial
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from av.stream import Disposition
from made.video import grey_frames, quarters, write_audio, write_video
from PIL import Image
from refusals import refusal

from steadyseg.app.sources.live import CameraConnection, LiveSource, Wanted
from steadyseg.app.sources.open_source import open_source
from steadyseg.app.sources.source import describe_losses
from steadyseg.app.sources.times import FrameClock
from steadyseg.core.errors import InputError
from steadyseg.core.frame import Frame
from steadyseg.core.system.pictures import natural_order


def read(spec: str | Path, **options: object) -> tuple[list[Frame], Counter[str]]:
    with open_source(spec, **options) as source:
        return list(source), +source.losses


def save(path: Path, image: np.ndarray, mode: str | None = None) -> Path:
    path.parent.mkdir(exist_ok=True)
    picture = Image.fromarray(image)
    (picture if mode is None else picture.convert(mode)).save(path)
    return path


def test_times_start_at_zero_where_the_stamps_do_not(tmp_path: Path) -> None:
    frames, _ = read(write_video(tmp_path / "made.ts", grey_frames(5)))
    assert [frame.time_s for frame in frames] == pytest.approx([index / 25 for index in range(5)], abs=1e-4)


def test_a_file_says_what_it_is_and_gives_every_frame_in_order_with_its_time(tmp_path: Path) -> None:
    made = grey_frames(30)
    with open_source(str(write_video(tmp_path / "made.mp4", made, audio=True))) as source:
        info, frames = source.info, list(source)
        assert (info.width, info.height, info.fps, info.length, info.live) == (64, 48, 25.0, 30, False)
        assert info.notes == ("audio is not copied",) and source.frame_name(7) == "000007"
        assert not +source.losses
        with pytest.raises(RuntimeError, match="open it again"):
            iter(source)
    assert [round(frame.image.mean()) for frame in frames] == pytest.approx([image.mean() for image in made], abs=2)
    assert [frame.index for frame in frames] == list(range(30))
    assert [frame.time_s for frame in frames] == pytest.approx([index / 25 for index in range(30)], abs=1e-6)
    assert [frame.discontinuity for frame in frames] == [True] + 29 * [False]


@pytest.mark.parametrize(
    ("matrix", "expected", "note"),
    [  # (a, b, c, d) of the QuickTime track header; the first is what a phone held upright writes
        ((0, 1, -1, 0), np.rot90(quarters(), -1), "turned clockwise by 90 degrees as the file asks"),
        ((0, -1, 1, 0), np.rot90(quarters(), 1), "turned clockwise by 270 degrees as the file asks"),
        ((-1, 0, 0, -1), np.rot90(quarters(), 2), "turned clockwise by 180 degrees as the file asks"),
        ((-1, 0, 0, 1), quarters()[:, ::-1], "mirrored as the file asks"),
    ],
)
def test_the_display_matrix_is_obeyed(tmp_path: Path, matrix: tuple[int, ...], expected: np.ndarray, note: str) -> None:
    a, b, c, d = (65536 * value for value in matrix)
    path = write_video(tmp_path / "made.mp4", 3 * [quarters()], matrix=[a, b, 0, c, d, 0, 0, 0, 1 << 30])
    with open_source(str(path)) as source:
        image = next(iter(source)).image
        assert (source.info.height, source.info.width) == expected.shape[:2]
        assert note in source.info.notes
    assert image.shape == expected.shape
    assert np.abs(image.astype(int) - expected).mean() < 12  # the chroma of the edges is subsampled


def test_a_decoded_picture_is_freed_without_the_garbage_collector(tmp_path: Path) -> None:
    write_video(tmp_path / "made.mp4", grey_frames(30))
    gc.collect()
    gc.disable()
    try:
        before = pictures_in_memory()  # of earlier tests
        read(tmp_path / "made.mp4")
        assert pictures_in_memory() == before
    finally:
        gc.enable()


def pictures_in_memory() -> int:
    return sum(type(one) is av.VideoFrame for one in gc.get_objects())


@pytest.fixture
def noisy(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A file whose 60 frames of noise take many bytes; its index is at the front."""
    rng = np.random.default_rng(0)
    noise = [rng.integers(0, 255, (96, 128, 3), np.uint8) for _ in range(60)]
    name = getattr(request, "param", "noisy.mp4")
    options = {"movflags": "+faststart"} if name == "noisy.mp4" else {}
    return write_video(tmp_path / name, noise, audio="sound" in name, **options)


@pytest.mark.parametrize("noisy", ["noisy.mp4", "noisy.mkv", "sound.mkv"], indirect=True)
def test_a_truncated_file_gives_what_it_has_and_counts_the_rest(noisy: Path) -> None:
    """Matroska announces no number of frames but a duration."""
    assert not read(noisy)[1]
    noisy.write_bytes(noisy.read_bytes()[: noisy.stat().st_size // 2])
    frames, losses = read(noisy)
    assert 10 < len(frames) < 50 and losses["missing_frames"] == 60 - len(frames)
    assert f"{60 - len(frames)} frames that the file announces but did not deliver" in describe_losses(losses)


def test_sound_that_outlasts_the_frames_is_no_loss(tmp_path: Path) -> None:
    assert not read(write_video(tmp_path / "sound.mkv", grey_frames(3), fps=500, audio=True))[1]


def test_a_damaged_stretch_is_counted_and_the_frames_after_it_still_come(noisy: Path) -> None:
    data = bytearray(noisy.read_bytes())
    middle, length = len(data) // 2, len(data) // 10
    data[middle : middle + length] = bytes(length)
    noisy.write_bytes(data)
    frames, losses = read(noisy)
    assert losses["decode_error"] + losses["corrupt_frame"] > 0
    assert frames[-1].time_s > 2.2 and len(frames) + losses["missing_frames"] == 60


def test_a_jpeg_of_many_scans_is_a_damaged_frame(tmp_path: Path) -> None:
    """FFmpeg takes 0.9 ms for each scan of 23 bytes of a large picture, and cannot be stopped in the meantime."""
    encoded = cv2.imencode(".jpg", np.zeros((64, 64), np.uint8), [cv2.IMWRITE_JPEG_PROGRESSIVE, 1])[1].tobytes()
    last = encoded[encoded.rfind(b"\xff\xda") : -2]
    with av.open(str(tmp_path / "scans.mkv"), "w") as container:
        stream = container.add_stream("mjpeg", rate=25, options={"strict": "-1"})
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuvj420p"
        for index, data in enumerate((encoded, encoded[:-2] + 200 * last + encoded[-2:], encoded)):
            packet = av.Packet(data)
            packet.stream, packet.pts, packet.dts, packet.time_base = stream, 40 * index, 40 * index, Fraction(1, 1000)
            container.mux(packet)
    with open_source(str(tmp_path / "scans.mkv")) as source:
        assert len(list(source)) == 2 and source.losses["decode_error"] == 1


def test_a_size_change_is_a_discontinuity_and_counted(tmp_path: Path) -> None:
    small = write_video(tmp_path / "small.ts", grey_frames(10))
    large = write_video(tmp_path / "large.ts", grey_frames(10, 96, 128))
    both = tmp_path / "both.ts"
    both.write_bytes(small.read_bytes() + large.read_bytes())
    frames, losses = read(both)
    shapes = [frame.image.shape for frame in frames]
    assert set(shapes) == {(48, 64, 3), (96, 128, 3)}
    first_large = shapes.index((96, 128, 3))
    assert frames[first_large].discontinuity
    assert losses["size_change"] == 1
    times = np.array([frame.time_s for frame in frames])
    assert (np.diff(times) > 0).all() and times[-1] < 1.0  # the second part's stamps restart; a gap would be larger


def test_frames_that_are_too_large_are_refused_wherever_they_come(tmp_path: Path) -> None:
    """The decoder refuses them by its own limit: checked after decoding, the memory would be taken."""
    small = write_video(tmp_path / "small.ts", grey_frames(10))
    large = write_video(tmp_path / "large.ts", grey_frames(10, 96, 128))
    (tmp_path / "both.ts").write_bytes(small.read_bytes() + large.read_bytes())
    frames, losses = read(tmp_path / "both.ts", max_pixels=64 * 48)
    assert {frame.image.shape for frame in frames} == {(48, 64, 3)} and losses["decode_error"] > 0
    refused = "96; expected .* at most 0.0 million pixels|are its frames larger than 0.0 million"
    save(tmp_path / "large.png", quarters(96, 128))
    for name in ("large.ts", "large.png"):
        with pytest.raises(InputError, match=refused):
            open_source(str(tmp_path / name), max_pixels=64 * 48)
    assert len(read(tmp_path / "large.ts", max_pixels=96 * 128)[0]) == 10


def test_alpha_is_said(tmp_path: Path) -> None:
    for codec, kind, name, said in (("png", "rgba", "a.mov", True), ("png", "rgb24", "b.mov", False)):
        with av.open(str(tmp_path / name), "w") as container:
            stream = container.add_stream(codec, rate=25)
            stream.height, stream.width, stream.pix_fmt = 48, 64, kind
            image = np.full((48, 64, len(kind[:4].rstrip("2"))), 90, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format=kind)))
            container.mux(stream.encode())
        with open_source(tmp_path / name) as source:
            assert any("transparency" in note for note in source.info.notes) == said


def test_a_cover_picture_is_no_video(tmp_path: Path) -> None:
    sound = write_audio(tmp_path / "sound.m4a")
    cover = save(tmp_path / "cover.png", quarters()).read_bytes()
    with av.open(str(sound)) as read, av.open(str(tmp_path / "song.m4a"), "w", format="mp4") as written:
        for one in (written.add_stream_from_template(read.streams.audio[0]), written.add_stream("png", rate=1)):
            if one.type == "video":
                one.width, one.height, one.pix_fmt, one.disposition = 64, 48, "rgb24", Disposition.attached_pic
        for packet in read.demux():
            if packet.dts is not None:
                packet.stream = written.streams.audio[0]
                written.mux(packet)
        packet = av.Packet(cover)
        packet.stream, packet.pts, packet.dts = written.streams.video[0], 0, 0
        written.mux(packet)
    assert "(streams: audio, a cover picture)" in refusal(open_source, str(tmp_path / "song.m4a"))


@pytest.mark.parametrize("name", ["a.avi", "a.asf"])
def test_frames_have_their_times_where_the_file_has_decoding_times_alone(tmp_path: Path, name: str) -> None:
    """Also after a lost packet: soon the times are right again."""
    whole = write_video(tmp_path / name, grey_frames(90), fps=10)
    frames, losses = read(whole)
    assert [frame.time_s for frame in frames] == pytest.approx([index / 10 for index in range(90)])
    assert not losses["mended_time"]
    lossy = tmp_path / f"lossy-{name}"
    with av.open(str(whole)) as container, av.open(str(lossy), "w") as copy:
        stream = copy.add_stream_from_template(container.streams.video[0])
        for number, packet in enumerate(container.demux()):
            if packet.dts is not None and number != 13:
                packet.stream = stream
                copy.mux(packet)
    frames, losses = read(lossy)
    assert len(frames) == 89 and [frame.time_s for frame in frames[-30:]] == pytest.approx(np.arange(60, 90) / 10)


def test_a_file_without_a_rate_has_the_rate_of_its_frames(tmp_path: Path) -> None:
    """As browsers write it: the first step is odd, and milliseconds are whole."""
    times_s = [0, 0.002, *(round(index / 15, 3) for index in range(1, 20))]
    with av.open(str(tmp_path / "a.webm"), "w") as container:
        stream = container.add_stream("libvpx", rate=1000)
        stream.height, stream.width, stream.pix_fmt = 48, 64, "yuv420p"
        for image, time_s in zip(grey_frames(21), times_s, strict=True):
            frame = av.VideoFrame.from_ndarray(image)
            frame.pts, frame.time_base = round(time_s * 1000), Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    with open_source(tmp_path / "a.webm") as source:
        assert source.info.fps == pytest.approx(15, rel=0.02)


@pytest.mark.parametrize("cut_s", [0.2, 0.28, 0.4], ids=["between key frames", "between others", "at a key frame"])
def test_frames_cut_off_by_an_edit_list_are_not_missing(tmp_path: Path, cut_s: float) -> None:
    times_s = [index / 25 - cut_s for index in range(30)]
    with open_source(str(write_video(tmp_path / "made.mp4", grey_frames(30), times_s=times_s))) as source:
        frames = list(source)
        assert len(frames) == source.info.length == 30 - round(25 * cut_s)
        assert not +source.losses


def test_the_real_clip_is_read_in_full(data_dir: Path) -> None:
    with open_source(str(data_dir / "video" / "udacity_solidWhiteRight.mp4")) as source:
        assert (source.info.width, source.info.height, source.info.fps, source.info.length) == (960, 540, 25.0, 221)
        assert source.info.notes == ("audio is not copied",)
        times = [frame.time_s for frame in source]
        assert times == pytest.approx([index / 25 for index in range(221)], abs=1e-6)
        assert not +source.losses


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files that are no sources."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "empty.mp4").touch()
    (folder / "text.mp4").write_text("hello world\n" * 100)
    write_audio(folder / "sound.mp4")
    data = write_video(folder / "whole.mp4", grey_frames(30), movflags="+faststart").read_bytes()
    (folder / "headers.mp4").write_bytes(data[: data.index(b"mdat") + 4])
    write_video(folder / "huge.mp4", [np.zeros((16, 8208, 3), np.uint8)])
    whole = write_video(folder / "late.mp4", grey_frames(9)).read_bytes()
    (folder / "cut.mp4").write_bytes(whole[: whole.rindex(b"moov") - 4])
    (folder / "page.mp4").write_text("\n<!DOCTYPE html><title>A video</title>")
    (folder / "zeros.mkv").write_bytes(bytes(9000))
    save(folder / "picture.png", quarters()).rename(folder / "picture.mp4")
    for name in ("images", "nothing"):
        (folder / name).mkdir()
    (folder / "images" / "a.png").write_text("not an image")
    os.mkfifo(folder / "pipe.mp4")
    return folder


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("absent.mp4", "expected a video file, an image folder"),
        ("empty.mp4", "empty (0 bytes)"),
        ("text.mp4", "not a readable video (Invalid data"),
        ("sound.mp4", "no video stream (streams: audio)"),
        ("headers.mp4", "headers.mp4: "),
        ("cut.mp4", "it is an MP4 or MOV file whose index (moov) is missing or damaged"),
        ("page.mp4", "it is a web page; give the address of the video"),
        ("zeros.mkv", "it is zeros alone"),
        ("picture.mp4", "it is a single picture"),
        ("huge.mp4", "frames are 8208x16; expected 1 to 8192"),
        ("images", "none of the 1 images can be read"),
        ("nothing", "holds no images; expected .png"),
        ("pipe.mp4", "neither a regular file nor a folder"),
        ("a\0b", "no such file or folder: 'a\\x00b'"),
        (1000 * "a", "cannot be looked at (File name too long)"),
        ("/dev/null", "camera /dev/null: does not open"),
        ("street:one", "expected street, street:SEED"),
        ("street:1:0", "expected street, street:SEED"),
        ("ftp://somewhere/film.mp4", "cannot read ftp://; expected rtsp, rtsps, http, https"),
    ],
)
def test_what_is_no_source_is_refused_in_one_line(hostile, monkeypatch, spec, message):
    monkeypatch.chdir(hostile)
    assert message in refusal(open_source, spec)


def test_a_playlist_cannot_make_a_file_source_read_other_files(tmp_path: Path) -> None:
    write_video(tmp_path / "other.mp4", grey_frames(3))
    playlist = tmp_path / "playlist.mp4"
    playlist.write_text("ffconcat version 1.0\nfile other.mp4\n")
    with av.open(str(playlist)) as container:  # without limits FFmpeg follows it
        assert container.format.name == "concat"
    with pytest.raises(InputError, match="not a readable video"):
        open_source(str(playlist))


def test_a_folder_is_read_in_natural_order(tmp_path: Path) -> None:
    for index, name in enumerate(("frame2.png", "frame10.jpg", "frame100.bmp")):
        save(tmp_path / "images" / name, np.full((20, 30, 3), 40 * index, np.uint8))
    (tmp_path / "images" / "notes.txt").write_text("not an image")
    frames, losses = read(tmp_path / "images")
    assert [round(frame.image.mean()) for frame in frames] == [0, 40, 80]
    assert [frame.time_s for frame in frames] == [0, 0.04, 0.08]
    assert not losses
    assert sorted(["b1", "a12", "a2", "a02x"], key=natural_order) == ["a2", "a02x", "a12", "b1"]


def test_other_kinds_of_image_are_converted_and_said(tmp_path: Path) -> None:
    image = quarters(20, 30)
    for index, mode in enumerate(("RGB", "L", "RGBA", "P")):
        save(tmp_path / "images" / f"{index}.png", image, mode)
    Image.fromarray(np.full((20, 30), 40_000, np.uint16)).save(tmp_path / "images" / "4.png")
    with open_source(str(tmp_path / "images")) as source:
        frames = list(source)
        for kind in ("grey", "transparent", "palette", "high-depth"):
            assert f"1 {kind} images are converted to 8-bit RGB" in source.info.notes
    assert [frame.image.shape for frame in frames] == 5 * [(20, 30, 3)]
    assert (frames[2].image == image).all()
    assert abs(frames[4].image.mean() - 40_000 / 257) < 1


def test_unreadable_images_are_counted_and_keep_their_number(tmp_path: Path) -> None:
    for index in (0, 2):
        save(tmp_path / "images" / f"{index}.png", quarters())
    (tmp_path / "images" / "1.png").write_text("not an image")
    frames, losses = read(tmp_path / "images")
    assert [frame.index for frame in frames] == [0, 2]
    assert losses == {"decode_error": 1}


def test_images_of_other_sizes_are_discontinuities(tmp_path: Path) -> None:
    for index, height in enumerate((20, 20, 40)):
        save(tmp_path / "images" / f"{index}.png", quarters(height))
    with open_source(str(tmp_path / "images")) as source:
        assert [frame.discontinuity for frame in source] == [True, False, True]
        assert "the images differ in size" in source.info.notes
        assert source.losses["size_change"] == 1


def test_images_of_one_name_get_different_frame_names(tmp_path: Path) -> None:
    save(tmp_path / "images" / "a.png", quarters())
    save(tmp_path / "images" / "a.jpg", quarters())
    with open_source(str(tmp_path / "images")) as source:
        assert {source.frame_name(0), source.frame_name(1)} == {"a.png", "a.jpg"}


@pytest.mark.parametrize("name", ["0", "street", "street:7"])
def test_a_path_is_a_file_whatever_its_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_video(tmp_path / "made.mp4", grey_frames(3)).rename(name)
    frames, _ = read(Path(name))
    assert len(frames) == 3


def test_a_camera_that_is_not_there_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    level = cv2.utils.logging.getLogLevel()
    assert "camera 97: does not open" in refusal(open_source, "97:1280x720:30:MJPG")
    assert "camera 97: does not open" in refusal(open_source, 97)
    assert capfd.readouterr() == ("", "") and cv2.utils.logging.getLogLevel() == level


def test_a_camera_gives_rgb_frames_and_is_tried_again_when_it_ends(tmp_path: Path) -> None:
    """OpenCV opens a file by path as it opens a camera: the end of the file is the unplugged camera."""
    path = str(write_video(tmp_path / "made.mp4", 4 * [quarters()]))
    wanted = Wanted(640, 480, 30, "MJPG")
    source = LiveSource(partial(CameraConnection, path, wanted=wanted), first_delay_s=0.0)
    assert source.info.notes[0].startswith("the driver gives 64x48, ") and source.info.notes[0].endswith(
        " frames/s, h264"
    )
    with source:
        frames = []
        for frame in source:
            frames.append(frame)
            if len(frames) == 5:
                source.stop()
    assert source.info.live and (source.info.width, source.info.height) == (64, 48)
    assert np.abs(frames[0].image[4:20, 4:28].mean((0, 1)) - (255, 0, 0)).max() < 12
    assert [frame.discontinuity for frame in frames] == [True, False, False, True, False]
    assert source.losses["reconnect"] == 1
    assert (np.diff([frame.time_s for frame in frames]) > 0).all()


@pytest.mark.slow
def test_a_device_that_is_unplugged_ends_in_one_line() -> None:
    """A terminal stands for the device: its pictures stop, reading fails, and then its name is gone."""
    ours, its = os.openpty()
    tty.setraw(its)
    device, picture = os.ttyname(its), io.BytesIO()
    os.close(its)
    noise = np.random.default_rng(0).integers(0, 255, (48, 64, 3), np.uint8)
    Image.fromarray(noise).save(picture, "jpeg")

    def plugged_in() -> None:
        for _ in range(200):
            os.write(ours, picture.getvalue())
        os.close(ours)

    its = os.open(device, os.O_RDWR | os.O_NOCTTY)  # what is written before the camera is opened is not lost
    camera = threading.Thread(target=plugged_in)
    camera.start()
    frames = []
    connect = partial(CameraConnection, device, wanted=Wanted())
    with LiveSource(connect, first_delay_s=0.01) as source:
        os.close(its)
        with pytest.raises(InputError, match="lost, and gone after 8 attempts to reconnect"):
            frames.extend(source)
    camera.join()
    assert source.losses["read_error"] == 1


def times(stamps: list[float | None]) -> tuple[list[float], int]:
    losses: Counter[str] = Counter()
    clock = FrameClock(0.1, losses)
    return [clock(stamp) for stamp in stamps], losses["mended_time"]


@pytest.mark.parametrize(
    ("stamps", "expected", "mended"),
    [
        ([5.0, 5.1, 5.3], [0, 0.1, 0.3], 0),
        ([None, None, None], [0, 0.1, 0.2], 3),
        ([0.0, None, 0.2], [0, 0.1, 0.2], 1),
        ([0.0, float("nan"), 0.2], [0, 0.1, 0.2], 1),
        ([0.0, 0.1, 0.1, 0.3], [0, 0.1, 0.2, 0.3], 1),
        ([0.0, 0.1, 0.05, 0.3], [0, 0.1, 0.2, 0.3], 1),
        ([8.0, 8.1, 0.0, 0.1, 0.2, 0.9], [0, 0.1, 0.2, 0.3, 0.4, 1.1], 2),
        ([0.0, 2.0**48, 0.2, 0.3, 0.4], [0, 0.1, 0.2, 0.3, 0.4], 3),
        ([0.0, 2.0**48, 2.0**48 + 1, 2.0**48 + 2], [0, 0.1, 1.09375, 2.09375], 1),
    ],
    ids=[
        "offset",
        "none at all",
        "one missing",
        "not a number",
        "repeated",
        "backward",
        "started anew",
        "one far away",
        "far away for good",
    ],
)
def test_stamps_become_rising_seconds(stamps: list[float | None], expected: list[float], mended: int) -> None:
    seconds, count = times(stamps)
    assert seconds == pytest.approx(expected)
    assert count == mended


def test_after_a_restart_the_clock_goes_on_from_the_given_time() -> None:
    clock = FrameClock(0.1, Counter())
    assert [clock(0.0), clock(0.1)] == pytest.approx([0, 0.1])
    clock.restart(3.0)
    assert [clock(77.0), clock(77.5)] == pytest.approx([3.0, 3.5])
    clock.restart(1.0)
    assert clock(0.0) == pytest.approx(3.6)
