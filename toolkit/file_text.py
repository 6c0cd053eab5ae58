"""Text of a file: UTF-8, or UTF-16 and UTF-32 with a byte order mark, which tools read and edit as UTF-8.

Pure. What was decoded is encoded to the same bytes again, so an edit leaves all other bytes as they were.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.policy.detection.encodings import encoding

UTF_8, UNKNOWN = "utf-8", "unknown"
WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


@dataclass(frozen=True, slots=True)
class FileText:
    """A file's bytes, and `data`, the text in them as UTF-8 without a mark of UTF-16 or UTF-32.

    `codec` is None where `data` are the bytes as they are: UTF-8, or what is no text in any of the encodings.
    """

    raw: bytes
    data: bytes
    codec: str | None = None

    @property
    def encoding(self) -> str:
        """The name of the encoding: `utf-8`, `utf-16-le`, …, or `unknown`."""
        if self.codec is not None:
            return self.codec
        try:
            self.raw.decode(UTF_8)
        except UnicodeDecodeError:
            return UNKNOWN
        return UTF_8

    @property
    def invalid(self) -> bool:
        """Whether the bytes begin with a mark of UTF-16 or UTF-32, and are no text in it."""
        return self.codec is None and encoding(self.raw).codec != UTF_8

    def encoded(self, data: bytes) -> bytes:
        """Return other text in UTF-8 as the bytes of such a file, with the mark of this one."""
        if self.codec is None:
            return data
        return self.raw[: encoding(self.raw).mark] + data.decode(UTF_8).encode(self.codec)


def text_of(data: bytes) -> bytes:
    """Return the text of a file as UTF-8, where how it is encoded does not matter."""
    return data if encoding(data).codec == UTF_8 else file_text(data).data


def file_text(data: bytes) -> FileText:
    """Return the text of a file; a content in no known encoding is returned as it is."""
    how = encoding(data)
    if how.codec == UTF_8:
        return FileText(data, data)
    try:
        text = data[how.mark :].decode(how.codec)
    except UnicodeDecodeError:
        return FileText(data, data)
    return FileText(data, text.encode(UTF_8), how.codec)
