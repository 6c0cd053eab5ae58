"""Command `doctor`: what this machine offers to Ringfence, and how to install what is missing."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from ringfence.policy import Folding
from ringfence.toolkit.acp.editor_settings import agents_here
from ringfence.toolkit.cli.context import refuse_chained, root_of
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import DONE
from ringfence.toolkit.extras import EXTRAS, install, is_installed
from ringfence.toolkit.hooks import opencode as plugins
from ringfence.toolkit.hooks.install import SETTINGS, NotPlain, commands
from ringfence.toolkit.hooks.install import is_isolated as is_isolated_command
from ringfence.toolkit.locations import shown
from ringfence.toolkit.program_files import is_isolated
from ringfence.toolkit.protected_paths import of_program
from ringfence.toolkit.storage.local.landlock import covered_kinds
from ringfence.toolkit.storage.local_roots import local_path

_RENEW = "found by PATH, and PYTHONPATH may change what runs; renew it with `ringfence hook install`"


def doctor(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the report; changes nothing."""
    hooks = _hooks(arguments)
    extras = {extra: is_installed(extra) for extra in EXTRAS}
    found: dict[str, Any] = {
        "python": sys.version.split()[0],
        "system": sys.platform,
        "isolated": is_isolated(),
        **_workspace(arguments),
        "hooks": hooks,
        "landlock": _landlock(),
        "landlock_holds": ", ".join(covered_kinds()) or None,
        "commands": _levels(),
        "acp_agents": agents_here(),
        "extras": extras,
    }
    if screen.as_json:
        screen.json(found)
        return DONE
    for name, value in found.items():
        if name not in ("extras", "hooks", "commands"):
            screen.line(f"{name.replace('_', ' '):<22} {_text(value)}")
    for level in found["commands"]:
        _show_level(level, screen)
    for file, renewed in hooks.items():
        screen.line(f"{'hook':<22} {file}: {'isolated' if renewed else _RENEW}")
    for extra, there in extras.items():
        state = "installed" if there else f"not installed: {install(extra)}"
        screen.line(f"{extra:<22} {state}")
    return DONE


def _workspace(arguments: argparse.Namespace) -> dict[str, object]:
    root = root_of(arguments)[0]
    if "::" in root and "://" in root:
        refuse_chained(root)
    if local_path(root) is None or os.sep != "/":
        return {"root": shown(root)}
    from ringfence.toolkit.storage.local.opening import open_local

    local = open_local(root)
    try:
        return {
            "root": shown(arguments.root or root),
            "kind": "the confined local disk",
            "resolves_by": "openat2" if local.kernel.beneath else "a walk, name by name",
            "renames_onto_nothing": local.kernel.rename_new,
            "tells_mounts_apart": local.kernel.mounts,
            "folds_case": local.fold == Folding.CASE,
            "folds_normal_form": local.fold != Folding.NONE,
            "own_program_here": list(of_program(root)),
        }
    finally:
        local.close()


def _hooks(arguments: argparse.Namespace) -> dict[str, bool]:
    """Each settings file with a hook of ours, and whether the hook starts isolated."""
    root = local_path(root_of(arguments)[0])
    if root is None:
        return {}
    found = {}
    for host, files in _hook_files():
        for named in files:
            file = Path(named).expanduser() if named.startswith("~") else Path(root, named)
            try:
                text = file.read_text("utf-8")
                runs = plugins.commands(text) if host == plugins.HOST else commands(text, host)
            except (OSError, UnicodeDecodeError, NotPlain):
                continue  # `hook install` says what is wrong with it
            if runs:
                found[str(file)] = all(map(is_isolated_command, runs))
    return found


def _hook_files() -> list[tuple[str, list[str]]]:
    """Each host with its files that may have a hook."""
    found = [(host, list(settings.files.values())) for host, settings in SETTINGS.items()]
    return [*found, (plugins.HOST, list(plugins.FILES.values()))]


def _levels() -> list[dict[str, object]]:
    """Each level at which commands can be confined, from a real run of a command at that level."""
    from ringfence.toolkit.sandbox import levels

    return [
        {"level": report.level, "works": report.works, "missing": report.missing, "hint": report.hint}
        for report in levels()
    ]


def _show_level(level: dict[str, object], screen: Screen) -> None:
    name = f"{'commands':<10} {level['level']!s:<11}"
    screen.line(f"{name} {'works' if level['works'] else level['missing']}")
    if not level["works"] and level["hint"]:
        screen.line(f"{'':<22} hint: {level['hint']}")


def _landlock() -> int | None:
    from ringfence.toolkit.storage.local.landlock import version

    return version() or None


def _text(value: object) -> str:
    if value is None:
        return "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "no"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
