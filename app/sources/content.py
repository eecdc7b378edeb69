"""What a file or an address holds if it is no readable video: named by its first bytes."""

from pathlib import Path

HEAD = 4096
"""First bytes that are looked at."""
CUT_OFF = (
    "an MP4 or MOV file whose index (moov) is missing or damaged, as after a recording or a copy that was cut off; "
    "copy it again, or repair it with untrunc"
)
PAGE = "a web page; give the address of the video itself, which yt-dlp -g PAGE prints for many sites"
SOUND = "sound without moving pictures"
PICTURE = "a single picture; as a file its name must end in .jpg, .png or another picture's ending"
SIGNATURES = (
    (b"\xff\xd8\xff", PICTURE),
    (b"\x89PNG\r\n", PICTURE),
    (b"II*\0", PICTURE),
    (b"MM\0*", PICTURE),
    (b"ID3", SOUND),
    (b"fLaC", SOUND),
    (b"\xff\xfb", SOUND),
    (b"#EXTM3U", "a playlist, which names other files; give one of them"),
    (b"PK\x03\x04", "a ZIP archive; unpack it"),
    (b"\x1f\x8b", "a gzip archive; unpack it"),
    (b"%PDF", "a PDF document"),
    (b"version https://git-lfs", "a pointer of Git LFS; run git lfs pull"),
)
BOXES = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"uuid", b"pnot")
"""Boxes that begin an MP4 or MOV file (ISO/IEC 14496-12, and QuickTime)."""
MARKUP = (b"<!doctype html", b"<html", b"<head", b"<body", b"<script")


def describe_content(head: bytes) -> str:
    """Words for the first bytes of something that FFmpeg cannot read as a video; empty if they are unknown."""
    if head and not head.strip(b"\0"):
        return "zeros alone, as of a download or a copy that has not finished"
    if head[4:8] in BOXES and head[8:12] not in (b"avif", b"avis", b"heic", b"mif1", b"msf1", b"M4A "):
        return CUT_OFF
    if head[:4] == b"RIFF" and head[8:12] in (b"WEBP", b"WAVE"):
        return PICTURE if head[8:12] == b"WEBP" else SOUND
    if any(mark in head[:1024].lower() for mark in MARKUP):
        return PAGE
    return next((words for start, words in SIGNATURES if head.startswith(start)), "")


def describe_file(path: Path) -> str:
    """Words for the content of a file, as `describe_content`."""
    with path.open("rb") as file:
        return describe_content(file.read(HEAD))
