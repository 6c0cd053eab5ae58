"""The shape of the code, read from its source: who may import whom, and who may change a file."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
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
    "ringfence.policy.loading.loader",
    "ringfence.policy.loading.ready_made",
    "ringfence.policy.evaluation.cases",
    "ringfence.policy.loading.cache",
)
DEPENDENCIES = {"yaml", "jsonschema", "referencing", "fsspec", "platformdirs", "rich", "shtab"}
# What is imported only by who has asked for it.
SERVING = {"starlette", "uvicorn", "anyio"}
OPTIONAL = {
    "ringfence.toolkit.testing.backend_contract": {"pytest"},
    "ringfence.toolkit.storage.s3": {"botocore"},
    "ringfence.toolkit.storage.sftp": {"paramiko"},
    "ringfence.toolkit.testing.faults.sftp_proxy": {"paramiko"},
    "ringfence.toolkit.state.postgres": {"psycopg"},
    "ringfence.toolkit.state.schema_ownership": {"psycopg"},
    "ringfence.toolkit.storage.azure": {"azure", "aiohttp"},
    "ringfence.toolkit.http": SERVING,
    "ringfence.toolkit.cli.commands.serve_http": SERVING,
    "ringfence.toolkit.review": {*SERVING, "jinja2", "markupsafe"},
    "ringfence.toolkit.cli.watch.app": {"textual"},
    "ringfence.toolkit.cli.watch.dialogs": {"textual"},
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


def imports(path: Path, *, at_load: bool) -> set[str]:
    """The modules a file imports; with `at_load` only what loading it imports."""
    found: set[str] = set()
    for node in _walk(ast.parse(path.read_text(encoding="utf-8")), at_load=at_load):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in MODULES else node.module)
    return found


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
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    return (node for node in ast.walk(tree) if isinstance(node, kind))


@pytest.mark.parametrize("name", MODULES)
def test_only_named_dependencies_are_imported(name: str) -> None:
    tops = {imported.split(".")[0] for imported in imports(MODULES[name], at_load=False)}
    asked = {one for key, names in OPTIONAL.items() if f"{name}.".startswith(f"{key}.") for one in names}
    assert tops <= STANDARD | DEPENDENCIES | set(PACKAGES) | asked


@pytest.mark.parametrize("name", [name for name in MODULES if not name.startswith("ringfence.toolkit.cli")])
def test_nothing_below_imports_the_command_line(name: str) -> None:
    assert not [
        found for found in imports(MODULES[name], at_load=False) if found.startswith("ringfence.toolkit.cli")
    ]


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("ringfence.toolkit.tools")])
def test_tools_can_only_plan(name: str) -> None:
    """A tool sees values and the read-only view: nothing that could open, change or record."""
    tops = {imported.split(".")[0] for imported in imports(MODULES[name], at_load=False)}
    assert not tops & words("os io shutil subprocess sqlite3 fsspec socket tempfile pathlib")
    ours = {found for found in imports(MODULES[name], at_load=True) if found.startswith("toolkit.")}
    allowed = words(
        "ringfence.toolkit.errors ringfence.toolkit.paths ringfence.toolkit.plan.changes ringfence.toolkit.durations ringfence.toolkit.text ringfence.toolkit.call"
    )
    if name == "ringfence.toolkit.tools":
        allowed.add(
            "ringfence.toolkit.fake_fs"
        )  # the table reads the tools' own documents past a fake file system
    assert {found for found in ours if not found.startswith("ringfence.toolkit.tools")} <= allowed


def test_what_looks_at_tasks_cannot_change_them() -> None:
    for name in words("ids look metadata said batch"):
        found = imports(MODULES[f"ringfence.toolkit.tasks.{name}"], at_load=False)
        outside = words("os io shutil subprocess sqlite3 fsspec pathlib")
        assert not {one.split(".")[0] for one in found} & outside
        assert not found & words(
            "ringfence.toolkit.execution.apply ringfence.toolkit.storage.backend ringfence.toolkit.storage.task_mount ringfence.toolkit.session.purge_tasks"
        )


def test_no_import_cycles() -> None:
    graph = {
        name: {found for found in imports(path, at_load=True) if found in MODULES and found != name}
        for name, path in MODULES.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


def writers() -> dict[str, set[str]]:
    """Which modules call something that changes a file, by the names of what they call."""
    found: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
    "ringfence.policy.loading.cache": "the forms it keeps of policies that were read, in the user's cache",
    "ringfence.toolkit.execution.apply": "the workspace",
    "ringfence.toolkit.storage.local": "the workspace, as the local backend",
    "ringfence.toolkit.storage.fsspec_store.backend": "the workspace, as the fsspec backend",
    "ringfence.toolkit.storage.s3": "the workspace, as the S3 backend",
    "ringfence.toolkit.storage.sftp": "the workspace, as the SFTP backend",
    "ringfence.toolkit.storage.local.fsspec_adapter": "the directory it was made for, by the local backend",
    "ringfence.toolkit.storage.task_mount_open": "the root of a task store in memory, and the trash beside a task store",
    "ringfence.toolkit.testing.trial": "its workspace in memory",
    "ringfence.toolkit.workspace.workspace": "the root of a store in memory",
    "ringfence.toolkit.state.machine_identity": "the random id of this user on this machine, beside the states",
    "ringfence.toolkit.state.process_locks": "the locks of processes, beside the state",
    "ringfence.toolkit.audit.jsonl_mirror": "the audit log, at a person's wish",
    "ringfence.toolkit.state.audit_segments": "the oldest audit records, beside its own store",
    "ringfence.toolkit.state.sqlite": "its own store",
    "ringfence.toolkit.state.files": "the files of its own store",
    "ringfence.toolkit.state_repair.adopt": "the names of states",
    "ringfence.toolkit.state_repair.salvage": "a new store beside a damaged one",
    "ringfence.toolkit.state_repair.damaged_database": "a copy of a damaged store",
    "ringfence.toolkit.private_files": "the modes of its own store",
    "ringfence.toolkit.history.content_files": "the contents beside its own store",
    "ringfence.toolkit.state.migrations": "a copy of its own store",
    "ringfence.toolkit.testing.backend_contract": "the workspace that its test fixture gives",
    "ringfence.toolkit.cli.create_file": "a new file, at a person's command",
    "ringfence.toolkit.cli.replace_file": "a policy or another program's settings, at a person's command",
    "ringfence.toolkit.hooks.respond": "/dev/null",
    "ringfence.toolkit.cli.commands.hook": "another program's settings, at a person's command",
    "ringfence.toolkit.cli.reference_pages": "the pages of docs/",
    "ringfence.toolkit.cli.approval_prompt": "the terminal",
    "ringfence.toolkit.cli.streams": "/dev/null",
    "ringfence.toolkit.cli.commands.demo": "its throw-away workspace",
    "ringfence.toolkit.cli.git_revisions": "a throw-away folder with the files of a revision",
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
    "ringfence.toolkit.execution.apply": "makes the changes of a plan",
    "ringfence.toolkit.execution.recovery": "finishes or puts back what a dead process left half done",
    "ringfence.toolkit.history.pruning": "lets go of deleted trees that are forgotten",
    "ringfence.toolkit.workspace.workspace": "opens the tree, and has the method that gives it",
    "ringfence.toolkit.storage.backend": "says what it is",
    "ringfence.toolkit.storage.fsspec_store.backend": "opens a store",
    "ringfence.toolkit.storage.task_mount_open": "opens a task store",
    "ringfence.toolkit.storage.task_mount": "is two of them",
}
# The kinds of tree, which have all of these methods.
KINDS = words("Local Store S3 Azure Sftp Joined")
MAY_NAME_A_KIND = {
    "ringfence.toolkit.storage.local.fsspec_adapter": "changes its own directory",
    "ringfence.toolkit.storage.local.fsspec_copies": "the same",
    **dict.fromkeys(
        words(
            "ringfence.toolkit.storage.local ringfence.toolkit.storage.s3 ringfence.toolkit.storage.azure ringfence.toolkit.storage.sftp ringfence.toolkit.storage.fsspec_store.backend"
        ),
        "the kind",
    ),
    **dict.fromkeys(
        words("ringfence.toolkit.storage.task_mount_open ringfence.toolkit.storage.task_mount"), "the kind"
    ),
}


def asked(name: str) -> set[str]:
    """What a module asks an object for, by a name in its source."""
    found = {node.attr for node in nodes(name, ast.Attribute)}
    for call in nodes(name, ast.Call):
        match call:
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(word)), *_]):
                found.add(word)
    return found


def named(name: str) -> set[str]:
    """The same, with what it imports and uses."""
    used = {node.id for node in nodes(name, ast.Name)}
    return asked(name) | used | {node.name for node in nodes(name, ast.alias)}


def test_only_the_named_modules_have_a_tree_to_change() -> None:
    found = {
        name for name in MODULES if "WritableTree" in named(name) or asked(name) & words("writable _writable")
    }
    assert found | {"ringfence.toolkit.storage.backend"} == set(MAY_CHANGE)
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
    held = ("session.workspace.backend", "view.workspace.backend", "shelf.backend")
    module = tmp_path / "cheat.py"
    module.write_text(
        "from ringfence.toolkit.session.session import Session\n"
        "from ringfence.toolkit.history.content_files import Shelf\n"
        "from ringfence.toolkit.workspace.view import View\n"
        "def cheat(session: Session, view: View, shelf: Shelf) -> None:\n"
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
    "ringfence.toolkit.session.resolve": "the arguments of a call",
    "ringfence.toolkit.authoring.what_if": "what `explain` is asked about",
    "ringfence.toolkit.authoring.matrix": "what `matrix` is asked about",
    "ringfence.toolkit.storage.local.fsspec_copies": "the arguments of a method",
    "ringfence.toolkit.storage.local.fsspec_adapter": "the argument of a method",
    "ringfence.toolkit.storage.backend": "`spot_at`, which everything that comes back to a path goes through",
    "ringfence.toolkit.storage.local": "the backend itself",
    "ringfence.toolkit.storage.fsspec_store.backend": "the backend itself",
    "ringfence.toolkit.storage.sftp": "the backend itself",
    "ringfence.toolkit.storage.task_mount": "the backend itself",
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
        "ringfence.toolkit.session.resolve",
        "ringfence.toolkit.storage.backend",
        "ringfence.toolkit.storage.local.backend",
    } <= resolvers()


# Who opens what: all roots and task stores come through these, whose refusals hold for every way in.
OPENERS = {
    "Local": {"ringfence.toolkit.storage.local.opening"},
    "Store": {"ringfence.toolkit.storage.fsspec_store.backend"},
    "S3": {"ringfence.toolkit.storage.fsspec_store.backend"},
    "Azure": {"ringfence.toolkit.storage.fsspec_store.backend"},
    "Sftp": {"ringfence.toolkit.storage.sftp.opening", "ringfence.toolkit.storage.sftp.backend"},
    "url_to_fs": {"ringfence.toolkit.storage.fsspec_store.backend"},
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
        if name.startswith("ringfence.toolkit.storage.local")
        for call in calls
    }
    assert {"unlink", "mkdir"} <= seen


def python(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )


def test_the_pytest_plugin_brings_in_nothing_of_ours() -> None:
    """Where a project has a `policy` or a `toolkit` of its own, its tests must find that one."""
    program = "import sys, ringfence_pytest; print(*sorted(set(sys.modules) & {'policy', 'toolkit'}))"
    assert python(program).stdout.strip() == ""


@pytest.mark.parametrize(
    "module", ["policy", "toolkit", "ringfence.toolkit.cli", "ringfence.toolkit.tools", "ringfence_pytest"]
)
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
    "policy": words(
        "ACTIONS READY_MADE TOOL_ACTIONS Amount Case Decision Effect Explanation Folding Invariant Limit"
        " LimitHit Need Policy PolicyError Problem Rule Step Where load loads ready_made"
    ),
    "toolkit": words(
        "Answer AsyncSession CODES CallError Request Result Session TOOLS Tool ToolCall parse_call"
    ),
    "ringfence.toolkit.tools": words("TOOLS Tool reference"),
    "ringfence.toolkit.cli": words("main"),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_what_a_package_exports_is_fixed(name: str) -> None:
    module = import_module(name)
    assert set(module.__all__) == EXPORTS[name]
    assert all(hasattr(module, word) for word in module.__all__)
