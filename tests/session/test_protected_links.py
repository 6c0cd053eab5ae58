"""A policy that is reached through links cannot be loosened by exchanging one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.session.session import Session

STRICT = 'version: 1\nrules: {"*": allow, delete: {"*": allow, keep: deny}}\n'
LOOSE = 'version: 1\nrules: {"*": allow}\n'


def link(place: Path, target: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def chain(root: Path) -> None:
    (root / "b.yaml").write_text(STRICT)
    link(root / "a.yaml", "b.yaml")
    link(root / "ringfence.yaml", "a.yaml")


def folder(root: Path) -> None:
    (root / "v1").mkdir()
    (root / "v1/pol.yaml").write_text(STRICT)
    link(root / "cur", "v1")
    link(root / "ringfence.yaml", "cur/pol.yaml")


def nested(root: Path) -> None:
    (root / "real/deep").mkdir(parents=True)
    (root / "real/deep/pol.yaml").write_text(STRICT)
    link(root / "links/one", "../real")
    link(root / "two", "links/one/deep")
    link(root / "ringfence.yaml", "two/pol.yaml")


def extended(root: Path) -> None:
    (root / "base.yaml").write_text(STRICT)
    link(root / "b.yaml", "base.yaml")
    link(root / "c.yaml", "b.yaml")
    (root / "ringfence.yaml").write_text("version: 1\nextends: [c.yaml]\n")


# What each layout has on the way to the policy, besides `ringfence.yaml`.
LAYOUTS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "chain": (chain, ("a.yaml", "b.yaml")),
    "folder": (folder, ("cur", "v1", "v1/pol.yaml")),
    "nested": (nested, ("links", "links/one", "two", "real", "real/deep", "real/deep/pol.yaml")),
    "extended": (extended, ("c.yaml", "b.yaml", "base.yaml")),
}


@pytest.fixture(params=LAYOUTS)
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, tuple[str, ...]]:
    root = tmp_path / "ws"
    root.mkdir()
    make, names = LAYOUTS[request.param]
    make(root)
    (root / "keep").write_text("kept")
    (root / "evil.yaml").write_text(LOOSE)
    (root / "evil").mkdir()
    (root / "evil/pol.yaml").write_text(LOOSE)
    return root, ("ringfence.yaml", *names)


def code(session: Session, tool: str, **arguments: Any) -> str | None:
    error = session.call({"tool": tool, "arguments": arguments}).error
    return error["code"] if error else None


def test_nothing_on_the_way_to_the_policy_can_be_changed(workspace: tuple[Path, tuple[str, ...]]) -> None:
    root, names = workspace
    with Session(root, root / "ringfence.yaml", state=":memory:") as session:
        for name in names:
            for tool, arguments in (
                ("move_file", {"source": "evil.yaml", "destination": name, "allow_overwrite": True}),
                ("move_file", {"source": name, "destination": "away"}),
                ("delete", {"path": name}),
            ):
                got = code(session, tool, **arguments)
                assert got in ("protected_path", "is_directory", "already_exists"), (name, tool, got)
                assert (root / name).exists()
        assert code(session, "create_file", path="ringfence.yaml", content=LOOSE, allow_overwrite=True)
        assert code(session, "delete_file", path="keep") == "denied_by_policy"


def test_what_lies_beside_it_can_be_changed(workspace: tuple[Path, tuple[str, ...]]) -> None:
    root, names = workspace
    with Session(root, root / "ringfence.yaml", state=":memory:") as session:
        for name in names:
            beside = f"{name}/{len(name)}-{names.index(name)}" if (root / name).is_dir() else f"{name}.new"
            assert code(session, "create_file", path=beside, content="") is None, beside


def test_a_link_that_comes_on_the_way_later_is_protected_too(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    folder(root)
    with Session(root, root / "ringfence.yaml", state=":memory:") as session:
        assert code(session, "get_file_info", path="keep") == "not_found"
        (root / "cur").unlink()
        link(root / "other", "v1")
        link(root / "cur", "other")
        assert code(session, "move_file", source="other", destination="away") == "protected_path"
