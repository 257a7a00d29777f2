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
    """Return `value` as a `model`; ConfigError: the first thing that is wrong.

    `path`: file that is named in the error; `where`: key in it under which `value` stands
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise _explained(error, model, value, path, where) from None


def _explained(
    error: ValidationError, model: type[BaseModel], value: Any, path: str, where: str
) -> ConfigError:
    """Return a ConfigError for the first of pydantic's errors; an unknown key is preferred."""
    # where a key is misspelt, the right one is missing, too
    errors = sorted(error.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
    details = errors[0]
    if details["type"] == "extra_forbidden":
        owner = _model_at(model, details["loc"][:-1])
        key = ".".join(filter(None, [where, *map(str, details["loc"])]))
        problem = f"unknown key {key!r} (value {details['input']!r})"
        return ConfigError(problem, where=path, allowed=owner.model_fields)
    if details["type"] == "missing":
        key = ".".join(filter(None, [where, *map(str, details["loc"])]))
        do = f"add it: {_description(model, details)}"
        return ConfigError(f"key {key!r} is missing", where=path, do=do)
    keys = _keys_of(value, details["loc"])
    key = ".".join(filter(None, [where, *map(str, keys)]))
    problem = f"{key or 'the file'} is {details['input']!r}"
    # a value of several kinds has an error for each
    same = [e for e in errors if _keys_of(value, e["loc"]) == keys]
    return ConfigError(problem, where=path, allowed=" or ".join(dict.fromkeys(map(_allowed, same))))


def _keys_of(value: Any, loc: tuple[Any, ...]) -> list[Any]:
    """Return the keys of a place; pydantic also names the kinds that a value may be of."""
    keys = []
    for part in loc:
        is_index = isinstance(value, list) and isinstance(part, int) and part < len(value)
        if is_index or (isinstance(value, dict) and part in value):
            keys.append(part)
            value = value[part]
    return keys


def _allowed(details: Any) -> str:
    """Return in words what a value may be, from one of pydantic's errors."""
    context = details.get("ctx", {})
    for key, sign in (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<")):
        if key in context:
            return f"a number {sign} {context[key]}"
    if details["type"] in _KINDS:
        return _KINDS[details["type"]]
    if "expected" in context:
        return str(context["expected"])
    return str(details["msg"]).replace("Input should be ", "").replace("Value error, ", "")


def _description(model: type[BaseModel], details: Any) -> str:
    """Return the description of a missing key."""
    field = _model_at(model, details["loc"][:-1]).model_fields.get(str(details["loc"][-1]))
    return (field and field.description) or "see config/README.md"


def _model_at(model: type[BaseModel], loc: tuple[Any, ...]) -> type[BaseModel]:
    """Return the schema of an entry inside another; `loc`: its keys and indices, as pydantic's."""
    import typing

    for part in loc:
        field = model.model_fields.get(str(part))
        candidates = typing.get_args(field.annotation) if field else ()
        candidates = tuple(getattr(c, "__origin__", c) for c in candidates)  # of Annotated
        inner = [c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)]
        model = inner[0] if inner else model
    return model
