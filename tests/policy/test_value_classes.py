"""Value classes behave as the dataclasses of the standard library: each trait is compared with a real one."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.policy import value_classes
from ringfence.policy.model import Need

# No NaN: whether a value is equal to itself with one depends on the release of Python.
VALUES = st.none() | st.integers(0, 2) | st.lists(st.integers(0, 1), max_size=1)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "init": st.booleans(),
        "repr": st.booleans(),
        "compare": st.booleans(),
        "hash": st.sampled_from([None, False]),
    },
)


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, Any]:
    """What a class is made of: its options, and its fields, those without a default first."""
    options = {"frozen": draw(st.booleans()), "eq": draw(st.booleans())}
    options["order"] = options["eq"] and draw(st.booleans())
    methods = {"twice": twice} | draw(st.sampled_from([{}, {"__eq__": is_equal}]))
    plain = [(f"a{n}", {}) for n in range(draw(st.integers(0, 2)))]
    more = [
        (f"b{n}", draw(FIELDS) | draw(st.sampled_from([{"default": 1}, {"default_factory": list}])))
        for n in range(draw(st.integers(0, 3)))
    ]
    return {"options": options, "fields": [*plain, *more], "methods": methods}


def made(by: Any, shape: dict[str, Any]) -> type[Any]:
    names = dict(shape["fields"])
    given: dict[str, Any] = {name: by.field(**it) for name, it in names.items() if it}
    given |= {"__annotations__": {**dict.fromkeys(names, "object"), "KIND": "ClassVar[int]"}, "KIND": 3}
    given |= {"__module__": __name__, "__qualname__": "Made", "__doc__": "A value.", **shape["methods"]}
    return by.dataclass(slots=True, **shape["options"])(type("Made", (), given))  # type: ignore[no-any-return]


def twice(self: Any) -> str:
    return repr(self) * 2


def is_equal(self: Any, other: Any) -> bool:
    return repr(self) == repr(other)


TRAITS: dict[str, Callable[[Any, Any], Any]] = {
    "text": lambda one, _: repr(one),
    "equal": lambda one, other: (one == other, one != other, one == 1, other == one),
    "hash of equals": lambda one, other: one != other or hash(one) == hash(other) or "by identity",
    "order": lambda one, other: (one < other, one <= other, one > other, one >= other),
    "set a field": lambda one, _: (setattr(one, dataclasses.fields(one)[0].name, 5), repr(one)),
    "delete a field": lambda one, _: (delattr(one, dataclasses.fields(one)[0].name), repr(one)),
    "fields": lambda one, _: [
        (f.name, f.type, f.init, f.repr, f.compare, f.hash) for f in dataclasses.fields(one)
    ],
    "as a dict": lambda one, _: repr(dataclasses.asdict(one)),
    "replace": lambda one, _: repr(dataclasses.replace(one)),
    "replace a field": lambda one, _: repr(dataclasses.replace(one, a0=7)),
    "replace one of `init=False`": lambda one, _: repr(dataclasses.replace(one, b0=7)),
    "copy": lambda one, _: repr(copy.copy(one)),
    "deep copy": lambda one, _: repr(copy.deepcopy(one)),
    "match": lambda one, _: type(one).__match_args__,
    "slots": lambda one, _: (type(one).__slots__, hasattr(one, "__dict__")),
    "names": lambda one, _: (type(one).__qualname__, type(one).__module__, type(one).__doc__),
    "parameters": lambda one, _: [(p.name, p.kind) for p in inspect.signature(type(one)).parameters.values()],
    "class variable": lambda one, _: (one.KIND, type(one).KIND),
    "method": lambda one, _: one.twice(),
}


def outcome(trait: str, cls: type[Any], args: list[Any], others: list[Any]) -> object:
    """Return what a trait gives, or the kind of its error."""
    try:
        return TRAITS[trait](cls(*args), cls(*others))
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("trait", TRAITS)
@given(shape=shapes(), values=st.lists(VALUES, max_size=6), others=st.lists(VALUES, max_size=6))
def test_it_is_as_a_dataclass(
    trait: str, shape: dict[str, Any], values: list[Any], others: list[Any]
) -> None:
    ours, theirs = made(value_classes, shape), made(dataclasses, shape)
    assert outcome(trait, ours, values, others) == outcome(trait, theirs, values, others)
    assert outcome(trait, ours, values, values) == outcome(trait, theirs, values, values)


@given(shape=shapes(), values=st.lists(VALUES, max_size=6))
def test_replace_is_as_that_of_dataclasses(shape: dict[str, Any], values: list[Any]) -> None:
    def replaced(by: Any) -> object:
        try:
            return repr(by.replace(made(by, shape)(*values), b0=7))
        except (TypeError, ValueError, AttributeError):
            return "refused"  # with a TypeError from Python 3.13 on, before with a ValueError

    assert replaced(value_classes) == replaced(dataclasses)


@value_classes.dataclass(frozen=True, slots=True)
class Checked:
    """A class of each kind that the program has: a class variable, a factory, a check of its own."""

    first: int
    more: list[int] = value_classes.field(default_factory=list)
    KIND: ClassVar[str] = "kind"

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError("below zero")


def test_a_class_checks_what_it_is_made_of() -> None:
    with pytest.raises(ValueError, match="below zero"):
        Checked(-1)
    assert Checked(1).more is not Checked(1).more


def test_a_frozen_value_gets_no_other_attribute() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Checked(1).other = 1  # type: ignore[attr-defined]


def test_fields_are_not_inherited() -> None:
    with pytest.raises(AssertionError, match="inherits no fields"):

        @value_classes.dataclass(frozen=True, slots=True)
        class More(Checked):
            last: int = 0


def test_a_value_is_pickled() -> None:
    need = Need("read", "a", directory=True)
    assert pickle.loads(pickle.dumps(need)) == need
