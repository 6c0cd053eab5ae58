"""A test of what an agent may do, on a fake file system: nothing real is touched.

pip install ringfence pyfakefs pytest
pytest examples/pyfakefs
"""

from ringfence import Policy, Session

# Loaded here and not in the test: a policy's own file is not in the fake.
POLICY = Policy.loads('version: 1\nrules: {read: allow, delete: {"*": ask, "tmp/*": allow, "*.go": deny}}\n')


def test_a_build_file_stays(fs):
    fs.create_file("/project/tmp/a.txt", contents="scratch")
    fs.create_file("/project/main.go", contents="package main")
    with Session("/project", POLICY, state=":memory:") as session:
        assert session.call({"tool": "delete", "arguments": {"path": "tmp/a.txt"}}).ok
        assert session.call({"tool": "delete", "arguments": {"path": "main.go"}}).status == "denied"
    assert not fs.exists("/project/tmp/a.txt")
    assert fs.exists("/project/main.go")


def test_a_case_insensitive_disk_opens_no_way_round(fs):
    fs.is_case_sensitive = False
    fs.create_file("/project/main.go", contents="package main")
    with Session("/project", POLICY, state=":memory:") as session:
        assert session.call({"tool": "delete", "arguments": {"path": "MAIN.GO"}}).status == "denied"
