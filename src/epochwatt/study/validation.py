"""Validate the content of a configuration file, with errors for people."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from epochwatt.errors import ConfigError

T = TypeVar("T", bound=BaseModel)
_KINDS = {  # type of an error -> what is allowed
    "model_type": "a mapping, `key: value`",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number, such as 0.5; YAML takes 1e9 for text, and 1.0e+9 for a number",
    "float_parsing": "a number, such as 0.5; YAML takes 1e9 for text, and 1.0e+9 for a number",
}


def validated(model: type[T], value: Any, path: str, where: str = "") -> T:
    """Return `value` as a `model`; a ConfigError of two lines for the first thing that is wrong."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise explained(error, model, path, where) from None


def explained(error: ValidationError, model: type[BaseModel], path: str, where: str) -> ConfigError:
    """Return the error of the first thing that is wrong, with what is allowed there."""
    # an unknown key first: where a key is misspelt, the right one is missing too
    errors = sorted(error.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
    first = errors[0]
    key = ".".join(filter(None, [where, *map(str, first["loc"])]))
    if first["type"] == "extra_forbidden":
        owner = _model_at(model, first["loc"][:-1])
        problem = f"unknown key {key!r} (value {first['input']!r})"
        return ConfigError(problem, where=path, allowed=owner.model_fields)
    if first["type"] == "missing":
        do = f"add it: {_description(model, first)}"
        return ConfigError(f"key {key!r} is missing", where=path, do=do)
    problem = f"{key or 'the file'} is {first['input']!r}"
    return ConfigError(problem, where=path, allowed=_allowed(first))


def _allowed(first: Any) -> str:
    context = first.get("ctx", {})
    for key, sign in (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<")):
        if key in context:
            return f"a number {sign} {context[key]}"
    if first["type"] in _KINDS:
        return _KINDS[first["type"]]
    if "expected" in context:
        return str(context["expected"])
    return str(first["msg"]).replace("Input should be ", "").replace("Value error, ", "")


def _description(model: type[BaseModel], first: Any) -> str:
    field = _model_at(model, first["loc"][:-1]).model_fields.get(str(first["loc"][-1]))
    return (field and field.description) or "see config/README.md"


def _model_at(model: type[BaseModel], loc: tuple[Any, ...]) -> type[BaseModel]:
    """Return the schema that stands at a place inside another."""
    import typing

    for part in loc:
        field = model.model_fields.get(str(part))
        candidates = typing.get_args(field.annotation) if field else ()
        inner = [c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)]
        model = inner[0] if inner else model
    return model
