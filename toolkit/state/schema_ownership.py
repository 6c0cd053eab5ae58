"""Ownership of a PostgreSQL schema: who owns it, who else has rights in it, and what code runs in it.

Its name is predictable, so anybody who may create schemas could have created it first. Reads the catalogue
only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError

if TYPE_CHECKING:
    import psycopg

# Our own role and those that it is a member of. Before version 15 a role that can log in could make anybody
# its member. Not pg_has_role, which says yes to a superuser for every role.
_OWNER = """
WITH RECURSIVE ours(role) AS (
    SELECT oid FROM pg_roles WHERE rolname = current_user
    UNION SELECT roleid FROM pg_auth_members JOIN ours ON member = role)
SELECT rolname, rolname = current_user OR (pg_roles.oid IN (SELECT role FROM ours)
    AND (NOT rolcanlogin OR current_setting('server_version_num')::int >= 150000))
FROM pg_namespace JOIN pg_roles ON pg_roles.oid = nspowner WHERE nspname = %(schema)s"""
_OTHERS = """
WITH spaces AS (SELECT oid, nspowner, nspacl FROM pg_namespace WHERE nspname = %(schema)s),
    things AS (SELECT pg_class.oid, relowner, relacl FROM pg_class JOIN spaces ON relnamespace = spaces.oid),
    rights(acl) AS (SELECT nspacl FROM spaces UNION ALL SELECT relacl FROM things
        UNION ALL SELECT attacl FROM pg_attribute JOIN things ON attrelid = things.oid),
    found(role) AS (SELECT relowner FROM things UNION SELECT grantee FROM rights, aclexplode(acl))
SELECT CASE role WHEN 0 THEN 'every role' ELSE pg_get_userbyid(role)::text END FROM found
WHERE role NOT IN (SELECT nspowner FROM spaces) AND pg_get_userbyid(role) <> current_user
ORDER BY 1 LIMIT 1"""
# With our rights run: triggers, rules (a view is one), policies of rows, and functions and operators that are
# found in place of the system's. Indexes, tables and sequences alone are what we make.
_RUNNING = """
WITH spaces AS (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s),
    things AS (SELECT pg_class.* FROM pg_class JOIN spaces ON relnamespace = spaces.oid)
SELECT 'trigger ' || tgname FROM pg_trigger JOIN things ON tgrelid = things.oid WHERE NOT tgisinternal
UNION ALL SELECT 'rule ' || rulename FROM pg_rewrite JOIN things ON ev_class = things.oid
UNION ALL SELECT 'row policy ' || polname FROM pg_policy JOIN things ON polrelid = things.oid
UNION ALL SELECT 'function ' || proname FROM pg_proc JOIN spaces ON pronamespace = spaces.oid
UNION ALL SELECT 'operator ' || oprname FROM pg_operator JOIN spaces ON oprnamespace = spaces.oid
UNION ALL SELECT 'relation ' || relname FROM things WHERE relkind NOT IN ('r', 'i', 'S')
ORDER BY 1 LIMIT 1"""


def check_schema(db: psycopg.Connection[Any], schema: str) -> bool:
    """Whether the schema exists.

    CallError `history_unavailable` where others own it or have rights in it.
    """
    name = {"schema": schema}
    owner = db.execute(_OWNER, name).fetchone()
    if owner is None:
        return False
    if not owner[1]:
        raise _refused(f"belongs to the role '{owner[0]}'", "connect as a member of the role that made it")
    other = db.execute(_OTHERS, name).fetchone()
    if other is not None:
        raise _refused(f"can be used by '{other[0]}' as well", f"REVOKE what '{other[0]}' has in {schema}")
    running = db.execute(_RUNNING, name).fetchone()
    if running is not None:
        raise _refused(f"has a {running[0]}, which is not ours", f"find out who put it into {schema}")
    return True


def _refused(why: str, hint: str) -> CallError:
    return CallError(
        "history_unavailable",
        f"The shared history's schema {why}, so it is not used",
        hint=f"{hint}, or have the administrator remove the schema and make it for one role",
    )
