"""Groups of options: a command takes a dataclass where the command line has the options of its fields.

    @dataclass(frozen=True)
    class DeviceOptions:
        device: Device = None
        threads: Threads = None

    @with_groups
    def translate(model: Model, on: DeviceOptions, quiet: Quiet = False) -> None: ...

is to typer what this would be without groups:

    def translate(*, model: Model, device: Device = None, threads: Threads = None, quiet: Quiet = False) -> None: ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the fields of its groups as parameters of its own."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @wraps(command)
    def run(**given: Any) -> None:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    parameters = list(_parameters(command, hints))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _parameters(command: Callable[..., None], hints: dict[str, Any]) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a command, for a group those of its fields."""
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if not is_dataclass(hint):
            yield parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY)
            continue
        of_fields = get_type_hints(hint, include_extras=True)
        for field in fields(hint):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            kind = inspect.Parameter.KEYWORD_ONLY
            yield inspect.Parameter(field.name, kind, default=default, annotation=of_fields[field.name])


def given(group: Any) -> dict[str, object]:
    """Return the options of a group by name, such as `--n-best`, with None for those that have their default."""
    values = {field: getattr(group, field.name) for field in fields(group)}
    return {
        f"--{field.name.rstrip('_').replace('_', '-')}": None if value in (field.default, []) else value
        for field, value in values.items()
    }
