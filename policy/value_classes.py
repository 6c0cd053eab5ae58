"""`dataclass`, `field` and `replace` as `dataclasses` has them, for modules that every start loads.

`slots=True` has to be given. To import `dataclasses` and to make the classes of one verdict there takes
longer than to start the interpreter (docs/explanation/dependencies.md). Here only `__init__` is compiled.
"""

from __future__ import annotations

import operator
from reprlib import recursive_repr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from dataclasses import dataclass, field, replace
    from typing import Any

    Settings = dict[str, Any]  # the arguments of `field`

__all__ = ["dataclass", "field", "replace"]
_MADE: Any = object()  # the default of a parameter whose value a factory makes


class _Field:
    """The settings of one field, which `dataclasses.field` describes."""

    __slots__ = ("settings",)

    def __init__(self, **settings: Any) -> None:
        self.settings = settings


def _dataclass(
    *, slots: bool, frozen: bool = False, eq: bool = True, order: bool = False
) -> Callable[[type], type]:
    """Return a decorator as `dataclasses.dataclass` does; `slots` has to be true."""
    assert slots, "a value class has slots"
    return lambda cls: _value_class(cls, {"frozen": frozen, "eq": eq, "order": order})


def _replace(instance: Any, /, **changes: Any) -> Any:
    """Return a copy with some fields changed; raises ValueError for a field that is not a parameter."""
    parameters = type(instance).__match_args__
    for name in changes:
        if name in type(instance).__slots__ and name not in parameters:
            raise ValueError(f"field {name} is no parameter of {type(instance).__name__}")
    kept = {name: getattr(instance, name) for name in parameters if name not in changes}
    return type(instance)(**kept, **changes)


def _value_class(cls: type, options: Settings) -> type:
    assert not hasattr(cls, "__dataclass_fields__"), "a value class inherits no fields"
    given = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    if given.get("__hash__", ...) is None:
        del given["__hash__"]  # Python sets it for a class with an `__eq__` of its own
    types = given["__annotations__"] = cls.__annotations__
    fields = {name: _settings(given, name) for name in types if not str(types[name]).startswith("ClassVar")}
    given["__slots__"] = tuple(fields)
    given["__match_args__"] = tuple(name for name, it in fields.items() if it.get("init", True))
    for name in ("__dataclass_fields__", "__dataclass_params__"):
        given[name] = _OfADataclass(cls, fields, options)
    made = type(cls)(cls.__name__, cls.__bases__, {**_methods(fields, options), **given})
    if options["frozen"]:
        _freeze(made)
    setattr(made, "__init__", _init(made, fields, options["frozen"]))  # noqa: B010  mypy takes no assignment
    return made


def _settings(given: dict[str, Any], name: str) -> Settings:
    """Take a field's default out of the class, where its slot will be."""
    if name not in given:
        return {}
    value = given.pop(name)
    return value.settings if isinstance(value, _Field) else {"default": value}


def _methods(fields: dict[str, Settings], options: Settings) -> dict[str, Any]:
    shown = [name for name, it in fields.items() if it.get("repr", True)]
    compared = _values(name for name, it in fields.items() if it.get("compare", True))

    @recursive_repr()
    def __repr__(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({values})"

    def comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            if other.__class__ is not self.__class__:
                return NotImplemented
            return compare(compared(self), compared(other))

        return method

    methods: dict[str, Any] = {"__repr__": __repr__, "__replace__": _replace}
    if options["eq"]:
        hashed = _values(
            name for name, it in fields.items() if it.get("compare", True) and it.get("hash", True)
        )
        methods["__eq__"] = comparison(operator.eq)
        methods["__hash__"] = (lambda self: hash(hashed(self))) if options["frozen"] else None
    if options["order"]:
        methods |= {f"__{name}__": comparison(getattr(operator, name)) for name in ("lt", "le", "gt", "ge")}
    return methods


def _values(chosen: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    names = tuple(chosen)
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _init(made: Any, fields: dict[str, Settings], frozen: bool) -> Any:
    scope: dict[str, Any] = {"_MADE": _MADE, "__name__": made.__module__}
    parameters, lines = ["self"], ["pass"]
    for name, it in fields.items():
        default = f"_default_{name}"
        has_factory, has_default = "default_factory" in it, "default" in it
        scope[default] = it.get("default_factory", it.get("default"))
        value = name
        if not it.get("init", True):
            if not has_factory and not has_default:
                continue  # `__post_init__` gives it its value
            value = f"{default}()" if has_factory else default
        elif has_factory:
            parameters.append(f"{name}=_MADE")
            value = f"{default}() if {name} is _MADE else {name}"
        else:
            parameters.append(f"{name}={default}" if has_default else name)
        if frozen:
            slot = vars(made)[name]
            scope[f"_set_{name}"] = slot.__set__  # `__setattr__` does not stop it
            lines.append(f"_set_{name}(self, {value})")
        else:
            lines.append(f"self.{name} = {value}")
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), scope)
    init = scope["__init__"]
    types = made.__annotations__
    init.__qualname__ = f"{made.__qualname__}.__init__"
    init.__annotations__ = {**{name: types[name] for name in made.__match_args__}, "return": None}
    return init


def _freeze(made: Any) -> None:
    def __setattr__(_self: Any, name: str, _value: object) -> None:
        raise _frozen(f"cannot assign to field {name!r}")

    def __delattr__(_self: Any, name: str) -> None:
        raise _frozen(f"cannot delete field {name!r}")

    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, name) for name in made.__slots__]

    def __setstate__(self: Any, state: list[Any]) -> None:
        for name, value in zip(made.__slots__, state, strict=True):
            object.__setattr__(self, name, value)

    for method in (__setattr__, __delattr__, __getstate__, __setstate__):
        setattr(made, method.__name__, method)


def _frozen(message: str) -> AttributeError:
    from dataclasses import FrozenInstanceError

    return FrozenInstanceError(message)


class _OfADataclass:
    """What functions of `dataclasses` ask a class for, taken from a real one when it is asked for."""

    def __init__(self, cls: type, fields: dict[str, Settings], options: Settings) -> None:
        self._cls, self._fields, self._options = cls, fields, options

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        import dataclasses

        given: dict[str, Any] = {name: dataclasses.field(**it) for name, it in self._fields.items()}
        given |= {"__annotations__": self._cls.__annotations__, "__module__": self._cls.__module__}
        real: Any = dataclasses.dataclass(**self._options)(type(self._cls.__name__, (), given))
        setattr(owner, self._name, getattr(real, self._name))
        return getattr(real, self._name)


if not TYPE_CHECKING:
    dataclass, field, replace = _dataclass, _Field, _replace
