"""Table of the tools of every host, and of MCP file servers: how the arguments of a call are read.

Data. A tool that is not in here is read by `other_tools`, by the names of its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ringfence.toolkit.hooks.tool_readers import (
    FILE,
    NAMED,
    Reader,
    each_file,
    each_path,
    everywhere,
    file_or_list,
    file_with_attached,
    glob,
    grep,
    inside,
    listing,
    many_files,
    nothing,
    one_file,
    patch,
    patch_in_shell,
    renamed,
    ripgrep,
    write_or_edit,
)
from ringfence.toolkit.hooks.touch import DELETE, EDIT, READ, WRITE


class HostTool(NamedTuple):
    """One tool of a host.

    `read` yields the paths of a call. `command` are the arguments that can have a command line, of which
    `replaced` says whether a hook can replace it. `pattern` is the argument with the file pattern of a
    search, where a hook can replace that.
    """

    read: Reader
    command: tuple[str, ...] = ()
    replaced: bool = False
    pattern: str = ""


_COMMAND = ("command",)
_SHELL = HostTool(nothing, _COMMAND, replaced=True)
_WORDS = HostTool(nothing, _COMMAND)  # of which only the words are judged
_NOTHING = HostTool(nothing)
# Searches of Claude Code and of Copilot CLI, which are ripgrep.
_RIPGREP = HostTool(inside("path", ripgrep("glob", "type")), pattern="glob")
_RIPGREP_IN = HostTool(each_path(ripgrep("glob", "type")), pattern="glob")


def _file(tool: str, actions: tuple[str, ...], keys: tuple[str, ...] = FILE) -> HostTool:
    return HostTool(one_file(tool, actions, keys))


def _of(*names: str, tool: HostTool) -> dict[str, HostTool]:
    return dict.fromkeys(names, tool)


# By host, by the tool's name in small letters.
TOOLS: Mapping[str, Mapping[str, HostTool]] = MappingProxyType(
    {
        "claude-code": {
            **_of("read", "notebookread", tool=_file("read_file", READ)),
            "lsp": _file("read_file", READ, (*FILE, "filePath")),
            "write": _file("create_file", WRITE),
            **_of("edit", "multiedit", "notebookedit", tool=_file("edit_file", EDIT)),
            "ls": HostTool(listing),
            "glob": HostTool(inside("path", glob)),
            "grep": _RIPGREP,
            **_of("bash", "monitor", tool=_SHELL),
            "powershell": _WORDS,  # another syntax
        },
        "codex": {
            "apply_patch": HostTool(patch),
            "bash": HostTool(patch_in_shell, ("command", "cmd"), replaced=True),
            **_of(
                *("shell", "local_shell", "shell_command", "exec_command"),
                tool=HostTool(patch_in_shell, ("command", "cmd")),
            ),
            "write_stdin": HostTool(patch_in_shell),
            **_of("view_image", "read_file", tool=_file("read_file", READ)),
            "list_dir": HostTool(listing),
            "grep_files": HostTool(inside("path", grep("include"))),
        },
        "gemini": {
            "read_file": _file("read_file", READ),
            "read_many_files": HostTool(many_files),
            "write_file": _file("create_file", WRITE),
            "replace": _file("edit_file", EDIT),
            "list_directory": HostTool(listing),
            "glob": HostTool(inside("dir_path", glob)),
            # It reads one pattern in three ways (ripgrep, git, grep), of which each finds nothing for the
            # others' form, so no hook can replace it.
            "grep_search": HostTool(inside("dir_path", grep("include_pattern"))),
            # Of older versions, in which the folder was `path`.
            "search_file_content": HostTool(inside("path", grep("include"))),
            "run_shell_command": _SHELL,
            # A page of the host's own manual, and a plan by its name alone.
            **_of("get_internal_docs", "exit_plan_mode", tool=_NOTHING),
        },
        "opencode": {
            "read": HostTool(file_or_list("filePath")),
            "write": _file("create_file", WRITE, ("filePath",)),
            **_of("edit", "multiedit", tool=_file("edit_file", EDIT, ("filePath",))),
            **_of("apply_patch", "patch", tool=HostTool(patch)),
            "lsp": _file("read_file", READ, ("filePath",)),
            "list": HostTool(listing),
            "glob": HostTool(inside("path", glob)),
            "grep": HostTool(inside("path", ripgrep("include")), pattern="include"),
            "bash": _SHELL,
        },
        # Cursor sends all its tools that edit as Write.
        "cursor": {
            **_of("read", "readfile", "tabread", tool=HostTool(file_with_attached)),
            **_of(*("write", "edit", "strreplace", "editnotebook", "tabwrite"), tool=HostTool(write_or_edit)),
            "applypatch": HostTool(patch),
            "delete": _file("delete_file", DELETE, NAMED),
            "grep": HostTool(inside("path", ripgrep("glob", "type"))),
            "glob": HostTool(renamed(glob, {"glob_pattern": "pattern", "target_directory": "path"})),
            **_of("ls", "list", "listdir", tool=HostTool(renamed(listing, {"target_directory": "path"}))),
            **_of("semanticsearch", "codebasesearch", tool=HostTool(everywhere)),
            "shell": _SHELL,
        },
        "copilot": {
            "view": HostTool(file_or_list(*FILE)),
            "create": _file("create_file", WRITE),
            **_of("edit", "str_replace_editor", "str_replace", "insert", tool=_file("edit_file", EDIT)),
            "apply_patch": HostTool(patch),
            **_of("grep", "rg", tool=_RIPGREP_IN),
            "glob": HostTool(each_path(glob)),
            "bash": _SHELL,
            "powershell": _WORDS,
        },
        "vscode": {
            **_of(
                *("read_file", "view_image", "read_notebook_cell_output", "copilot_getnotebooksummary"),
                tool=_file("read_file", READ, NAMED),
            ),
            **_of("create_file", "createfile", tool=_file("create_file", WRITE, NAMED)),
            "create_directory": _file("create_directory", WRITE, NAMED),
            **_of(
                *("replace_string_in_file", "insert_edit_into_file", "edit_notebook_file"),
                tool=_file("edit_file", EDIT, NAMED),
            ),
            "multi_replace_string_in_file": HostTool(each_file("edit_file", EDIT, "replacements")),
            **_of("editfiles", "edit_files", tool=HostTool(each_file("edit_file", EDIT, "files"))),
            "deletefile": _file("delete_file", DELETE, NAMED),
            "apply_patch": HostTool(patch),
            "list_dir": HostTool(listing),
            "file_search": HostTool(renamed(glob, {"query": "pattern"})),
            "grep_search": HostTool(grep("includePattern")),
            **_of("semantic_search", "codebase", tool=HostTool(everywhere)),
            "run_in_terminal": _SHELL,
            **_of("runterminalcommand", "send_to_terminal", tool=_WORDS),
            "memory": _NOTHING,  # its paths are names in a store of its own
            # Copilot CLI in this form gives its tools the names of Claude Code's.
            "read": HostTool(file_or_list(*FILE)),
            "write": _file("create_file", WRITE),
            "edit": _file("edit_file", EDIT),
            "grep": _RIPGREP_IN,
            "glob": HostTool(each_path(glob)),
            "bash": _SHELL,
        },
    }
)


class ServerTool(NamedTuple):
    """A tool that file servers have in common: ours that does the same, and the actions by argument."""

    same_as: str
    paths: tuple[tuple[str, tuple[str, ...]], ...]


_PATH = {actions: (("path", actions),) for actions in (READ, WRITE, EDIT, DELETE)}
_SOURCE, _DESTINATION = ("source", READ), ("destination", WRITE)
SERVER_TOOLS: Mapping[str, ServerTool] = MappingProxyType(
    {
        **dict.fromkeys(
            ("read_file", "read_text_file", "read_media_file"), ServerTool("read_file", _PATH[READ])
        ),
        "read_multiple_files": ServerTool("read_file", (("paths", READ),)),
        "read_files": ServerTool("read_files", (("paths", READ),)),
        "get_file_info": ServerTool("get_file_info", _PATH[READ]),
        **dict.fromkeys(("write_file", "create_file"), ServerTool("create_file", _PATH[WRITE])),
        "create_directory": ServerTool("create_directory", _PATH[WRITE]),
        "edit_file": ServerTool("edit_file", _PATH[EDIT]),
        "insert_at_line": ServerTool("insert_at_line", _PATH[EDIT]),
        "copy_file": ServerTool("copy_file", (_SOURCE, _DESTINATION)),
        "move_file": ServerTool("move_file", (("source", ("read", "delete")), _DESTINATION)),
        **dict.fromkeys(("delete_file", "delete"), ServerTool("delete", _PATH[DELETE])),
        **dict.fromkeys(
            ("list_directory", "list_directory_with_sizes"), ServerTool("list_directory", _PATH[READ])
        ),
        "directory_tree": ServerTool("directory_tree", _PATH[READ]),
        "search_files": ServerTool("search_files", _PATH[READ]),
        "search_text": ServerTool("search_text", _PATH[READ]),
    }
)
