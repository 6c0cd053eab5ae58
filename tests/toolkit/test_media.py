"""Images and audio by their first bytes, compared with the names that their formats have for themselves."""

from __future__ import annotations

import struct
import wave
import zlib
from io import BytesIO

import pytest

from ringfence.toolkit.media import Media, mime_type


def png() -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"\0\0"))
        + chunk(b"IEND", b"")
    )


def wav() -> bytes:
    out = BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(b"\0\0" * 4)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "want"),
    [
        (png(), "image/png"),
        (wav(), "audio/wav"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "image/jpeg"),
        (b"GIF89a\x01\0\x01\0", "image/gif"),
        (b"RIFF\x1a\0\0\0WEBPVP8 ", "image/webp"),
        (b"OggS\0\x02", "audio/ogg"),
        (b"fLaC\0\0\0\x22", "audio/flac"),
        (b"ID3\x04\0", "audio/mpeg"),
        (b"\xff\xfb\x90\0", "audio/mpeg"),
        (b"RIFF\0\0\0\0AVI ", None),
        (b"GIF89a, a text", None),
        (b"<svg/>", None),
        (b"\x89PN\0", None),
        (b"\0", None),
        (b"", None),
    ],
)
def test_the_type_is_that_of_the_first_bytes(data: bytes, want: str | None) -> None:
    assert mime_type(data) == want
    if want is not None:
        assert Media("a", want, data).kind == want.split("/")[0]
