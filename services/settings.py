"""Process settings: frozen pydantic models, read from flags and environment variables.

Each field of a settings class becomes one flag and one variable: `checkpoint_every_n` is
`--checkpoint-every-n` and `TANDEM_TRAINER_CHECKPOINT_EVERY_N`. A flag wins over the variable, the
variable over the default. A misspelt flag or variable is an error that names the nearest ones.
"""

from __future__ import annotations

import argparse
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from tandem.errors import ConfigError, nearest_names


class ProcessSettings(BaseModel):
    """What every process is told: its run, its experiment, how it may be watched."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    run: str = Field(
        min_length=1,
        description="run folder that trainer and evaluator share, local or gs://BUCKET/FOLDER",
    )
    config: str = Field(min_length=1, description="pipeline.config, a text proto")
    override: tuple[str, ...] = Field(
        default=(),
        description="text proto merged onto the config, as 'train_config { batch_size: 8 }'; "
        "a repeated field replaces the config's; may be given several times",
    )
    metrics_host: str = Field(
        default="127.0.0.1", description="address that /metrics and /healthz listen on"
    )
    log_format: typing.Literal["text", "json"] = Field(
        default="text", description="'json' is one object a line, for log collectors"
    )
    log_level: typing.Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="least severe messages to show"
    )


class ClusterSettings(ProcessSettings):
    """What a process in a Kubernetes cluster is told besides; the chart does."""

    namespace: str | None = Field(
        default=None,
        min_length=1,
        description="Kubernetes namespace of this pod; with it the process tells its Job or "
        "Deployment what it does, by Events and annotations",
        json_schema_extra={"group": "Kubernetes"},
    )
    pod: str | None = Field(
        default=None,
        min_length=1,
        description="name of this pod, for Events",
        json_schema_extra={"group": "Kubernetes"},
    )

    @property
    def credentials_seconds(self) -> float:
        """How long credentials may take: those of a new pod come a little after it."""
        return 60.0 if self.namespace is not None else 0.0


# Kubernetes describes a Service named `tandem-trainer` to every pod as TANDEM_TRAINER_PORT etc.
_SERVICE_LINK = re.compile(r"^(service_(host|port)|port)(_|$)")

SettingsType = TypeVar("SettingsType", bound=BaseModel)


def read_settings(
    settings_class: type[SettingsType],
    *,
    program: str,
    prefix: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    epilog: str = "",
) -> SettingsType:
    """Reads the settings of one process.

    Args:
        settings_class: what to read.
        program: name in usage lines and messages.
        prefix: of this process's variables, as `TANDEM_TRAINER_`.
        arguments: the command line without the program's name.
        environment: all environment variables.
        epilog: closing words of `--help`.

    Raises:
        ConfigError: an unknown flag or variable, a missing or a bad value.
        SystemExit: after `--help`.
    """
    fields = settings_class.model_fields
    parser = _parser(settings_class, program, prefix, epilog)
    values = _from_environment(fields, prefix, environment)
    parsed, unknown = parser.parse_known_args(list(arguments))
    if unknown:
        raise ConfigError(_unknown_argument(program, unknown[0], fields))
    values.update({name: value for name, value in vars(parsed).items() if value is not None})
    try:
        return settings_class.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, program, prefix)) from None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{self.prog}: {message}; {self.prog} --help lists the flags")


def _parser(
    settings_class: type[BaseModel], program: str, prefix: str, epilog: str
) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=program,
        usage=_usage(program, settings_class.model_fields),
        description=(settings_class.__doc__ or "").strip(),
        epilog=f"Every flag is also an environment variable: {prefix}RUN is --run. {epilog}",
        allow_abbrev=False,
        argument_default=None,
    )
    groups: dict[str, argparse._ArgumentGroup] = {}
    for name, field in settings_class.model_fields.items():
        title = "required" if field.is_required() else _extra(field).get("group", "options")
        group = groups.setdefault(title, parser.add_argument_group(title))
        group.add_argument(_flag(name), dest=name, help=_help(field), **_shape(name, field))
    return parser


def _usage(program: str, fields: Mapping[str, FieldInfo]) -> str:
    required = [name for name, field in fields.items() if field.is_required()]
    return " ".join([program, *(f"{_flag(n)} {n.upper()}" for n in required), "[options]"])


def _extra(field: FieldInfo) -> dict[str, Any]:
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _help(field: FieldInfo) -> str:
    text = field.description or ""
    if field.is_required() or field.default is None or field.default == ():
        return text
    default = field.default
    if isinstance(default, bool):
        default = "yes" if default else "no"
    return f"{text} (default: {default})"


def _shape(name: str, field: FieldInfo) -> dict[str, Any]:
    kind = _plain_type(field.annotation)
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction}
    if typing.get_origin(kind) is tuple:
        return {"action": "append", "metavar": _extra(field).get("metavar", "TEXT")}
    if typing.get_origin(kind) is typing.Literal:
        return {"metavar": "|".join(str(choice) for choice in typing.get_args(kind))}
    words: dict[object, str] = {
        int: "N",
        float: "SECONDS" if "_interval" in name or "second" in name else "X",
    }
    return {"metavar": _extra(field).get("metavar", words.get(kind, name.upper()))}


def _plain_type(annotation: object) -> object:
    """The type inside an optional one."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        inner = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
        return inner[0]
    return annotation


def _from_environment(
    fields: Mapping[str, FieldInfo], prefix: str, environment: Mapping[str, str]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for variable, value in environment.items():
        if not variable.startswith(prefix):
            continue
        name = variable.removeprefix(prefix).lower()
        if _SERVICE_LINK.search(name):
            continue
        if name not in fields:
            hint = nearest_names(name.upper(), [field.upper() for field in fields], prefix=prefix)
            raise ConfigError(f"environment variable {variable} is no setting{hint}")
        is_list = typing.get_origin(_plain_type(fields[name].annotation)) is tuple
        values[name] = [value] if is_list else value
    return values


def _unknown_argument(program: str, argument: str, fields: Mapping[str, FieldInfo]) -> str:
    flag = argument.partition("=")[0]
    if not flag.startswith("-"):
        return f"{program}: {argument!r} is no flag; settings are given as --name VALUE"
    return f"{program}: {flag} is no flag{nearest_names(flag, [_flag(name) for name in fields])}"


def _explain(error: ValidationError, program: str, prefix: str) -> str:
    lines = []
    for problem in error.errors():
        name = str(problem["loc"][0]) if problem["loc"] else ""
        where = f"{_flag(name)} (or {prefix}{name.upper()})" if name else "settings"
        if problem["type"] == "missing":
            lines.append(f"{program}: {where} is required")
        else:
            expected = problem["msg"].removeprefix("Value error, ")
            lines.append(f"{program}: {where} is {problem['input']!r}: {expected}")
    return "\n".join(lines)
