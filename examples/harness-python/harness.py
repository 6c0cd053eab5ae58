"""A harness with a person in it: calls go to `ringfence run`, its questions come here and never to the agent.

`python harness.py` works in the current folder and asks at its own stdin: y, a (for the session), or no.
"""

import json
import socket
import subprocess
import threading
from pathlib import Path

Path("ringfence.yaml").write_text("version: 1\nrules: {read: allow, write: allow, delete: ask}\n")
# What a model would send.
CALLS = [
    ("create_file", {"path": "old/notes.txt", "content": "milk\neggs\n"}),
    ("create_file", {"path": "LICENSE", "content": "be kind\n"}),
    ("delete", {"path": "old", "description": "left over"}),
    ("delete_file", {"path": "LICENSE"}),
]


def decide(asked: dict) -> dict:
    """Show the person the request, and read their answer; a real harness would open a dialog."""
    print(f"? {asked['title']} (agent {asked['agent']}, call {asked['call']})")
    if asked["description"]:
        print(f'  it says: "{asked["description"]}"')
    print(asked["preview"].rstrip())
    try:
        typed = input("  y, a or n: ")
    except EOFError:
        typed = ""
    answer = {"id": asked["id"], "grant": typed == "y", "by": "ada"}
    session = [scope for scope in asked["scopes"] if scope["scope"] == "session"]
    if typed == "a" and session:
        reach = session[0]["reach"]
        print(f"  {session[0]['words']}" + (f": {reach['paths']} paths now" if reach else ""))
        sure = input("  all of that? y or n: ") == "y"
        answer |= {"grant": sure, "scope": "session", "confirmed": sure}
    return answer


def answer(channel: socket.socket) -> None:
    """Answer what is asked until the other end closes."""
    with channel, channel.makefile("r") as messages:
        for line in messages:
            message = json.loads(line)
            if message["event"] == "asked":
                channel.sendall(json.dumps(decide(message)).encode() + b"\n")
            elif message["event"] == "closed":
                print(f"= {message['state']} {message['reason']}".rstrip())


ours, theirs = socket.socketpair()
command = ["ringfence", "run", "--root", ".", "--agent", "coder", "--approvals-fd", str(theirs.fileno())]
with subprocess.Popen(
    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=[theirs.fileno()]
) as gate:
    theirs.close()  # so that the person's side notices when the process ends
    person = threading.Thread(target=answer, args=(ours,))
    person.start()
    for number, (tool, arguments) in enumerate(CALLS):
        print(json.dumps({"id": number, "tool": tool, "arguments": arguments}), file=gate.stdin, flush=True)
        result = json.loads(gate.stdout.readline())
        print(f"{result['id']} {result['status']}: {result['content'].splitlines()[0]}")
    gate.stdin.close()
    person.join()
