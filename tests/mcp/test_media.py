"""Images and audio over MCP: blocks of content as each version of the protocol has them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit import Session
from ringfence.toolkit.mcp.jsonrpc import HANDSHAKE, STATELESS, Peer
from ringfence.toolkit.mcp.server import Flight, Server
from ringfence.toolkit.storage.open import private_memory
from tests.toolkit.test_media import png, wav

POLICY = Policy.loads('{"version": 1, "rules": {"read": {"*": "allow", "asked*": "ask"}}}')
IMAGE = {"type": "image", "data": base64.b64encode(png()).decode(), "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": base64.b64encode(wav()).decode(), "mimeType": "audio/wav"}


@pytest.fixture
def session() -> Any:
    fs = private_memory()
    large = b"\x89PNG\r\n\x1a\n" + bytes(3 << 20)
    files = {"i.png": png(), "t.wav": wav(), "asked.png": png(), "a.txt": b"x\n", "large.png": large}
    for path, data in files.items():
        fs.pipe_file(f"/w/{path}", data)
    with Session("/w", POLICY, fs=fs, state=":memory:") as opened:
        yield opened


def sent(session: Session, peer: Peer, tool: str, *, answers: str = "both", **arguments: Any) -> Any:
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = Server(session, answers=answers).answer(message, peer, Flight())
    assert isinstance(answer, dict)
    return answer["result"]


@pytest.mark.parametrize("version", [*HANDSHAKE, *STATELESS])
@pytest.mark.parametrize("answers", ["text", "structured", "both"])
def test_an_image_is_a_block_after_the_text(session: Session, version: str, answers: str) -> None:
    peer = Peer(version, {})
    text, *blocks = sent(session, peer, "read_file", answers=answers, path="i.png")["content"]
    assert text["type"] == "text" and "image/png" in text["text"]
    assert blocks == [IMAGE]


@pytest.mark.parametrize("version", [*HANDSHAKE, *STATELESS])
def test_audio_is_a_block_where_the_version_has_it(session: Session, version: str) -> None:
    text, *blocks = sent(session, Peer(version, {}), "read_file", path="t.wav")["content"]
    assert text["text"].startswith("Audio (audio/wav), ")
    assert blocks == ([] if version == "2024-11-05" else [AUDIO])


def test_several_files_have_their_blocks_in_order(session: Session) -> None:
    paths = ["t.wav", "a.txt", "large.png", "i.png"]
    result = sent(session, Peer(HANDSHAKE[-1], {}), "read_files", paths=paths)
    assert result["content"][1:] == [AUDIO, IMAGE]
    assert "up to 3.0 MB are shown" in result["content"][0]["text"]
    assert IMAGE["data"] not in str(result["structuredContent"])


def test_nothing_of_an_image_is_given_before_a_person_allows_it(session: Session) -> None:
    for tool, arguments in (
        ("read_file", {"path": "asked.png"}),
        ("read_files", {"paths": ["i.png", "asked.png"]}),
    ):
        result = sent(session, Peer(HANDSHAKE[-1], {}), tool, **arguments)
        assert result["isError"] and len(result["content"]) == 1


def test_python_has_the_bytes_and_json_has_not(session: Session) -> None:
    result = session.call({"tool": "read_file", "arguments": {"path": "i.png"}})
    (media,) = result.media
    assert (media.path, media.mime_type, media.data) == ("i.png", "image/png", png())
    assert IMAGE["data"] not in result.to_line() and "media" not in result.to_json()


def test_all_images_of_an_answer_are_bounded() -> None:
    fs = private_memory()
    for n in range(3):
        fs.pipe_file(f"/w/{n}.png", png() + bytes((5 << 19) + n))
    with Session("/w", POLICY, fs=fs, state=":memory:") as session:
        result = session.call({"tool": "read_files", "arguments": {"paths": ["0.png", "1.png", "2.png"]}})
    assert [media.path for media in result.media] == ["0.png", "1.png"]
    assert [part["attached"] for part in result.data["files"]] == [True, True, False]
    assert "not shown, as the images and audio before have" in result.content
