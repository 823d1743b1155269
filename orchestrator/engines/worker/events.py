"""The checked answers of a worker: it is untrusted, and so is every number, text and nesting in them.

The contract's table defines the keys of an event; the models here define the values. An odd value raises OddEvent,
which costs its replicate.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from orchestrator import contract

# A text that is longer than this is a log and not a reason.
LONGEST_TEXT, LONGEST_LOG, LONGEST_SHAPE = 2_000, 8_000, 200
MOST_FACTS, MOST_CALLS, MOST_GPUS, MOST_WARNINGS = 50, 10_000, 64, 1000
# An event is two or three objects deep, and a profile is five deep.
DEEPEST = 16


class InvalidEvent(Exception):
    """An event that the contract allows, but that none of our workers would send."""


def clean(text: object, most: int = LONGEST_TEXT) -> object:
    """Return a text that can be written to any file: shortened, and without lone surrogates, as in some file names."""
    return text.encode("utf-8", "replace").decode()[:most] if isinstance(text, str) else text


Text = Annotated[str, BeforeValidator(clean)]
Log = Annotated[str, BeforeValidator(lambda text: clean(text, LONGEST_LOG))]
Amount = Annotated[int, Field(ge=0, le=2**62)]
Number = Annotated[int, Field(ge=-1, le=2**31 - 1)]


class Event(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @classmethod
    def kind_name(cls) -> str:
        return str(cls.model_fields["kind"].annotation.__args__[0])  # type: ignore[union-attr]


class ReadyEvent(Event):
    kind: Literal["ready"]
    facts: Annotated[dict[Text, Text | bool | None], Field(max_length=MOST_FACTS)]
    import_ns: Amount
    pid: Amount


class FailedEvent(Event):
    kind: Literal["failed"]
    stage: Text
    message: Text


class GpuAnswer(Event):
    name: Text = ""
    capability: Text = ""


class DriverEvent(Event):
    library: Text = ""
    code: Annotated[int, Field(ge=-1, le=2**31 - 1)] = 0
    driver: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    absent: Annotated[list[Text], Field(max_length=MOST_GPUS)] = []


class ProbedEvent(Event):
    kind: Literal["probed"]
    # It is empty if there are GPUs.
    driver: DriverEvent
    gpus: Annotated[list[GpuAnswer], Field(max_length=MOST_GPUS)]


class OpenedEvent(Event):
    kind: Literal["opened"]
    replicate: Number
    build_ns: Amount
    first_ns: Amount
    second_ns: Amount
    steps: Annotated[int, Field(ge=1, le=2**31 - 1)]
    # This is the number per step; it is 0 if the workload names none.
    items: Annotated[int, Field(ge=0, le=2**31 - 1)]
    # This describes the type and shape of the first result to people.
    output: Annotated[str, BeforeValidator(lambda text: clean(text, LONGEST_SHAPE))]
    # These are the inter-op and intra-op threads; the list is empty if TensorFlow does not report them.
    threads: Annotated[list[Annotated[int, Field(ge=0, le=2**31 - 1)]], Field(max_length=2)]


class MeasuredEvent(Event):
    kind: Literal["measured"]
    replicate: Number
    walls_ns: Annotated[list[Amount], Field(min_length=1, max_length=MOST_CALLS)]
    cpu_ns: Amount


class ClosedEvent(Event):
    kind: Literal["closed"]
    replicate: Number
    rows: Annotated[int, Field(ge=1, le=2**31 - 1)]


class ProfiledEvent(Event):
    kind: Literal["profiled"]
    replicate: Number
    profile: dict[str, Any]


class Warned(Event):
    """A warning of a version: its category, its text, and the line or the package that it is about."""

    kind: Text
    text: Text
    # This is a file of the user's, below its folder, or the name of a package.
    place: Annotated[str, BeforeValidator(lambda text: clean(text, LONGEST_SHAPE))]
    line: Amount
    own: bool


class WarnedEvent(Event):
    kind: Literal["warned"]
    replicate: Number
    warnings: Annotated[list[Warned], Field(max_length=MOST_WARNINGS)]


class RefusedEvent(Event):
    kind: Literal["refused"]
    replicate: Number
    reason: Text


class DiedEvent(Event):
    kind: Literal["died"]
    replicate: Number
    how: Text
    reason: Text
    log: Log


class ErrorEvent(Event):
    kind: Literal["error"]
    message: Text


class ByeEvent(Event):
    kind: Literal["bye"]


AnyEvent = (
    ReadyEvent | FailedEvent | ProbedEvent | OpenedEvent | MeasuredEvent | ClosedEvent | ProfiledEvent | WarnedEvent
    | RefusedEvent | DiedEvent | ErrorEvent | ByeEvent
)  # fmt: skip

EVENT: TypeAdapter[AnyEvent] = TypeAdapter(Annotated[AnyEvent, Field(discriminator="kind")])


def parse_event(line: str) -> AnyEvent:
    """Return the event in a line; raise ContractError if there is none, and OddEvent if its values are impossible."""
    try:
        message = contract.decode(line, contract.EVENTS)
        if "profile" in message:
            message["profile"] = tidy(message["profile"])
        return EVENT.validate_python(message)
    except RecursionError as error:
        raise contract.ContractError("an answer that is nested without end") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(str(clean(str(part), 40)) for part in first["loc"])
        raise InvalidEvent(f"{location}: {first['msg']}") from error


def tidy(value: Any, depth: int = 0) -> Any:
    """Return a nested value with every text in it cleaned; raise OddEvent if it is nested too deeply."""
    if depth > DEEPEST:
        raise InvalidEvent(f"profile: more than {DEEPEST} levels deep")
    if isinstance(value, dict):
        return {clean(key): tidy(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [tidy(inner, depth + 1) for inner in value]
    return clean(value)
