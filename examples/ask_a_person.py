"""Embed a session, and answer its questions with a function of your own."""

from pathlib import Path
from tempfile import TemporaryDirectory

from ringfence import Answer, Policy, Request, Session
from ringfence.toolkit.text import escape


def approver(request: Request) -> Answer:
    """Say yes to deletions in old/, no to all others; a real one would ask somebody."""
    print(f"{request.tool}: {request.title}")
    print(f'  the agent says: "{escape(request.description)}"')
    granted = all(path.startswith("old") for path in request.paths)
    return Answer(granted=granted, reason="" if granted else "only old/ may go")


with TemporaryDirectory() as folder:
    root = Path(folder, "project")
    (root / "old").mkdir(parents=True)
    (root / "old" / "notes.txt").write_text("keep me\n")
    (root / "LICENSE").write_text("be kind\n")
    policy = Policy.loads("version: 1\nrules: {read: allow, delete: ask}\n")
    with Session(root, policy, agent="coder", state=Path(folder, "state"), approver=approver) as session:
        for path in ("old", "LICENSE"):
            call = {"id": path, "tool": "delete", "arguments": {"path": path, "description": "clean-up"}}
            result = session.call(call)
            print(f"  {result.status}: {result.content.splitlines()[0]}")
            if result.ok:
                undone = session.undo(result.data["call_id"])
                print(f"  undo: {undone.content.splitlines()[0]}")
                assert (root / "old" / "notes.txt").read_text() == "keep me\n"
