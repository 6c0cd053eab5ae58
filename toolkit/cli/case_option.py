"""`--ignore-case`: whether case makes a difference in the workspace that an answer is about.

Never guesses: a workspace that is here is asked, and where none is known the answer says so. Writes nothing.
"""

from __future__ import annotations

import os

from ringfence.policy import Folding
from ringfence.toolkit.cli.output import Screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def folding(arguments: argparse.Namespace, root: str | None) -> Folding | None:
    """What makes no difference between two names in a root on this machine; None: that is not known."""
    if arguments.ignore_case:
        return Folding.CASE
    if root is None:
        return None
    if "://" in root:
        return Folding.NONE  # names in a store are what they are written as
    from ringfence.toolkit.storage.local.name_folding import folding_of

    try:
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        return folding_of(fd, root)
    finally:
        os.close(fd)


def mention_case(fold: Folding | None, screen: Screen) -> None:
    """Say beside the answer how names were compared, unless that is as they are written here."""
    if fold is Folding.CASE:
        screen.note(
            "names are compared without their case; those that fold to more letters are not looked at"
        )
    elif fold is Folding.FORM:
        screen.note("names are compared in one Unicode form")
    elif fold is None:
        screen.note("names are compared case-sensitively; for a case-insensitive workspace use --ignore-case")


def case_of(fold: Folding | None) -> str:
    """How names were compared, as a field: `exact`, `ignored`, or in `one form` of Unicode."""
    return {Folding.CASE: "ignored", Folding.FORM: "one form"}.get(fold or Folding.NONE, "exact")
