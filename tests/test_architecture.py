"""The shape of the code, read from its source: who may import whom, and who may change a file."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import pytest

from ringfence.toolkit.storage.backend import Tree, WritableTree

Node = TypeVar("Node", bound=ast.AST)
ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("policy", "toolkit")
HEAVY = ("yaml", "jsonschema", "fsspec", "rich", "sqlite3", "shtab", "platformdirs", "asyncio")
STANDARD = sys.stdlib_module_names
# Who may look for and read policy files; the rest of `policy` is pure.
READS_POLICIES = (
    "policy.loading.loader",
    "policy.loading.ready_made",
    "policy.loading.upstream_tables",
    "policy.evaluation.cases",
    "policy.loading.cache",
)
DEPENDENCIES = {"yaml", "jsonschema", "referencing", "fsspec", "platformdirs", "rich", "shtab"}
# What is imported only by who has asked for it.
SERVING = {"starlette", "uvicorn", "anyio"}
OPTIONAL = {
    "toolkit.testing.backend_contract": {"pytest"},
    "toolkit.testing.pytest_plugin": {"pytest"},
    "toolkit.storage.s3": {"botocore"},
    "toolkit.storage.sftp": {"paramiko"},
    "toolkit.testing.faults.sftp_proxy": {"paramiko"},
    "toolkit.state.postgres": {"psycopg"},
    "toolkit.state.postgres_schema": {"psycopg"},
    "toolkit.state.postgres_url": {"psycopg"},
    "toolkit.state.schema_ownership": {"psycopg"},
    "toolkit.state.shared_states": {"psycopg"},
    "toolkit.storage.azure": {"azure", "aiohttp"},
    "toolkit.http": SERVING,
    "toolkit.cli.commands.serve_http": SERVING,
    "toolkit.review": {*SERVING, "jinja2", "markupsafe", "pygments"},
    "toolkit.language_server": {"pygls", "lsprotocol"},
    "toolkit.cli.watch.app": {"textual"},
    "toolkit.cli.watch.dialogs": {"textual"},
    "toolkit.cli.watch.rule_screens": {"textual"},
}


def words(text: str) -> set[str]:
    return set(text.split())


# Calls that change a file system, by name, wherever they are an attribute or a plain name.
WRITING = words(
    "unlink rmdir rename replace remove removedirs mkdir makedirs symlink link truncate write_bytes"
    " write_text chmod fchmod rmtree copyfile copytree move pipe_file rm_file rm cp_file mv put_file touch"
    " utime renames mkfifo mknod chown fchown lchown setxattr removexattr"
)
# Text and mapping methods of the same names.
HARMLESS_ON = {"replace", "remove", "link", "move", "copy", "touch"}


def modules() -> dict[str, Path]:
    found = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    assert len(found) > 20
    return found


MODULES = modules()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def walked(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(path)))


@cache
def imports(path: Path, *, at_load: bool) -> set[str]:
    """The modules a file imports; with `at_load` only what loading it imports."""
    found: set[str] = set()
    for node in _walk(parsed(path), at_load=at_load):
        if isinstance(node, ast.Import):
            found.update(_ours(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module
            module = _ours(node.module)
            for alias in node.names:
                whole = alias.name if module == "ringfence" else f"{module}.{alias.name}"
                found.add(whole if whole in MODULES else module)
    return found


def _ours(module: str) -> str:
    """A module by its name below `ringfence`: `toolkit.paths`."""
    return module.removeprefix("ringfence.")


def _walk(tree: ast.AST, *, at_load: bool) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if at_load and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            if not at_load:
                yield from _walk(node, at_load=at_load)
            continue
        yield node
        yield from _walk(node, at_load=at_load)


@pytest.mark.parametrize("name", [name for name in MODULES if name.split(".")[0] == "policy"])
def test_policy_imports_nothing_of_toolkit(name: str) -> None:
    tops = {imported.split(".")[0] for imported in imports(MODULES[name], at_load=False)}
    assert "toolkit" not in tops
    assert tops <= STANDARD | {"policy", "yaml", "jsonschema"}


@pytest.mark.parametrize("name", [name for name in MODULES if name.split(".")[0] == "policy"])
def test_policy_asks_neither_clock_nor_chance_nor_disk(name: str) -> None:
    tops = {imported.split(".")[0] for imported in imports(MODULES[name], at_load=False)}
    assert not tops & words("time datetime random secrets uuid subprocess socket shutil")
    if name not in READS_POLICIES:
        assert "os" not in tops
        calls = {node.func.attr for node in nodes(name, ast.Call) if isinstance(node.func, ast.Attribute)}
        assert not calls & words("open read_text read_bytes is_file is_dir exists stat resolve")


def nodes(name: str, kind: type[Node]) -> Iterator[Node]:
    return (node for node in walked(MODULES[name]) if isinstance(node, kind))


@pytest.mark.parametrize("name", MODULES)
def test_only_named_dependencies_are_imported(name: str) -> None:
    tops = {imported.split(".")[0] for imported in imports(MODULES[name], at_load=False)}
    asked = {one for key, names in OPTIONAL.items() if f"{name}.".startswith(f"{key}.") for one in names}
    assert tops <= STANDARD | DEPENDENCIES | {"ringfence", "_lazy_names", *PACKAGES} | asked


@pytest.mark.parametrize("name", [name for name in MODULES if not name.startswith("toolkit.cli")])
def test_nothing_below_imports_the_command_line(name: str) -> None:
    assert not [found for found in imports(MODULES[name], at_load=False) if found.startswith("toolkit.cli")]


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("toolkit.tools")])
def test_tools_can_only_plan(name: str) -> None:
    """A tool sees values and the read-only view: nothing that could open, change or record."""
    tops = {imported.split(".")[0] for imported in imports(MODULES[name], at_load=False)}
    assert not tops & words("os io shutil subprocess sqlite3 fsspec socket tempfile pathlib")
    ours = {found for found in imports(MODULES[name], at_load=True) if found.startswith("toolkit.")}
    allowed = words(
        "toolkit.errors toolkit.paths toolkit.plan.changes toolkit.plan.command_run toolkit.plan.content"
        " toolkit.durations toolkit.file_text toolkit.media toolkit.text toolkit.call"
    )
    if name == "toolkit.tools":
        allowed.add(
            "toolkit.fake_fs"  # the table reads the tools' own documents past a fake file system
        )
    assert {found for found in ours if not found.startswith("toolkit.tools")} <= allowed


def test_what_looks_at_tasks_cannot_change_them() -> None:
    for name in words("store_reader metadata messages batch_plan"):
        found = imports(MODULES[f"toolkit.tasks.{name}"], at_load=False)
        outside = words("os io shutil subprocess sqlite3 fsspec pathlib")
        assert not {one.split(".")[0] for one in found} & outside
        assert not found & words(
            "toolkit.execution.apply toolkit.storage.backend toolkit.storage.task_mount"
            " toolkit.session.purge_tasks"
        )


# Who may import whom, inside functions and for types alone as well: each package, and each module that stands
# beside them, with those of them that it needs. A row may shrink; it grows only on purpose.
MAY_IMPORT = {
    "policy.value_classes": words(""),  # any may, as with the `dataclasses` that it stands for
    "policy.byte_names": words(""),
    "policy.invisible_characters": words(""),
    "policy.errors": words("policy.invisible_characters"),
    "policy.model": words("policy.errors policy.upstreams"),
    "policy.patterns": words("policy.byte_names policy.invisible_characters"),
    "policy.rule_list": words("policy.errors policy.model"),
    "policy.commands": words("policy.invisible_characters policy.model policy.patterns"),
    "policy.detection": words("policy.model"),
    "policy.evaluation": words(
        "policy.commands policy.model policy.patterns policy.rule_list policy.upstreams"
    ),
    "policy.analysis": words(
        "policy.commands policy.evaluation policy.invisible_characters policy.model policy.patterns"
        " policy.rule_list policy.upstreams"
    ),
    "policy.lint": words("policy.analysis policy.errors policy.evaluation policy.model policy.patterns"),
    "policy.loading": words(
        "policy.commands policy.detection policy.errors policy.evaluation"
        " policy.invisible_characters policy.model policy.patterns policy.rule_list policy.upstreams"
    ),
    "policy.formatting": words(
        "policy.errors policy.invisible_characters policy.lint policy.loading policy.model"
    ),
    "policy.policy": words("policy.evaluation policy.loading policy.model policy.patterns"),
    "policy": words("policy.errors policy.loading policy.model policy.patterns policy.policy"),
    "toolkit.advice": words(""),
    "toolkit.errors": words("toolkit.advice"),
    "toolkit.extras": words(""),
    "toolkit.fake_fs": words(""),
    "toolkit.file_ownership": words(""),
    "toolkit.formats": words(
        "policy policy.analysis policy.commands policy.errors policy.evaluation policy.invisible_characters"
        " policy.model policy.patterns"
    ),
    "toolkit.gitignore_rules": words("policy.byte_names policy.patterns"),
    "toolkit.grant_patterns": words("policy.invisible_characters policy.patterns"),
    "toolkit.line_reader": words(""),
    "toolkit.locations": words("toolkit.errors"),
    "toolkit.paths": words("policy.byte_names toolkit.errors"),
    "toolkit.media": words(""),
    "toolkit.call": words("toolkit.errors toolkit.media toolkit.paths"),
    "toolkit.plan": words("policy toolkit.errors toolkit.media toolkit.paths"),
    "toolkit.private_files": words("toolkit.errors toolkit.file_ownership"),
    "toolkit.program_files": words(""),
    "toolkit.progress": words("toolkit.errors"),
    "toolkit.project_root": words("toolkit.file_ownership"),
    "toolkit.protected_paths": words(
        "policy.byte_names policy.patterns toolkit.errors toolkit.paths toolkit.program_files"
        " toolkit.project_root"
    ),
    "toolkit.sandbox": words(""),
    "toolkit.state": words(
        "toolkit.errors toolkit.extras toolkit.locations toolkit.private_files toolkit.protected_paths"
    ),
    "toolkit.file_text": words("policy.detection"),
    "toolkit.text": words("policy.invisible_characters toolkit.file_text"),
    "toolkit.audit": words(
        "policy.commands policy.loading policy.patterns toolkit.errors toolkit.grant_patterns toolkit.paths"
        " toolkit.plan toolkit.protected_paths toolkit.state toolkit.text toolkit.tools"
    ),
    "toolkit.approvals": words(
        "policy policy.patterns toolkit.audit toolkit.errors toolkit.grant_patterns toolkit.plan"
        " toolkit.state toolkit.text"
    ),
    "toolkit.durations": words("toolkit.text"),
    "toolkit.task_ids": words("policy.model toolkit.errors toolkit.text"),
    "toolkit.storage": words(
        "policy.byte_names policy.patterns toolkit.errors toolkit.extras toolkit.fake_fs"
        " toolkit.file_ownership toolkit.locations toolkit.paths toolkit.plan toolkit.protected_paths"
        " toolkit.task_ids toolkit.text"
    ),
    "toolkit.hooks": words(
        "policy policy.byte_names policy.commands policy.detection policy.loading policy.model"
        " policy.patterns toolkit.errors toolkit.file_ownership toolkit.paths toolkit.program_files"
        " toolkit.project_root"
        " toolkit.protected_paths toolkit.storage"
    ),
    "toolkit.version": words(""),
    "toolkit.workspace": words(
        "policy policy.patterns toolkit.errors toolkit.gitignore_rules toolkit.locations toolkit.paths"
        " toolkit.plan toolkit.protected_paths toolkit.storage toolkit.text"
    ),
    "toolkit.history": words(
        "policy policy.model toolkit.audit toolkit.errors toolkit.paths toolkit.plan toolkit.progress"
        " toolkit.protected_paths toolkit.state toolkit.storage toolkit.text toolkit.workspace"
    ),
    "toolkit.execution": words(
        "policy toolkit.errors toolkit.history toolkit.paths toolkit.plan toolkit.progress"
        " toolkit.protected_paths toolkit.storage toolkit.workspace"
    ),
    "toolkit.tasks": words(
        "toolkit.durations toolkit.errors toolkit.plan toolkit.task_ids toolkit.text toolkit.workspace"
    ),
    "toolkit.tools": words(
        "policy.byte_names policy.detection policy.model policy.patterns toolkit.durations toolkit.errors"
        " toolkit.fake_fs toolkit.file_text toolkit.media toolkit.paths toolkit.plan toolkit.task_ids"
        " toolkit.tasks toolkit.text toolkit.workspace"
    ),
    "toolkit.authoring": words(
        "policy.upstreams "
        "policy policy.analysis policy.byte_names policy.errors policy.evaluation"
        " policy.invisible_characters policy.lint policy.loading policy.model policy.patterns toolkit.errors"
        " toolkit.formats toolkit.gitignore_rules toolkit.grant_patterns"
        " toolkit.paths toolkit.plan toolkit.storage toolkit.tools toolkit.version toolkit.workspace"
    ),
    "toolkit.catalog": words(
        "policy policy.analysis policy.model toolkit.call toolkit.errors toolkit.file_text toolkit.media"
        " toolkit.plan toolkit.text toolkit.tools"
        " policy.upstreams toolkit.upstream"
    ),
    "toolkit.undo": words(
        "toolkit.errors toolkit.history toolkit.paths toolkit.plan toolkit.progress toolkit.protected_paths"
        " toolkit.storage toolkit.text toolkit.workspace"
    ),
    "toolkit.session": words(
        "policy policy.commands policy.detection policy.loading policy.model policy.patterns"
        " toolkit.approvals toolkit.audit toolkit.call toolkit.commands toolkit.errors toolkit.execution"
        " toolkit.fake_fs toolkit.file_text toolkit.history toolkit.locations toolkit.paths toolkit.plan"
        " toolkit.private_files toolkit.progress toolkit.state toolkit.storage toolkit.task_ids toolkit.tasks"
        " toolkit.text toolkit.tools toolkit.undo toolkit.workspace"
        " policy.upstreams toolkit.upstream"
    ),
    "toolkit.commands": words(
        "policy policy.byte_names policy.invisible_characters policy.model policy.patterns toolkit.errors"
        " toolkit.paths toolkit.plan toolkit.private_files toolkit.progress toolkit.sandbox toolkit.storage"
        " toolkit.text toolkit.workspace"
    ),
    "toolkit": words("toolkit.approvals toolkit.call toolkit.errors toolkit.session toolkit.tools"),
    "toolkit.granting": words(
        "policy policy.patterns toolkit.approvals toolkit.audit toolkit.errors toolkit.grant_patterns"
        " toolkit.paths toolkit.plan toolkit.protected_paths toolkit.session toolkit.storage toolkit.text"
        " toolkit.tools toolkit.workspace"
    ),
    "toolkit.rule_offers": words(
        "policy policy.analysis policy.commands policy.errors policy.evaluation policy.formatting"
        " policy.model policy.patterns toolkit.approvals toolkit.audit toolkit.durations toolkit.errors"
        " toolkit.file_ownership toolkit.grant_patterns toolkit.paths toolkit.plan toolkit.storage"
        " toolkit.text toolkit.workspace"
    ),
    "policy.upstreams": words(""),
    "toolkit.upstream": words(
        "policy.loading policy.upstreams toolkit.call toolkit.commands toolkit.errors toolkit.progress"
        " toolkit.sandbox toolkit.text toolkit.version"
    ),
    "toolkit.mcp": words(
        "toolkit.approvals toolkit.audit toolkit.call toolkit.catalog toolkit.errors"
        " toolkit.grant_patterns toolkit.granting toolkit.line_reader toolkit.locations"
        " toolkit.progress toolkit.session toolkit.text toolkit.upstream toolkit.version"
    ),
    "toolkit.acp": words(
        "policy policy.commands policy.model toolkit.approvals toolkit.call toolkit.errors toolkit.granting"
        " toolkit.hooks toolkit.line_reader toolkit.mcp toolkit.paths toolkit.plan toolkit.progress"
        " toolkit.session toolkit.text"
    ),
    "toolkit.http": words(
        "policy toolkit.approvals toolkit.authoring toolkit.call toolkit.catalog toolkit.errors toolkit.mcp"
        " toolkit.progress toolkit.session toolkit.text toolkit.tools toolkit.version"
    ),
    "toolkit.monitoring": words(
        "toolkit.approvals toolkit.audit toolkit.history toolkit.locations toolkit.protected_paths"
        " toolkit.session"
    ),
    "toolkit.review": words(
        "policy policy.errors policy.invisible_characters policy.model policy.patterns toolkit.approvals"
        " toolkit.audit toolkit.authoring toolkit.call toolkit.durations toolkit.errors"
        " toolkit.grant_patterns toolkit.granting toolkit.history toolkit.http"
        " toolkit.paths toolkit.plan toolkit.rule_offers toolkit.session toolkit.storage toolkit.tasks"
        " toolkit.text toolkit.workspace"
    ),
    "toolkit.state_repair": words(
        "policy toolkit.audit toolkit.errors toolkit.file_ownership toolkit.history toolkit.locations"
        " toolkit.plan toolkit.private_files toolkit.protected_paths toolkit.session toolkit.state"
        " toolkit.storage toolkit.text"
    ),
    "toolkit.language_server": words(
        "policy policy.analysis policy.errors policy.evaluation policy.formatting policy.invisible_characters"
        " policy.lint policy.loading policy.model policy.patterns toolkit.authoring toolkit.catalog"
        " toolkit.project_root toolkit.version"
    ),
    "toolkit.cli": words(
        "policy policy.analysis policy.byte_names policy.commands policy.detection policy.errors"
        " policy.evaluation policy.formatting policy.lint policy.loading policy.model policy.patterns"
        " toolkit.acp toolkit.advice toolkit.approvals toolkit.audit toolkit.authoring toolkit.call"
        " toolkit.catalog toolkit.durations toolkit.errors toolkit.extras toolkit.file_ownership"
        " toolkit.formats toolkit.grant_patterns toolkit.granting toolkit.history toolkit.hooks"
        " toolkit.http toolkit.language_server toolkit.line_reader toolkit.locations toolkit.mcp"
        " toolkit.monitoring"
        " toolkit.paths toolkit.program_files toolkit.progress toolkit.project_root"
        " toolkit.protected_paths toolkit.review toolkit.rule_offers toolkit.sandbox toolkit.session"
        " toolkit.state toolkit.state_repair toolkit.storage toolkit.text toolkit.tools toolkit.version"
        " toolkit.workspace"
        " policy.upstreams toolkit.upstream"
    ),
    "toolkit.testing": words(
        "policy policy.errors policy.evaluation policy.model toolkit.approvals toolkit.audit toolkit.call"
        " toolkit.errors"
        " toolkit.execution toolkit.history toolkit.paths toolkit.plan toolkit.session toolkit.storage"
        " toolkit.tools"
    ),
}


def box(name: str) -> str:
    """The row of the table that a module belongs to."""
    return ".".join(name.split(".")[:2])


def test_packages_import_only_what_stands_below_them() -> None:
    strangers = {}
    for name, path in MODULES.items():
        ours = {found for found in imports(path, at_load=False) if found in MODULES}
        over = {box(found) for found in ours} - MAY_IMPORT[box(name)] - {box(name), "policy.value_classes"}
        if over:
            strangers[name] = over
    assert strangers == {}
    TopologicalSorter(MAY_IMPORT).prepare()


def test_the_table_has_no_row_for_what_is_gone() -> None:
    assert set(MAY_IMPORT) == {box(name) for name in MODULES}


def test_no_import_cycles() -> None:
    """Over every import there is, also those in functions and those for types."""
    graph = {
        name: {found for found in imports(path, at_load=False) if found in MODULES and found != name}
        for name, path in MODULES.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


def test_private_modules_and_names_stay_in_their_package() -> None:
    strangers = [
        f"{name}: {found}.{alias.name}"
        for name in MODULES
        for node in nodes(name, ast.ImportFrom)
        for alias in node.names
        if (found := _ours(node.module or "")) in MODULES
        and (alias.name.startswith("_") or found.rpartition(".")[2].startswith("_"))
        and package(found) != package(name)
    ]
    assert strangers == []


def package(name: str) -> str:
    return name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]


def test_nothing_is_imported_by_its_old_name() -> None:
    """Where the checkout is on the path, `toolkit` would be a second copy of `ringfence.toolkit`."""
    old = [
        f"{path}:{node.lineno}"
        for folder in ("policy", "toolkit", "tests", "benchmarks", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if "node_modules" not in path.parts
        for node in walked(path)
        if (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES)
        or (isinstance(node, ast.Import) and {alias.name.split(".")[0] for alias in node.names} & {*PACKAGES})
    ]
    assert old == []


def writers() -> dict[str, set[str]]:
    """Which modules call something that changes a file, by the names of what they call."""
    found: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        for node in walked(path):
            if isinstance(node, ast.Call) and (called := _writing(node)):
                found.setdefault(name, set()).add(called)
    return found


def _writing(call: ast.Call) -> str | None:
    if isinstance(call.func, ast.Name):
        return "open for writing" if call.func.id == "open" and _opens_to_write(call) else None
    if not isinstance(call.func, ast.Attribute):
        return None
    name = call.func.attr
    if name == "open":
        return "open for writing" if _opens_to_write(call) else None
    if name not in WRITING:
        return None
    owner = call.func.value
    on_module = isinstance(owner, ast.Name) and owner.id in ("os", "shutil")
    return None if name in HARMLESS_ON and not on_module else name


def _opens_to_write(call: ast.Call) -> bool:
    text = [ast.unparse(argument) for argument in (*call.args, *(keyword.value for keyword in call.keywords))]
    flags = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND")
    return any(part.strip("'\"") in ("w", "wb", "x", "xb", "a", "ab", "r+b", "w+b") for part in text) or any(
        flag in part for part in text for flag in flags
    )


# Who may, and what: the backends and what applies plans change the workspace; the rest writes its own files.
MAY_WRITE = {
    "policy.loading.cache": "the forms it keeps of policies that were read, in the user's cache",
    "toolkit.execution.change_maker": "the workspace",
    "toolkit.storage.local": "the workspace, as the local backend",
    "toolkit.storage.fsspec_store.backend": "the workspace, as the fsspec backend",
    "toolkit.storage.s3": "the workspace, as the S3 backend",
    "toolkit.storage.sftp": "the workspace, as the SFTP backend",
    "toolkit.storage.local.fsspec_adapter": "the directory it was made for, by the local backend",
    "toolkit.storage.task_mount_open": "the root of a task store in memory, and the trash beside one",
    "toolkit.testing.trial": "its workspace in memory",
    "toolkit.workspace.workspace": "the root of a store in memory",
    "toolkit.sandbox": "the scratch directory of a command, and what a command's namespaces are made of",
    "toolkit.state.machine_identity": "the random id of this user on this machine, beside the states",
    "toolkit.state.process_locks": "the locks of processes, beside the state",
    "toolkit.audit.jsonl_mirror": "the audit log, at a person's wish",
    "toolkit.state.audit_segments": "the oldest audit records, beside its own store",
    "toolkit.state.sqlite": "its own store",
    "toolkit.state.files": "the files of its own store",
    "toolkit.state_repair.adopt": "the names of states",
    "toolkit.state_repair.salvage": "a new store beside a damaged one",
    "toolkit.state_repair.damaged_database": "a copy of a damaged store",
    "toolkit.private_files": "the modes of its own store",
    "toolkit.upstream.launch": "the scratch directory of a server",
    "toolkit.commands.scratches": "what commands changed, beside its own store",
    "toolkit.history.content_files": "the contents beside its own store",
    "toolkit.state.migrations": "a copy of its own store",
    "toolkit.testing.backend_contract": "the workspace that its test fixture gives",
    "toolkit.cli.create_file": "a new file, at a person's command",
    "toolkit.cli.replace_file": "a policy or another program's settings, at a person's command",
    "toolkit.rule_offers.policy_file": "a policy, at a person's command",
    "toolkit.hooks.respond": "/dev/null",
    "toolkit.cli.host_commands": "/dev/null",
    "toolkit.cli.commands.hook": "another program's settings, at a person's command",
    "toolkit.cli.reference_pages": "the pages of docs/",
    "toolkit.cli.approval_prompt": "the terminal",
    "toolkit.cli.streams": "/dev/null",
    "toolkit.cli.commands.demo": "its throw-away workspace",
    "toolkit.cli.git_revisions": "a throw-away folder with the files of a revision",
}


def test_only_the_named_modules_can_change_a_file() -> None:
    strangers = {
        name: calls
        for name, calls in writers().items()
        if not any(name == known or name.startswith(f"{known}.") for known in MAY_WRITE)
    }
    assert strangers == {}


# Who may have the tree of a workspace with the methods that change it; all others have a `Tree`, and mypy
# refuses the call.
MAY_CHANGE = {
    "toolkit.execution.apply": "makes many new files durable at once",
    "toolkit.execution.change_maker": "makes the changes of a plan",
    "toolkit.execution.item_recovery": "finishes or puts back what a dead process left half done",
    "toolkit.execution.recovery": "asks where the quarantine is",
    "toolkit.execution.recovery_files": "the same as item_recovery",
    "toolkit.execution.settlement": "makes logged changes again after a power cut",
    "toolkit.history.pruning": "lets go of deleted trees that are forgotten",
    "toolkit.workspace.workspace": "opens the tree, and has the method that gives it",
    "toolkit.storage.backend": "says what it is",
    "toolkit.storage.open": "opens a store",
    "toolkit.storage.task_mount_open": "opens a task store",
    "toolkit.storage.task_mount": "is two of them",
    "toolkit.storage.task_move": "moves between two of them",
    "toolkit.storage.task_spots": "has the one of a place",
    "toolkit.sandbox.resolving": "has no tree: a field of a Spec has that name",
}
# The kinds of tree, which have all of these methods.
KINDS = words("Local Store S3 Azure Sftp TaskMount")
MAY_NAME_A_KIND = {
    "toolkit.storage.local.fsspec_adapter": "changes its own directory",
    "toolkit.storage.local.fsspec_copies": "the same",
    **dict.fromkeys(
        words(
            "toolkit.storage.local toolkit.storage.s3 toolkit.storage.azure toolkit.storage.sftp"
            " toolkit.storage.fsspec_store.backend toolkit.storage.open"
        ),
        "the kind",
    ),
    **dict.fromkeys(words("toolkit.storage.task_mount_open toolkit.storage.task_mount"), "the kind"),
}


@cache
def asked(name: str) -> set[str]:
    """What a module asks an object for, by a name in its source."""
    found = {node.attr for node in nodes(name, ast.Attribute)}
    for call in nodes(name, ast.Call):
        match call:
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(word)), *_]):
                found.add(word)
    return found


@cache
def named(name: str) -> set[str]:
    """The same, with what it imports and uses."""
    used = {node.id for node in nodes(name, ast.Name)}
    return asked(name) | used | {node.name for node in nodes(name, ast.alias)}


def test_only_the_named_modules_have_a_tree_to_change() -> None:
    found = {
        name for name in MODULES if "WritableTree" in named(name) or asked(name) & words("writable _writable")
    }
    assert found | {"toolkit.storage.backend"} == set(MAY_CHANGE)
    strangers = {
        name: kinds
        for name in MODULES
        if (kinds := named(name) & KINDS)
        and not any(f"{name}.".startswith(f"{known}.") for known in MAY_NAME_A_KIND)
    }
    assert strangers == {}


def methods(protocol: type) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


def test_types_refuse_a_change_past_apply(tmp_path: Path) -> None:
    """Each method that changes the tree, asked of what a session, a view and the history have of it."""
    changing = sorted(methods(WritableTree))
    assert len(changing) >= 12
    assert not methods(Tree) & set(changing)
    held = ("session.workspace.backend", "view.workspace.backend", "content_files.backend")
    module = tmp_path / "cheat.py"
    module.write_text(
        "from ringfence import Session\n"
        "from ringfence.toolkit.history.content_files import ContentFiles\n"
        "from ringfence.toolkit.workspace.view import View\n"
        "def cheat(session: Session, view: View, content_files: ContentFiles) -> None:\n"
        "    session.workspace.writable().remove, session.workspace.backend.read\n"
        + "".join(f"    {tree}.{name}\n" for tree in held for name in changing)
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    command += ["--cache-dir", str(tmp_path / "cache"), "--config-file", "pyproject.toml", str(module)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    refused = re.findall(r"cheat\.py:(\d+): error: (.*)", said.stdout)
    assert [int(line) for line, _ in refused] == list(range(6, 6 + len(held) * len(changing))), said
    for (_, why), name in zip(refused, changing * len(held), strict=True):
        assert why.startswith(f'"Tree" has no attribute "{name}"')


# Who goes from names to a place: a call's own arguments are resolved once, before they are judged.
MAY_RESOLVE = {
    "toolkit.session.resolve": "the arguments of a call",
    "toolkit.authoring.what_if": "what `explain` is asked about",
    "toolkit.authoring.matrix": "what `matrix` is asked about",
    "toolkit.storage.local.fsspec_copies": "the arguments of a method",
    "toolkit.storage.local.fsspec_adapter": "the argument of a method",
    "toolkit.storage.backend": "`spot_at`, which everything that comes back to a path goes through",
    "toolkit.storage.local": "the backend itself",
    "toolkit.storage.fsspec_store.backend": "the backend itself",
    "toolkit.storage.sftp": "the backend itself",
    "toolkit.storage.task_mount": "the backend itself",
}


def resolvers() -> set[str]:
    return {
        name
        for name in MODULES
        for call in nodes(name, ast.Call)
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in ("resolve", "walk")
        and "follow" in [keyword.arg for keyword in call.keywords]
    }


def test_what_was_judged_is_resolved_again_by_one_function_only() -> None:
    strangers = {
        name
        for name in resolvers()
        if not any(name == known or name.startswith(f"{known}.") for known in MAY_RESOLVE)
    }
    assert strangers == set()
    assert {
        "toolkit.session.resolve",
        "toolkit.storage.backend",
        "toolkit.storage.local.backend",
    } <= resolvers()


# Who opens what: all roots and task stores come through these, whose refusals hold for every way in.
OPENERS = {
    "Local": {"toolkit.storage.local.opening"},
    "Store": {"toolkit.storage.open"},
    "S3": {"toolkit.storage.open"},
    "Azure": {"toolkit.storage.open"},
    "Sftp": {"toolkit.storage.sftp.opening", "toolkit.storage.sftp.backend"},
    "url_to_fs": {"toolkit.storage.open"},
    "filesystem": set(),
    "LocalFileSystem": set(),
}


@pytest.mark.parametrize("opener", OPENERS)
def test_a_root_is_opened_in_one_place(opener: str) -> None:
    """No module opens a local disk, or any store, past what confines or refuses it."""
    found = {
        name
        for name in MODULES
        for call in nodes(name, ast.Call)
        if opener in (getattr(call.func, "id", None), getattr(call.func, "attr", None))
    }
    assert found == OPENERS[opener]


def test_the_test_for_writers_sees_writers() -> None:
    seen = {
        call
        for name, calls in writers().items()
        if name.startswith("toolkit.storage.local")
        for call in calls
    }
    assert {"unlink", "mkdir"} <= seen


def python(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )


def test_the_pytest_plugin_brings_in_no_session() -> None:
    """It is loaded into every run of pytest where Ringfence is installed."""
    program = "import sys, ringfence.toolkit.testing.pytest_plugin; print(*sorted(sys.modules))"
    loaded = {_ours(name) for name in python(program).stdout.split()}
    assert loaded & {*MODULES} <= {"toolkit", "toolkit.testing", "toolkit.testing.pytest_plugin"}


LIGHT = words(
    "ringfence ringfence.policy ringfence.toolkit ringfence.toolkit.cli ringfence.toolkit.tools"
    " ringfence.toolkit.hooks"
)


@pytest.mark.parametrize("module", sorted(LIGHT))
def test_imports_stay_light(module: str) -> None:
    program = f"import sys, {module}; print(*sorted(set(sys.modules) & set({HEAVY!r})))"
    assert python(program).stdout.strip() == ""


@pytest.mark.parametrize("arguments", ["['--version']", "['--help']", "['explain', '--help']"])
def test_asking_the_command_line_for_help_stays_light(arguments: str) -> None:
    program = (
        "import sys; from ringfence.toolkit.cli import main\n"
        f"assert main({arguments}) == 0\n"
        f"print(*sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr)"
    )
    assert python(program).stderr.strip() == ""


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_says_what_it_is_for(package: str) -> None:
    for name, path in MODULES.items():
        if name.split(".")[0] != package:
            continue
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert said, f"{name} has no docstring"
        assert len(said.splitlines()) <= 5, f"{name}: the docstring is longer than five lines"


# What others may rely on. A name more or less here is a change that they notice.
EXPORTS = {
    "ringfence": words(
        "Answer AsyncSession CODES CallError Decision Effect Policy PolicyError Request Result Session TOOLS"
        " Tool ToolCall parse_call Need"
    ),
    "policy": words(
        "ACTIONS READY_MADE TOOL_ACTIONS Amount Case Decision Effect Explanation Folding Invariant Limit"
        " LimitHit Need Policy PolicyError Problem Rule Step Where load loads ready_made"
    ),
    "toolkit": words(
        "Answer AsyncSession CODES CallError Request Result Session TOOLS Tool ToolCall parse_call"
    ),
    "toolkit.tools": words("TOOLS Tool reference"),
    "toolkit.cli": words("main"),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_what_a_package_exports_is_fixed(name: str) -> None:
    module = import_module(f"ringfence.{name}" if name != "ringfence" else name)
    assert set(module.__all__) == EXPORTS[name]
    assert all(hasattr(module, word) for word in module.__all__)
