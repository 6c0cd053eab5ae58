"""Claim: the detectors find each published example and at least 95 of 100 random values, search ordinary
content at 20 MB/s and hostile content at 1 MB/s, and give at most 10 false alarms per 1,000 files.

Random values have 24 characters or more, hexadecimal ones 32. False alarms are counted in what is given:
directories, or git directories, whose newest commit is read. The finds in those of the table REPOSITORIES
were reviewed; in others each counts. `--list` prints the finds. With `--peer` the package detect-secrets, if
installed, gets the same content, which takes fifty times as long. Without a directory our `policy` is read.

    python benchmarks/detection.py [--list] [--peer] [DIRECTORY ...]
"""

from __future__ import annotations

import io
import random
import string
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _size import size

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ringfence.policy.detection.find import MAX_BYTES, find  # noqa: E402
from ringfence.policy.detection.table import TABLE  # noqa: E402
from ringfence.policy.model import Detector  # noqa: E402
from tests.detection.examples import examples  # noqa: E402

VALUES, HOSTILE_BYTES = size((1_000, 1 << 20), (100, 1 << 12))
AT_LEAST_FOUND, MEGABYTES, HOSTILE_MEGABYTES, FALSE_ALARMS = 0.95, 20.0, 1.0, 10.0

# What was measured, each at its commit: fetch them with `git clone`.
REPOSITORIES = {
    "psf/requests": "1f6589ec3a1ee910f9a65cc3ceac60b26677bc0e",
    "pallets/flask": "2ac89889f4cc330eabd50f295dcef02828522c69",
    "expressjs/express": "a3714473feb3d2908add734d340e7755fd85e0a3",
    "gin-gonic/gin": "dcaa4296d111981ffb31ac3eba90bb63e1eb5ab9",
    "BurntSushi/ripgrep": "3fce3b5bb0236da2df6d99672afb8a719642eca7",
    "sinatra/sinatra": "cb22afd7902b566b6eaba6c4ea89739494a65d12",
    "encode/httpx": "ae1b9f66238f75ced3ced5e4485408435de10768",
    "vuejs/core": "e2bede96134f757aad5c5b33ac9be055022dbfc8",
    "redis/redis-py": "34817ce2a2accc893a81180fe737e0c4f5ac6b0c",
    "fsspec/s3fs": "b7ec8db5170d8a9afeeadc9efb7b4292a335bf6b",
}
# Files of them whose finds are secrets by their form: keys and passwords for tests and for documents.
REVIEWED = (
    "testdata/certificate/key.pem",  # gin
    "tests/certs/",  # requests
    "docs/config.rst",  # flask
    "docs/tutorial/deploy.rst",
    "docs/examples/opentelemetry/uptrace.yml",  # redis-py
    "tests/models/test_cookies.py",  # httpx: the cookie of a session
)
HOSTILE = (
    b"-----BEGIN PRIVATE KEY-----\n",
    b"-----BEGIN PRIVATE KEY-----\nQUJD\n",
    b"AKIAIOSFODNN7ABCDEFG ",
    b"secret_key=",
    b"ghp_a1B2c3D4e5",
    b"-xoxb-1-",
    b"eyJhbGciOiJub25lIn0.",
    b"token='aB3dE6gH9jK2mN5pQ8sT1vW4y",
    b"a1_b2-",
)
ALL = [Detector(name) for name in TABLE]
PEERS_NAMES = {
    "private-key": "Private Key",
    "aws-access-key": "AWS Access Key",
    "github-token": "GitHub Token",
    "slack-token": "Slack Token",
    "jwt": "JSON Web Token",
}


def contents(place: Path) -> Iterator[tuple[str, bytes]]:
    """The files below a directory, or of the newest commit of a git directory, by their paths."""
    if (place / "HEAD").is_file():
        command = ["git", "-C", str(place), "archive", "HEAD"]
        archive = subprocess.run(command, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                if member.isfile() and (file := tar.extractfile(member)):
                    yield member.name, file.read()
        return
    for path in sorted(place.rglob("*")):
        if path.is_file() and not path.is_symlink() and ".git" not in path.relative_to(place).parts:
            yield path.relative_to(place).as_posix(), path.read_bytes()


def recall() -> tuple[int, int]:
    """How many published examples are found with exactly their secrets, and how many there are."""
    published = [example for example in examples() if example.source and example.secrets]
    found = [
        example
        for example in published
        if tuple(one.secret for one in find(example.text, [Detector(example.detector)])) == example.secrets
    ]
    return len(found), len(published)


def random_recall(name: str, alphabet: str, length: int) -> float:
    """Which part of random values in quotes is found."""
    chance = random.Random(f"{name}{alphabet}{length}")
    entropy = [Detector("high-entropy")]
    texts = (f'{name} = "{"".join(chance.choices(alphabet, k=length))}"\n' for _ in range(VALUES))
    return sum(bool(find(text.encode(), entropy)) for text in texts) / VALUES


def speed(data: list[bytes], detectors: list[Detector]) -> float:
    """MB/s of processor time."""
    start = time.process_time()
    for one in data:
        find(one, detectors)
    return sum(map(len, data)) / 1e6 / (time.process_time() - start)


def alarms(files: list[tuple[str, bytes]], listed: bool) -> tuple[Counter[str], Counter[str]]:
    """The finds in files, by detector: all of them, and those that are no secret by their form."""
    every: Counter[str] = Counter()
    false: Counter[str] = Counter()
    for name, data in files:
        for one in find(data, ALL):
            every[one.detector.name] += 1
            false[one.detector.name] += not name.startswith(REVIEWED)
            if listed:
                print(f"  {name}: {one.detector} at byte {one.start}: {one.secret[:12].decode()}…")
    return every, false


def peer(files: list[tuple[str, bytes]]) -> None:
    """Print what detect-secrets finds in the same files, and how fast."""
    try:
        from detect_secrets.core.scan import scan_file
        from detect_secrets.settings import default_settings
    except ModuleNotFoundError:
        print("detect-secrets is not installed")
        return
    kinds: Counter[str] = Counter()
    with default_settings():
        print("detect-secrets on the examples:", dict(peer_on_examples(scan_file)))
    with tempfile.TemporaryDirectory() as place, default_settings():
        paths = []
        for name, data in files:
            path = Path(place) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            paths.append(path)
        start = time.process_time()
        for path in paths:
            kinds.update(one.type for one in scan_file(str(path)))
        taken = time.process_time() - start
    rate = sum(len(data) for _, data in files) / 1e6 / taken
    print(f"detect-secrets: {sum(kinds.values())} finds ({dict(kinds)}), {rate:.2f} MB/s")


def peer_on_examples(scan_file: Callable[[str], Iterator[Any]]) -> Counter[str]:
    """What detect-secrets finds in the examples of the formats that it has, too."""
    counts: Counter[str] = Counter()
    for example in examples():
        if example.detector not in PEERS_NAMES:
            continue
        with tempfile.NamedTemporaryFile(suffix=".txt") as file:
            file.write(example.text)
            file.flush()
            kind = PEERS_NAMES[example.detector]
            found = [one.secret_value.encode() for one in scan_file(file.name) if one.type == kind]
        what = "published" if example.source else "other secrets" if example.secrets else "no secrets"
        counts[what] += 1
        counts[f"{what}: reported"] += bool(found)
        if example.secrets:
            counts[f"{what}: exactly"] += sorted(found) == sorted(example.secrets)
    return counts


def main(words: list[str]) -> int:
    """Measure and print; 0 where the claim holds."""
    found, published = recall()
    print(f"published examples: {found} of {published}")
    letters = string.ascii_letters + string.digits
    worst = 1.0
    for name, alphabet, what in (
        ("api_token", letters, "letters and digits, after a name"),
        ("api_token", string.ascii_lowercase + string.digits, "small letters and digits, after a name"),
        ("api_token", string.hexdigits[:16], "hexadecimal, after a name"),
        ("x", letters + "+/", "base64, without a name"),
        ("x", letters + "-_", "URL-safe base64, without a name"),
    ):
        lengths = (16, 20, 24, 32, 40, 64)
        parts = {length: random_recall(name, alphabet, length) for length in lengths}
        shortest = 24 if len(alphabet) > 16 else 32
        worst = min(worst, *(part for length, part in parts.items() if length >= shortest))
        print(f"random {what}:", ", ".join(f"{n}: {part:.1%}" for n, part in parts.items()))

    places = [Path(word) for word in words if not word.startswith("--")] or [ROOT / "policy"]
    files = [file for place in places for file in contents(place) if len(file[1]) <= MAX_BYTES]
    data = [content for _, content in files]
    megabytes = sum(map(len, data)) / 1e6
    for detector in ALL:
        print(f"{detector}: {speed(data, [detector]):.0f} MB/s")
    ordinary = speed(data, ALL)
    slow = min(speed([part * (HOSTILE_BYTES // len(part))], ALL) for part in HOSTILE)
    print(f"all detectors: {ordinary:.0f} MB/s, hostile content at least {slow:.1f} MB/s")

    every, false = alarms(files, "--list" in words)
    rate = sum(false.values()) / len(files) * 1_000
    print(f"{len(files)} files, {megabytes:.1f} MB: {sum(every.values())} finds {dict(every)}")
    per_megabyte = sum(false.values()) / megabytes
    print(f"false alarms: {dict(+false)}, {rate:.1f} per 1,000 files, {per_megabyte:.2f} per MB")
    if "--peer" in words:
        peer(files)
    held = (
        found == published
        and worst >= AT_LEAST_FOUND
        and ordinary >= MEGABYTES
        and slow >= HOSTILE_MEGABYTES
        and rate <= FALSE_ALARMS
    )
    print("the claim holds" if held else "the claim does not hold")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
