"""Command `reveal`: shows a person the secret behind a mark in an answer, with its file and line."""

from __future__ import annotations

import argparse
from typing import Any

from ringfence.policy.detection.find import MAX_BYTES, find
from ringfence.policy.model import Detector
from ringfence.toolkit.cli.context import open_record
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import DONE
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.secret_marks import MarkedPlace, SecretMarks, digits_of
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.backend import at
from ringfence.toolkit.text import decode


def reveal(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the secret behind a mark, or raise CallError if it is not there any more."""
    with open_record(arguments) as session:
        found = _secret(session, arguments.mark.strip())
    if screen.as_json:
        screen.json(found)
    else:
        screen.note(f"{found['detector']} in {found['path']}, line {found['line']}:")
        screen.line(found["secret"])
    return DONE


def _secret(session: Session, mark: str) -> dict[str, Any]:
    marks = SecretMarks(session.state)
    place = marks.place(mark)
    if place.output:
        message = f"A command wrote this secret ({place.detector}), and outputs are not stored"
        raise CallError("not_found", message, hint="run the command yourself to see its output")
    data = _content(session, place)
    detector = Detector(place.detector, place.expression)
    for one in find(data, (detector,)):
        secret = one.secret if one.examined else data
        if marks.token(detector, secret).startswith(digits_of(mark)):
            line = data.count(b"\n", 0, one.start) + 1
            return {"detector": str(detector), "path": place.path, "line": line, "secret": decode(secret)}
    message = (
        f"The secret ({place.detector}) was in '{place.path}' at line {place.line}, and is not there now"
    )
    raise CallError("not_found", message, hint="`ringfence history PATH` lists older versions of the file")


def _content(session: Session, place: MarkedPlace) -> bytes:
    backend = session.workspace.backend
    with at(backend, place.path) as spot:
        return backend.read(spot, MAX_BYTES, None)
