"""Loading: files that extend others, what they come to together, and what is refused before it is read."""

import os
from pathlib import Path

import pytest

from ringfence.policy import Effect, Policy, PolicyError, load, loads
from ringfence.policy.evaluation.cases import cases_beside, check
from ringfence.policy.loading.loader import load_cases
from ringfence.policy.loading.yaml_tree import MAX_BYTES
from ringfence.policy.model import Tasks


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text("version: 1\n" + text, encoding="utf-8")
    return folder / f"{next(iter(files))}.yaml"


def codes(error: PolicyError) -> list[str]:
    return [problem.code for problem in error.problems]


def rules(policy: Policy) -> dict[str, list[str]]:
    return {key: [f"{r.pattern} {r.effect}" for r in listed] for key, listed in policy.content.rules.items()}


def test_the_base_comes_first_key_by_key(tmp_path: Path) -> None:
    policy = load(
        write(
            tmp_path,
            own="extends: [./one.yaml, two.yaml]\nrules: {write: {own: deny}, read: ask}\n",
            one="rules: {write: {one: deny}, delete: ask}\n",
            two="rules: {write: allow, read: {two: deny}}\n",
        )
    )
    assert rules(policy) == {
        "write": ["one deny", "* allow", "own deny"],
        "delete": ["* ask"],
        "read": ["two deny", "* ask"],
    }
    assert [Path(file).name for file in policy.files] == ["own.yaml", "one.yaml", "two.yaml"]
    assert all(Path(file).is_absolute() for file in policy.files)


def test_rules_say_where_they_come_from_without_host_paths(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    write(tmp_path / "team", base="rules: {read: {x: deny}}\n")
    policy = load(write(tmp_path, own="extends: [team/base.yaml, baseline]\nrules: {read: {y: deny}}\n"))
    places = {rule.pattern: str(rule.where) for rule in policy.content.rules["read"]}
    assert places["x"] == "team/base.yaml:2:16"
    assert places["y"] == "own.yaml:3:16"
    assert places["*"].startswith("rules/baseline.yaml:")
    assert [Path(file).name for file in policy.files] == ["own.yaml", "base.yaml"]  # no ready-made one


def test_the_floor_adds_up_and_agents_keep_their_place(tmp_path: Path) -> None:
    policy = load(
        write(
            tmp_path,
            own="extends: base.yaml\nmandatory: [{deny: read, paths: b}]\n"
            'agents: {"*": {rules: {write: ask}}, new: {}}\n',
            base="mandatory: [{ask: read, paths: a}]\n"
            'agents: {"*": {rules: {write: deny}}, "r-*": {rules: {read: deny}}}\n',
        )
    )
    assert [item.rules[0].pattern for item in policy.content.mandatory] == ["a", "b"]
    assert list(policy.content.agents) == ["*", "r-*", "new"]
    assert policy.effect("r-1", "read_file", "read", "x") is Effect.DENY
    assert policy.effect("any", "create_file", "write", "x") is Effect.ASK


def test_limits_merge_field_by_field_and_a_list_replaces(tmp_path: Path) -> None:
    base = (
        "limits: {delete: {max_files: 5, max_bytes: 9, over: deny}, write: {max_files: 1}, "
        "read: [{max_files: 1}]}\n"
    )
    own = (
        "extends: base.yaml\n"
        "limits: {delete: {max_files: 7}, write: [{max_bytes: 2}], read: {max_bytes: 3}}\n"
    )
    policy = load(write(tmp_path, own=own, base=base))
    limits = policy.content.limits
    found = {
        key: [(each.max_files, each.max_bytes, each.over) for each in listed]
        for key, listed in limits.items()
    }
    assert found == {
        "delete": [(7, 9, Effect.DENY)],
        "write": [(None, 2, Effect.ASK)],
        "read": [(None, 3, Effect.ASK)],
    }


def test_a_limit_may_leave_the_number_to_its_base_but_somebody_says_one(tmp_path: Path) -> None:
    base = "limits: {delete: {max_files: 5}}\n"
    own = "extends: base.yaml\nlimits:\n  delete: {over: deny}\n"
    (limit,) = load(write(tmp_path, own=own, base=base)).content.limits["delete"]
    assert (limit.max_files, limit.over) == (5, Effect.DENY)
    with pytest.raises(PolicyError, match=r"own\.yaml:4:11: a limit says how much"):
        load(write(tmp_path, own=own, base="rules: {}\n"))


def test_own_settings_win_and_cases_are_the_files_own(tmp_path: Path) -> None:
    base = (
        "mode: monitor\ndurable: false\nhard_links: refuse\ntasks: {path: t, max_tasks: 3}\n"
        "cases: [{action: read, path: a, want: deny}]\n"
    )
    policy = load(write(tmp_path, own="extends: base.yaml\nmode: enforce\n", base=base))
    assert (policy.mode, policy.durable, policy.hard_links) == ("enforce", False, "refuse")
    assert policy.tasks == Tasks("t", 3)
    assert policy.cases == ()
    plain = loads("version: 1")
    assert (plain.mode, plain.durable, plain.hard_links, plain.tasks) == ("enforce", True, "replace", None)


def test_a_base_reached_twice_counts_once_where_it_was_reached_first(tmp_path: Path) -> None:
    policy = load(
        write(
            tmp_path,
            own="extends: [a.yaml, b.yaml]\n",
            a="extends: c.yaml\nrules: {read: {a: allow}}\n",
            b="extends: ./c.yaml\nrules: {read: {b: allow}}\n",
            c="rules: {read: {c: deny}}\n",
        )
    )
    assert rules(policy)["read"] == ["c deny", "a allow", "b allow"]


def test_a_cycle_is_an_error_where_it_closes(tmp_path: Path) -> None:
    own = write(
        tmp_path,
        own="extends: a.yaml\n",
        a="extends: [b.yaml]\n",
        b=f"rules: {{}}\nextends: [../{tmp_path.name}/own.yaml]\n",
    )
    with pytest.raises(PolicyError) as caught:
        load(own)
    (problem,) = caught.value.problems
    assert problem.code == "extends_cycle"
    assert problem.where
    assert problem.where.file == str(tmp_path / "b.yaml")
    assert (problem.where.line, problem.where.column) == (3, 11)
    myself = write(tmp_path, me="extends: me.yaml\n")
    with pytest.raises(PolicyError) as caught:
        load(myself)
    assert codes(caught.value) == ["extends_cycle"]


def test_all_files_problems_come_at_once_each_in_its_file(tmp_path: Path) -> None:
    own = write(
        tmp_path, own="extends: [a.yaml, gone.yaml]\nrules: {read: alow}\n", a="rules: {write: dny}\n"
    )
    with pytest.raises(PolicyError) as caught:
        load(own)
    found = [(p.code, Path(p.where.file).name, p.where.line) for p in caught.value.problems if p.where]
    assert found == [
        ("effect_unknown", "a.yaml", 2),
        ("file_unreadable", "own.yaml", 2),
        ("effect_unknown", "own.yaml", 3),
    ]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.yaml", tmp_path, Path("nul\0.yaml")):
        with pytest.raises(PolicyError) as caught:
            load(path)
        assert codes(caught.value) == ["file_unreadable"]
    with pytest.raises(PolicyError, match="cannot be read: no such file"):
        load(tmp_path / "gone.yaml")


def test_bytes_that_are_no_policy() -> None:
    for data, code in [
        (b"version: 1\nrules: {\xff: deny}", "file_encoding"),
        ("version: 1".encode("utf-16"), "file_encoding"),
        (b"version: 1\n#" + b"x" * MAX_BYTES, "file_too_large"),
        (b"version: 1\0", "hidden_character"),
        (b"version: 1\nrules: {'\xed\xa0\x80': deny}", "file_encoding"),
    ]:
        with pytest.raises(PolicyError) as caught:
            loads(data)
        assert codes(caught.value) == [code]
    with pytest.raises(PolicyError) as caught:
        loads(b"version: 1\nrules: {a\xff: deny}")
    assert str(caught.value.problems[0].where) == "<string>:2:10"
    with pytest.raises(PolicyError):
        loads("version: 1 # \ud800")
    assert loads("\ufeffversion: 1").mode == "enforce"


def test_patterns_that_would_not_fit_are_refused_before_they_are_held() -> None:
    pattern = "/".join(["{a,b}"] * 8 + ["x"] * 400)
    lines = [f"    '{pattern}{number}': deny" for number in range(200)]
    with pytest.raises(PolicyError) as caught:
        loads("version: 1\nrules:\n  read:\n" + "\n".join(lines))
    assert codes(caught.value) == ["policy_too_large"]


def test_the_revision_is_that_of_all_sources(tmp_path: Path) -> None:
    own = write(tmp_path, own="extends: base.yaml\n", base="rules: {read: allow}\n")
    first = load(own).revision
    assert first == load(own).revision
    assert len(first) == 64
    write(tmp_path, base="rules: {read: ask}\n")
    assert load(own).revision != first
    assert loads("version: 1").revision != loads("version: 1 ").revision
    assert Policy.empty().revision != loads("version: 1").revision


def test_text_with_a_folder_can_extend_files(tmp_path: Path) -> None:
    write(tmp_path, base="rules: {read: allow}\n")
    policy = loads("version: 1\nextends: base.yaml", base=tmp_path)
    assert policy.effect("a", "read_file", "read", "x") is Effect.ALLOW


def test_more_tools_can_be_named() -> None:
    text = "version: 1\nrules: {fetch: allow, write: ask}\ncases: [{tool: fetch, path: a, want: allow}]"
    with pytest.raises(PolicyError):
        loads(text)
    policy = loads(text, tools={"fetch": (("write", "path"),)})
    assert [result.passed for result in check(policy)] == [True]


def test_cases_of_a_policy_and_beside_it(tmp_path: Path) -> None:
    own = write(
        tmp_path,
        own="""rules: {delete: {"*": ask, "tmp/": allow}}
cases:
  - {action: delete, path: tmp/, want: allow, note: a directory}
  - {action: delete, path: tmp, want: allow}
  - {tool: delete, path: tmp/x, files: 501, want: ask}
""",
    )
    results = check(load(own))
    assert [result.passed for result in results] == [True, False, True]
    assert results[1].decision.effect is Effect.ASK
    assert results[1].case.where
    assert results[1].case.where.line == 5
    assert cases_beside(own) is None
    beside = tmp_path / "own.cases.yaml"
    beside.write_text("version: 1\ncases: [{agent: a/b, action: read, path: ., want: ask}]")
    assert cases_beside(own) == beside
    assert [result.passed for result in check(load(own), load_cases(beside))] == [True]
    beside.write_text("cases: [{action: read, path: a}]\nrules: {}")
    with pytest.raises(PolicyError) as caught:
        load_cases(beside)
    assert sorted(codes(caught.value)) == ["key_missing", "key_missing", "key_unknown"]


def test_the_working_directory_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, own="extends: base.yaml\n", base="rules: {read: alow}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PolicyError, match=r"^base\.yaml:2:15: "):
        load("own.yaml")
    os.chdir("/")
    with pytest.raises(PolicyError, match=r"base\.yaml:2:15: "):
        load(tmp_path / "own.yaml")


LONG = {  # before the key, and the key
    "in a block": ("\n    ", '"B"'),
    "in brackets": (" {x: ask, ", '"B"'),
    "with quotes in it": ("\n    ", "'[''x]B'"),
    "with a slash in it": ("\n    ", '"\\x61\\"B"'),
    "without quotes": ("\n    ", "abcB"),
}


@pytest.mark.parametrize(("before", "key"), LONG.values(), ids=LONG)
def test_a_key_that_yaml_does_not_read_is_called_by_its_name(before: str, key: str) -> None:
    key = key.replace("B", "b" * 1_030)
    with pytest.raises(PolicyError) as caught:
        loads(f"version: 1\nrules:\n  read:{before}{key} : deny{'}' * ('{' in before)}\n")
    (problem,) = caught.value.problems
    assert (problem.code, problem.length) == ("key_long", len(key))
    assert problem.where
    assert problem.text[problem.where.column - 1 :].startswith(f"{key} :")
    assert '? "key"' in problem.hint


def test_a_long_key_is_read_with_a_question_mark_before_it() -> None:
    longest = "b" * 1_024
    block, brackets = f'\n    ? "{longest}"\n    : deny\n', f' {{? "{longest}" : deny}}\n'
    for text in (block, brackets):
        policy = loads(f"version: 1\nrules:\n  read:{text}")
        assert policy.effect("a", "read", "read", longest) is Effect.DENY
