"""The schema for editors: a valid one, complete, and of one mind with the loader."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ringfence import policy
from ringfence.policy import PolicyError, loads
from ringfence.policy.evaluation.limits import LIMITS
from ringfence.policy.loading.sections import KEYS
from ringfence.policy.model import LANGUAGE_TOOLS, RUN, WRITE_KINDS
from ringfence.policy.upstreams.rows import CALL
from ringfence.toolkit.catalog.policy_schema import policy_schema

SCHEMA = policy_schema(json.loads(Path(policy.__file__).with_name("schema.json").read_text(encoding="utf-8")))
TABLE = yaml.safe_load(Path(__file__).with_name("schema.yaml").read_text(encoding="utf-8"))
ERRORS = yaml.safe_load(Path(__file__).with_name("load_errors.yaml").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
# What a schema for plain values cannot say: how it is written, and what a pattern means.
ONLY_THE_LOADER = {
    "an effect where a pattern belongs", "a key written twice", "rules written twice", "examples",
    "a line break that only YAML sees", "more line breaks and hidden characters",
    "anchors, aliases, merges and tags", "settings", "words without end", "words with the wrong examples",
    "a set that is not there", "a set of a set that comes later",
}  # fmt: skip


def loads_well(text: str) -> bool:
    try:
        loads(text)
    except PolicyError:
        return False
    return True


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: json.dumps(row["policy"])[:80])
def test_they_agree(row: dict) -> None:
    text = yaml.safe_dump(row["policy"], sort_keys=False)
    assert loads_well(text) is row["good"]
    assert VALIDATOR.is_valid(row["policy"]) is row["good"]


@pytest.mark.parametrize("name", policy.READY_MADE)
def test_the_ready_made_ones_are_valid(name: str) -> None:
    path = policy.ready_made(name)
    VALIDATOR.validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    VALIDATOR.validate(yaml.safe_load(path.with_name(f"{name}.cases.yaml").read_text(encoding="utf-8")))


@pytest.mark.parametrize("row", ERRORS, ids=lambda row: row["name"])
def test_it_takes_nothing_for_good_that_it_could_see(row: dict) -> None:
    try:
        value = yaml.safe_load(row["text"])
    except (yaml.YAMLError, RecursionError, ValueError, TypeError):
        return
    if row["name"] not in ONLY_THE_LOADER:
        assert not VALIDATOR.is_valid(value)


def test_it_names_all_that_the_loader_knows() -> None:
    keys = {*policy.ACTIONS, *LANGUAGE_TOOLS, "*"}
    definitions = SCHEMA["$defs"]
    assert set(SCHEMA["properties"]) == set(KEYS)
    assert set(definitions["rules"]["properties"]) == {*keys, *WRITE_KINDS, RUN, CALL}
    assert set(definitions["limits"]["properties"]) == keys
    assert set(definitions["key"]["anyOf"][0]["enum"]) == {*keys, *WRITE_KINDS, RUN, CALL}
    assert set(definitions["tool"]["anyOf"][0]["enum"]) == set(LANGUAGE_TOOLS)
    assert set(definitions["limit"]["properties"]) == {*LIMITS, "per", "over"}
    assert definitions["base"]["anyOf"][0]["enum"] == list(policy.READY_MADE)


def objects(value: Any) -> Iterator[dict]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from objects(each)
    elif isinstance(value, list):
        for each in value:
            yield from objects(each)


def test_it_is_closed_and_described() -> None:
    for each in objects(SCHEMA):
        if each.get("type") == "object":
            assert "additionalProperties" in each
    for name, each in SCHEMA["properties"].items():
        assert each["description"].endswith("."), name
    for name in ("rules", "limits"):
        assert all("description" in each for each in SCHEMA["$defs"][name]["properties"].values())


def test_an_editor_has_a_text_to_show_for_every_key() -> None:
    definitions = SCHEMA["$defs"]

    def walk(node: Any) -> None:
        if isinstance(node, list):
            for each in node:
                walk(each)
        if not isinstance(node, dict):
            return
        for name, value in node.get("properties", {}).items():
            named = definitions.get(value.get("$ref", "").rpartition("/")[2], {}) if value else {}
            assert not value or value.get("description") or named.get("description") or "not" in value, name
        for key, value in node.items():
            if key != "if":
                walk(value)

    walk(SCHEMA)
