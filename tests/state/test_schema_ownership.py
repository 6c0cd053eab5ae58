"""Two tenants on one PostgreSQL, each tried against the other: a schema is used only if it is ours alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import local_place
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state.open import default_place
from tests.history.test_shared import url_of

pytestmark = pytest.mark.slow
psycopg = pytest.importorskip("psycopg", reason="no psycopg: pip install 'ringfence[postgres]'")
POLICY = Policy.loads('version: 1\nrules: {"*": allow, delete: ask}\n')
TENANTS = ("alice", "bob")


@pytest.fixture
def run(postgres_url: str) -> Callable[..., Any]:
    """Runs statements as a role."""

    def as_role(role: str, *statements: str) -> list[Any]:
        with psycopg.connect(url_of(postgres_url, role), autocommit=True) as db:
            rows: list[Any] = []
            for statement in statements:
                cursor = db.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
            return rows

    return as_role


@pytest.fixture(autouse=True)
def tenants(run: Callable[..., Any]) -> Iterator[None]:
    (database,) = run("ringfence", "SELECT quote_ident(current_database())")[0]
    for role in TENANTS:
        run("ringfence", f"CREATE ROLE {role} LOGIN", f"GRANT CREATE ON DATABASE {database} TO {role}")
    run("ringfence", "CREATE ROLE team NOLOGIN", "CREATE ROLE reader LOGIN")
    yield
    for role in (*TENANTS, "team", "reader"):
        run("ringfence", f"DROP OWNED BY {role} CASCADE", f"DROP ROLE {role}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/f").write_text("SECRET of alice")
    return tmp_path / "ws"


@pytest.fixture
def opened(root: Path, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A session of a role on the workspace; each role works on a machine of its own."""

    @contextmanager
    def as_role(role: str, more: str = "") -> Iterator[Session]:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / role))
        with Session(root, POLICY, state=url_of(postgres_url, role) + more, session="s") as session:
            yield session

    return as_role


@pytest.fixture
def schema(root: Path, postgres_url: str) -> str:
    return default_place(local_place(str(root.resolve())), postgres_url).rpartition("#")[2]


def edited(session: Session) -> bool:
    arguments = {"path": "f", "old_str": "SECRET", "new_str": "NEW"}
    return session.call({"tool": "edit_file", "arguments": arguments}).ok


def refused(opened: Any, role: str = "alice", more: str = "") -> str:
    with pytest.raises(CallError) as caught, opened(role, more):
        pass
    assert caught.value.code == "history_unavailable"
    assert caught.value.hint
    return caught.value.message


def test_whoever_makes_the_schema_first_gets_nothing(
    opened: Any, run: Callable[..., Any], schema: str
) -> None:
    run("alice", "CREATE SCHEMA alices", "CREATE TABLE alices.row AS SELECT 'alice-private-row' AS text")
    with opened("bob"):
        pass  # the tables are as they should be, only not alice's
    run(
        "bob",
        "CREATE SCHEMA bobs",
        "CREATE TABLE bobs.loot(who text, what text)",
        "CREATE FUNCTION bobs.grab() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO bobs.loot SELECT current_user, text FROM alices.row; RETURN NEW; END $$",
        "GRANT ALL ON SCHEMA bobs TO PUBLIC",
        "GRANT ALL ON bobs.loot TO PUBLIC",
        f"GRANT ALL ON SCHEMA {schema} TO PUBLIC",
        f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO PUBLIC",
        f"CREATE TRIGGER t BEFORE INSERT ON {schema}.owner FOR EACH ROW EXECUTE FUNCTION bobs.grab()",
    )
    assert "belongs to the role 'bob'" in refused(opened)
    assert run("bob", "SELECT * FROM bobs.loot") == []
    assert "can be used by 'every role'" in refused(opened, "bob")
    # An administrator to whom every role's rights are given is no more careless.
    assert "belongs to the role 'bob'" in refused(opened, "ringfence")


def test_each_tenant_is_kept_out_of_the_others(opened: Any, run: Callable[..., Any], schema: str) -> None:
    with opened("alice") as session:
        assert edited(session)
        assert "belongs to the role 'alice'" in refused(opened, "bob")
        for statement in (
            f"SELECT data FROM {schema}.blob",
            f"UPDATE {schema}.approval SET state = 'granted'",
            f"CREATE TABLE {schema}.x(y text)",
            f"CREATE TRIGGER t BEFORE INSERT ON {schema}.owner FOR EACH ROW EXECUTE FUNCTION x()",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                run("bob", statement)
        assert session.call({"tool": "read_file", "arguments": {"path": "f"}}).ok


RIGHTS = {
    "the schema": "GRANT USAGE ON SCHEMA {schema} TO reader",
    "a table": "GRANT SELECT ON {schema}.blob TO reader",
    "a column": "GRANT UPDATE (state) ON {schema}.approval TO reader",
    "a sequence": "GRANT USAGE ON SEQUENCE {schema}.op_id_seq TO reader",
    "everybody": "GRANT SELECT ON {schema}.audit TO PUBLIC",
}


@pytest.mark.parametrize("what", RIGHTS)
def test_rights_of_another_role(opened: Any, run: Callable[..., Any], schema: str, what: str) -> None:
    with opened("alice"):
        pass
    grant = RIGHTS[what].format(schema=schema)
    run("alice", grant)
    whose = "every role" if what == "everybody" else "reader"
    assert f"can be used by '{whose}' as well" in refused(opened)
    run("alice", grant.replace("GRANT", "REVOKE").replace(" TO ", " FROM "))
    with opened("alice") as session:
        assert edited(session)


def test_a_table_of_another_role(opened: Any, run: Callable[..., Any], schema: str) -> None:
    with opened("alice"):
        pass
    run("alice", f"GRANT ALL ON SCHEMA {schema} TO bob")
    run("bob", f"CREATE TABLE {schema}.later(x text)")
    run("alice", f"REVOKE ALL ON SCHEMA {schema} FROM bob")
    assert "can be used by 'bob'" in refused(opened)


def test_rights_that_new_tables_get_by_themselves(opened: Any, run: Callable[..., Any], schema: str) -> None:
    run("alice", "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader")
    assert "can be used by 'reader'" in refused(opened)
    assert run("alice", f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema}'") == [], "nothing was made"


RUNNING = {
    "trigger t": "CREATE TRIGGER t BEFORE INSERT ON {schema}.owner FOR EACH ROW EXECUTE FUNCTION theirs.f()",
    "rule r": "CREATE RULE r AS ON INSERT TO {schema}.op DO ALSO SELECT 1",
    "row policy p": "CREATE POLICY p ON {schema}.blob USING (true)",
    "function clock_timestamp": "CREATE FUNCTION {schema}.clock_timestamp(x int) RETURNS int"
    " LANGUAGE sql AS 'SELECT 1'",
    "relation v": "CREATE MATERIALIZED VIEW {schema}.v AS SELECT 1",
}


@pytest.mark.parametrize("what", RUNNING)
def test_what_would_run_with_our_rights(opened: Any, run: Callable[..., Any], schema: str, what: str) -> None:
    with opened("alice"):
        pass
    run(
        "alice",
        "CREATE SCHEMA theirs",
        "CREATE FUNCTION theirs.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        RUNNING[what].format(schema=schema),
    )
    said = refused(opened)
    assert f"has a {what}," in said or "has a rule _RETURN" in said


def test_what_came_while_we_were_away_is_seen_when_we_connect_again(
    opened: Any, run: Callable[..., Any], schema: str
) -> None:
    with opened("alice") as session:
        assert edited(session)
        run("alice", f"GRANT USAGE ON SCHEMA {schema} TO bob")
        session.state._connection.close()
        answer = session.call({"tool": "create_file", "arguments": {"path": "g", "content": ""}})
        assert answer.error, answer.content
        assert answer.error["code"] == "history_unavailable"
        assert "'bob'" in answer.content


def test_a_schema_that_the_administrator_made(
    opened: Any, run: Callable[..., Any], schema: str, postgres_url: str
) -> None:
    (database,) = run("ringfence", "SELECT quote_ident(current_database())")[0]
    run("ringfence", f"REVOKE CREATE ON DATABASE {database} FROM alice")
    with pytest.raises(CallError, match="may not create it") as caught, opened("alice"):
        pass
    _, _, statement = str(caught.value.hint).partition("runs: ")
    assert statement == f"CREATE SCHEMA {schema} AUTHORIZATION alice"
    run("ringfence", statement)
    with opened("alice") as session:
        assert edited(session)
        asked = session.call({"tool": "delete_file", "arguments": {"path": "f"}})
        assert asked.status == "approval_required"
    with opened("alice") as session:
        assert [version.name for version in session.versions("f")] == ["initial", "v1"]


def test_people_of_one_team_share_a_schema_by_its_role(
    opened: Any, run: Callable[..., Any], schema: str
) -> None:
    run("ringfence", f"CREATE SCHEMA {schema} AUTHORIZATION team", "GRANT team TO alice, bob")
    team = "?options=-c%20role%3Dteam"
    with opened("alice", team) as session:
        assert edited(session)
    with opened("bob", team) as session:
        assert [version.name for version in session.versions("f")] == ["initial", "v1"]
    run("ringfence", "REVOKE team FROM bob")
    assert "cannot be used" in refused(opened, "bob", team)
    assert "belongs to the role 'team'" in refused(opened, "bob")
