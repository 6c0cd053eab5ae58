"""The detectors on examples, in several encodings, and on keys and tokens that other programs make."""

from __future__ import annotations

import base64
import json
import random
import string
import zlib
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from ringfence.policy.detection.find import find
from ringfence.policy.detection.table import TABLE
from ringfence.policy.detection.token_formats import has_checksum
from ringfence.policy.model import DETECTORS, Detector
from tests.detection.examples import Example, examples

EXAMPLES = examples()


def secrets(data: bytes, name: str) -> list[bytes]:
    return [found.secret for found in find(data, [Detector(name)])]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_gives_its_secrets(example: Example) -> None:
    assert secrets(example.text, example.detector) == list(example.secrets)


@pytest.mark.parametrize("name", TABLE)
def test_each_detector_has_examples_of_both_kinds(name: str) -> None:
    mine = [example for example in EXAMPLES if example.detector == name]
    assert len([example for example in mine if example.secrets]) >= 3
    assert len([example for example in mine if not example.secrets]) >= 3


def test_the_table_has_every_detector_but_the_expression() -> None:
    assert (*TABLE, "match") == DETECTORS


@pytest.mark.parametrize("name", TABLE)
def test_every_find_contains_a_marker(name: str) -> None:
    """Content without a marker is not searched."""
    for example in EXAMPLES:
        if example.detector == name and example.secrets and TABLE[name].markers:
            assert any(marker in example.text for marker in TABLE[name].markers)


@pytest.mark.parametrize("example", [one for one in EXAMPLES if one.secrets], ids=str)
@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_utf_16_and_utf_32_are_searched_as_text(example: Example, codec: str) -> None:
    text = f"\ufeffé€𝄞 {example.text.decode()}"
    data = text.encode(codec)
    found = find(data, [Detector(example.detector)])
    assert [one.secret for one in found] == list(example.secrets)
    assert [data[one.start : one.end].decode(codec).encode() for one in found] == list(example.secrets)


@pytest.mark.parametrize("example", [one for one in EXAMPLES if one.secrets], ids=str)
def test_bytes_that_are_no_text_do_not_hide_it(example: Example) -> None:
    data = b"\x00\xff\xfe\x80\n" + example.text + b"\n\xe2\x82\x00"
    found = find(data, [Detector(example.detector)])
    assert [one.secret for one in found] == list(example.secrets)
    assert [data[one.start : one.end] for one in found] == list(example.secrets)


@pytest.mark.parametrize("example", [one for one in EXAMPLES if one.detector == "private-key"], ids=str)
def test_a_key_is_found_with_the_line_ends_of_windows(example: Example) -> None:
    wanted = [one.replace(b"\n", b"\r\n") for one in example.secrets]
    assert secrets(example.text.replace(b"\n", b"\r\n"), "private-key") == wanted


def keys() -> Iterator[tuple[str, bytes]]:
    """Private keys in each format that the package `cryptography` writes."""
    made = {
        "rsa": rsa.generate_private_key(65537, 1024),  # short: only its text matters
        "ec": ec.generate_private_key(ec.SECP256R1()),
        "ed25519": ed25519.Ed25519PrivateKey.generate(),
    }
    pem = serialization.Encoding.PEM
    for name, key in made.items():
        for form in ("PKCS8", "TraditionalOpenSSL", "OpenSSH"):
            if (name, form) == ("ed25519", "TraditionalOpenSSL"):
                continue
            for lock in (serialization.NoEncryption(), serialization.BestAvailableEncryption(b"word")):
                yield (
                    f"{name} {form} {type(lock).__name__}",
                    key.private_bytes(pem, getattr(serialization.PrivateFormat, form), lock),
                )


def test_keys_of_another_program_are_found_whole() -> None:
    made = list(keys())
    assert len(made) == 16
    for what, key in made:
        assert secrets(b"before\n" + key + b"after\n", "private-key") == [key.strip()], what
        quoted = json.dumps({"key": key.decode()}).encode()
        ((start, end),) = [(one.start, one.end) for one in find(quoted, [Detector("private-key")])]
        assert quoted[start:end] == json.dumps(key.decode().strip())[1:-1].encode(), what
        cut = key[: len(key) * 2 // 3]
        assert secrets(cut, "private-key") == [cut.rstrip()], what


def base62(number: int, digits: str = string.digits + string.ascii_letters.swapcase()) -> str:
    """By recursion, from the other end than the program."""
    return digits[0] if number == 0 else base62(number // 62).lstrip("0") + digits[number % 62]


def github(kind: str, chance: random.Random) -> bytes:
    body = "".join(chance.choices(string.ascii_letters + string.digits, k=30))
    return f"{kind}_{body}{base62(zlib.crc32(body.encode())).rjust(6, '0')}".encode()


@pytest.mark.parametrize("kind", ["ghp", "gho", "ghu", "ghs", "ghr"])
def test_a_token_needs_its_checksum(kind: str) -> None:
    chance = random.Random(kind)
    for _ in range(200):
        token = github(kind, chance)
        assert secrets(b"token " + token, "github-token") == [token]
        at = chance.randrange(4, 40)
        other = bytes([token[at] ^ 1])
        if other.isalnum():
            assert secrets(token[:at] + other + token[at + 1 :], "github-token") == []


def test_the_checksum_is_that_of_published_tokens() -> None:
    """From the gist of the source in examples.yaml: thirty characters and their checksum."""
    assert has_checksum(b"zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17")


def aws_id(account: int, rest: int) -> bytes:
    """An id that holds an account: a one, forty bits of it, and 39 others, in base 32."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
    number = (1 << 79) | (account << 39) | rest
    return b"AKIA" + "".join(letters[number >> 5 * place & 31] for place in range(15, -1, -1)).encode()


def test_an_id_holds_an_account_that_can_exist() -> None:
    assert secrets(aws_id(609_629_065_308, 0x5A_5A5A_5A5A), "aws-access-key")
    assert secrets(aws_id(999_999_999_999, 0x5A_5A5A_5A5A), "aws-access-key")
    assert not secrets(aws_id(1_000_000_000_000, 0x5A_5A5A_5A5A), "aws-access-key")
    assert not secrets(aws_id(0, 0x5A_5A5A_5A5A), "aws-access-key")


def test_an_account_is_read_as_it_was_published() -> None:
    """The account of the source in examples.yaml."""
    assert base64.b32decode(b"Y34FZKBOKMUTVV7A")[0] >> 7 == 1
    assert aws_id(609_629_065_308, 0)[4:11] == b"Y34FZKB"


@pytest.mark.parametrize("size", [20, 24, 32, 40, 64])
@pytest.mark.parametrize("alphabet", ["", "+/", "-_"])
def test_random_values_after_a_name_are_found(size: int, alphabet: str) -> None:
    chance = random.Random(f"{size}{alphabet}")
    letters = string.ascii_letters + string.digits + alphabet
    values = ["".join(chance.choices(letters, k=size)).encode() for _ in range(300)]
    found = [value for value in values if secrets(b'api_token = "' + value + b'"\n', "high-entropy")]
    assert len(found) >= 0.92 * len(values)
