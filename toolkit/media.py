"""Images and audio: which of them a content is, by its first bytes.

Pure. A file's name proves nothing, and what has no zero byte is text: an SVG, or a text that begins like an
image.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

MAX_BYTES = 3 << 20  # of one file; in base64 this is 4 MiB, and models take images up to 5 MB of it

_STARTS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
)
_IN_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


@dataclass(frozen=True, slots=True)
class Media:
    """An image or audio that an answer gives: `mime_type` as in `image/png`, and the bytes of the file."""

    path: str
    mime_type: str
    data: bytes = field(repr=False)

    def to_json(self) -> dict[str, str]:
        """Return the fields `path`, `mime_type` and `data` in base64."""
        return {"path": self.path, "mime_type": self.mime_type, "data": self.base64()}

    def base64(self) -> str:
        """Return the bytes in base64."""
        return base64.b64encode(self.data).decode("ascii")

    @property
    def kind(self) -> str:
        """Return `image` or `audio`."""
        return self.mime_type.partition("/")[0]


def mime_type(data: bytes) -> str | None:
    """Return the type of an image or of audio; None for anything else."""
    if b"\0" not in data:
        return None
    if data.startswith(b"RIFF"):
        return _IN_RIFF.get(data[8:12])
    return next((found for start, found in _STARTS if data.startswith(start)), None)
