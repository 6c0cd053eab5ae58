"""`hook`: what a host starts, in case it was not written in its plain form, and `install`."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from contextlib import suppress
from pathlib import Path

from ringfence.policy.errors import PolicyError
from ringfence.toolkit import program_files
from ringfence.toolkit.cli.agent_option import mention_unknown
from ringfence.toolkit.cli.approval_prompt import confirm
from ringfence.toolkit.cli.context import policy_of, root_of
from ringfence.toolkit.cli.host_commands import record
from ringfence.toolkit.cli.host_consent import consent
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.replace_file import replace_text
from ringfence.toolkit.cli.runner import DONE, FELL_SHORT, UsageError
from ringfence.toolkit.hooks import opencode as plugins
from ringfence.toolkit.hooks.hook_options import Options
from ringfence.toolkit.hooks.hosts import SHELL_MODES
from ringfence.toolkit.hooks.install import SETTINGS, NotPlain, command, host_rules, installed, removed
from ringfence.toolkit.hooks.respond import respond
from ringfence.toolkit.protected_paths import of_program


def claude_code(arguments: argparse.Namespace, screen: Screen) -> int:
    """Answer one event of Claude Code; the status is 0, or 2 to block the call."""
    return _respond("claude-code", arguments, screen)


def codex(arguments: argparse.Namespace, screen: Screen) -> int:
    """Answer one event of Codex; the status is 0, or 2 to block the call."""
    return _respond("codex", arguments, screen)


def gemini(arguments: argparse.Namespace, screen: Screen) -> int:
    """Answer one event of Gemini CLI; the status is 0, or 2 to block the call."""
    return _respond("gemini", arguments, screen)


def opencode(arguments: argparse.Namespace, screen: Screen) -> int:
    """Answer one event of OpenCode's plugin; the status is 0, or 2 to block the call."""
    return _respond("opencode", arguments, screen)


def cursor(arguments: argparse.Namespace, screen: Screen) -> int:
    """Answer one event of Cursor; the status is 0, or 2 to block the call."""
    return _respond("cursor", arguments, screen)


def copilot(arguments: argparse.Namespace, screen: Screen) -> int:
    """Answer one event of Copilot CLI, or of VS Code; the status is 0, or 2 to block the call."""
    return _respond("copilot", arguments, screen)


def vscode(arguments: argparse.Namespace, screen: Screen) -> int:
    """Answer one event of VS Code, or of Copilot CLI; the status is 0, or 2 to block the call."""
    return _respond("vscode", arguments, screen)


def _respond(host: str, arguments: argparse.Namespace, screen: Screen) -> int:
    options = Options(**{name: getattr(arguments, name) for name in Options._fields})
    return respond(host, options, sys.stdin.buffer, screen.stdout, screen.stderr, record, consent)


def install(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the change to the settings, ask, and write it; `--undo` removes the hook."""
    file = _settings_file(arguments)
    if arguments.scope != "user":
        _check_inside(file, root_of(arguments)[0])
    before = _read(file) or ""
    after = _changed(before, file, arguments, screen)
    changed = after != before
    diff = _diff(before, after, file)
    if changed and not arguments.dry_run:
        if not arguments.yes and not _agreed(file, diff, screen):
            return FELL_SHORT
        _write(file, after)
    _show_install(file, diff, after, arguments, screen)
    return DONE


def _changed(before: str, file: Path, arguments: argparse.Namespace, screen: Screen) -> str:
    """The new text of the settings. Raises UsageError for settings that cannot be changed safely."""
    host = arguments.host
    if arguments.shell not in (None, *SHELL_MODES[host]):
        raise UsageError(f"--shell {arguments.shell}: {host} has {' and '.join(SHELL_MODES[host])}")
    try:
        if host == plugins.HOST:
            plugins.check_ours(before)
        if arguments.undo:
            return "" if host == plugins.HOST else removed(before, host)
        given = {name: getattr(arguments, name) for name in _PASSED}
        if given["agent"] == "default":
            given["agent"] = None
        if host == plugins.HOST:
            after = plugins.plugin(_program(), given, arguments.scope)
        else:
            after = installed(before, host, command(_program(), host, given), shell=arguments.shell != "off")
    except NotPlain as error:
        raise UsageError(f"{file}: {error}; it was not changed") from None
    with suppress(PolicyError):  # the hook then blocks every call, with the reason
        policy = policy_of(arguments, root_of(arguments)[0])
        mention_unknown(policy, [arguments.agent], screen)
    return after


def _agreed(file: Path, diff: str, screen: Screen) -> bool:
    """Whether a person confirms the change. Raises UsageError without a terminal."""
    if not screen.is_terminal or screen.as_json:
        raise UsageError("no terminal for the confirmation: use --dry-run to preview, then --yes")
    screen.diff(diff, screen.stderr)
    return confirm(f"Change {file}?")


# The options of `install` that are in the installed command.
_PASSED = ("policy", "agent", "ask", "shell", "outside", "state")
_SHELL = {
    "rewrite": "if the policy says anything about commands, `ringfence shell` runs them and their changes are"
    " judged (Linux; elsewhere only their words)",
    "words": "if the policy says anything about commands, their words are judged: a hint, not a fence",
    "off": "not judged",
}


def _show_install(file: Path, diff: str, after: str, arguments: argparse.Namespace, screen: Screen) -> None:
    protected = of_program(root_of(arguments)[0])
    shell = "off" if arguments.undo else arguments.shell or SHELL_MODES[arguments.host][0]
    changed = bool(diff)
    if screen.as_json:
        done = changed and not arguments.dry_run
        found = {
            "host": arguments.host,
            "file": str(file),
            "changed": done,
            "diff": diff,
            "protected": protected,
            "shell": shell,
        }
        screen.json(found)
    elif not changed:
        screen.line(f"nothing to change in {file}")
    elif arguments.dry_run:
        screen.diff(diff)
    else:
        screen.diff(diff)
        screen.line(f"changed {file}")
    if arguments.undo or screen.as_json:
        return
    screen.line(f"shell commands ({shell}): {_SHELL[shell]}")
    unseen = [] if arguments.host == plugins.HOST else host_rules(after, arguments.host)
    if shell == "rewrite" and unseen:
        screen.line(
            "these rules of the program see the command that starts Ringfence, and no longer the agent's own:"
            f" {', '.join(unseen)}; put them under `run` in the policy"
        )
    if protected:
        screen.line(
            f"the program of the hook is in this project, and no agent can change it: {', '.join(protected)}"
        )


def _program() -> list[str]:
    program = program_files.start()
    if program is None:
        raise UsageError("a hook needs an installed Ringfence: pip install it")
    return program


def _settings_file(arguments: argparse.Namespace) -> Path:
    files = plugins.FILES if arguments.host == plugins.HOST else SETTINGS[arguments.host].files
    if arguments.scope not in files:
        raise UsageError(f"--scope {arguments.scope}: {arguments.host} has {' and '.join(files)}")
    named = files[arguments.scope]
    return Path(named).expanduser() if named.startswith("~") else Path(root_of(arguments)[0]) / named


def _check_inside(file: Path, root: str) -> None:
    """Refuse settings that a link puts outside the project: whoever wrote the project chose where to."""
    real, project = os.path.realpath(file), os.path.realpath(root)
    if os.path.commonpath((real, project)) != project:
        raise UsageError(
            f"{file} is outside the project, as a link leads there; nothing was read or written. Remove the"
            " link, or take --scope user for your own settings"
        )


def _read(file: Path) -> str | None:
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(f"{file} cannot be read: {why}") from None


def _write(file: Path, text: str) -> None:
    """Put the whole new text in place; without a text the file goes."""
    if not text:
        Path(os.path.realpath(file)).unlink()
        return
    replace_text(file, text)


def _diff(before: str, after: str, file: Path) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(file), str(file), lineterm="", n=3
    )
    return "".join(f"{line}\n" for line in lines)
