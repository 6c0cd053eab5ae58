"""The command line on a store, behind the second wall, and what `doctor` tells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.storage.local.landlock import version
from tests.services.servers import BUCKET, S3Server, seaweedfs

ROOT = Path(__file__).resolve().parents[2]
ALLOW = 'version: 1\nrules: {"*": allow}\n'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with seaweedfs(tmp_path_factory.mktemp("weed")) as found:
        yield found


def ringfence(words: list[str], text: str = "", **environment: str) -> Any:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "ringfence", *words],
        input=text,
        env={**inherited, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def calls(*pairs: tuple[str, dict[str, Any]]) -> str:
    return "".join(json.dumps({"tool": tool, "arguments": arguments}) + "\n" for tool, arguments in pairs)


def test_a_bucket_as_the_root(server: S3Server, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(ALLOW)
    where = [
        "--root",
        f"s3://{BUCKET}/cli",
        "--endpoint",
        server.endpoint,
        "--state",
        str(tmp_path / "state"),
    ]
    text = calls(
        ("create_file", {"path": "d/a", "content": "one\n"}),
        ("edit_file", {"path": "d/a", "old_str": "one", "new_str": "two"}),
        ("delete", {"path": "d"}),
    )
    done = ringfence(["run", *where, "--policy", str(tmp_path / "p.yaml")], text, **server.environment())
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["status"] for answer in answers] == ["ok"] * 3, done
    assert done.stderr == ""
    taken_back = ringfence(
        ["undo", answers[2]["data"]["call_id"], "-y", *where, "--policy", str(tmp_path / "p.yaml")],
        **server.environment(),
    )
    assert taken_back.returncode == 0, taken_back
    read = ["call", "read_file", '{"path": "d/a"}', *where, "--policy", str(tmp_path / "p.yaml")]
    assert "two" in ringfence(read, **server.environment()).stdout


def test_a_bucket_that_cannot_be_opened(server: S3Server, tmp_path: Path) -> None:
    where = ["--endpoint", server.endpoint, "--state", str(tmp_path)]
    call = ["call", "directory_tree", "{}", *where, "--root"]
    missing = ringfence([*call, "s3://nowhere/x"], **server.environment())
    assert missing.returncode != 0
    assert "the bucket 'nowhere' is not there" in missing.stderr.lower(), missing
    wrong = ringfence([*call, f"s3://{BUCKET}/x"], **{**server.environment(), "AWS_SECRET_ACCESS_KEY": "no"})
    assert wrong.returncode != 0
    assert "Traceback" not in wrong.stderr
    none = ringfence([*call, f"s3://{BUCKET}/x"], AWS_EC2_METADATA_DISABLED="true", HOME=str(tmp_path))
    assert none.returncode != 0
    assert "Traceback" not in none.stderr


def test_an_endpoint_is_for_buckets_only(tmp_path: Path) -> None:
    done = ringfence(["call", "directory_tree", "--root", str(tmp_path), "--endpoint", "http://x"])
    assert (done.returncode, "only for a root" in done.stderr) == (2, True)


@pytest.mark.skipif(not version(), reason="this kernel has no Landlock")
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_behind_landlock_the_tools_work_and_the_process_reaches_no_further(
    tmp_path: Path, scheme: str
) -> None:
    root = tmp_path / "ws"
    (root / "d").mkdir(parents=True)
    (root / "ringfence.yaml").write_text(ALLOW)
    text = calls(
        ("create_file", {"path": "d/a", "content": "1"}),
        ("edit_file", {"path": "d/a", "old_str": "1", "new_str": "2"}),
        ("search_text", {"query": "2"}),
        ("move_file", {"source": "d/a", "destination": "b"}),
        ("delete", {"path": "d"}),
    )
    where = ["--root", f"{scheme}{root}", "--state", str(tmp_path / "state")]
    done = ringfence(["run", "--landlock", *where], text)
    assert [json.loads(line)["status"] for line in done.stdout.splitlines()] == ["ok"] * 5, done
    outside = tmp_path / "outside"
    outside.write_text("1")
    program = (
        "import sys; from ringfence.toolkit.storage.local.landlock import restrict\n"
        "restrict([sys.argv[1]], [])\n"
        "open(sys.argv[1] + '/new', 'w').close()\n"
        "try: open(sys.argv[2])\nexcept PermissionError: print('denied')"
    )
    tried = subprocess.run(
        [sys.executable, "-c", program, str(root), str(outside)], cwd=ROOT, capture_output=True, text=True
    )
    assert tried.stdout == "denied\n", tried


def test_doctor_tells_what_there_is(tmp_path: Path) -> None:
    done = ringfence(["doctor", "--json", "--root", str(tmp_path)])
    found = json.loads(done.stdout)
    assert {"resolves_by", "landlock", "folds_case", "extras", "root"} <= found.keys()
    assert ringfence(["doctor", "--root", str(tmp_path)]).returncode == 0
