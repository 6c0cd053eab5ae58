"""The examples of examples.yaml, joined from their pieces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

FILE = Path(__file__).with_name("examples.yaml")


@dataclass(frozen=True)
class Example:
    detector: str
    note: str
    text: bytes
    secrets: tuple[bytes, ...]
    source: str | None

    def __str__(self) -> str:
        return f"{self.detector}: {self.note}"


def examples() -> list[Example]:
    found = []
    for detector, rows in yaml.safe_load(FILE.read_text(encoding="utf-8")).items():
        for row in rows:
            text = "".join(row["text"]).encode()
            secret = row["secret"]
            secrets = [text] if secret is True else ["".join(one).encode() for one in secret or ()]
            found.append(Example(detector, row["note"], text, tuple(secrets), row.get("source")))
    return found
