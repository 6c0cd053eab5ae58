"""The lock file of the hosts: complete, because `npm ci` refuses one that is not, and without a registry."""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).parent


def test_the_lock_file_is_complete() -> None:
    """Each dependency of each package is there, also those of other systems, and each version is exact."""
    wanted = json.loads((HERE / "package.json").read_text(encoding="utf-8"))
    packages = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    named = {
        name.rpartition("node_modules/")[2]: package["version"] for name, package in packages.items() if name
    }
    for package in packages.values():
        for kind in ("dependencies", "optionalDependencies"):
            assert set(package.get(kind, ())) <= set(named)
        assert "resolved" not in package
    for name, version in {**wanted["dependencies"], **wanted["optionalDependencies"]}.items():
        assert named[name] == version
