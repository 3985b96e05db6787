"""Which protobuf enum number stands for which value, in both directions."""

from enum import Enum
from typing import Generic, TypeVar

from pipeline.config import DenoisingMode, EndpointingProfile
from pipeline.errors import InvalidConfigError
from pipeline.events import ActivityKind, NoticeCode, SceneKind, TurnKind
from pipeline.types import AudioEncoding, EndReason, Task
from server.messages import ChannelRole
from talkpath.speech.v1 import speech_pb2 as pb

ValueT = TypeVar("ValueT", bound=Enum)


class EnumTable(Generic[ValueT]):
    """One enum of the contract: name on the wire to value."""

    def __init__(self, numbers: dict[str, int], values: dict[str, ValueT]) -> None:
        """`numbers` come from the generated enum; `values` names those that stand for something."""
        self._value_of = {numbers[name]: value for name, value in values.items()}
        self._number_of = {value: numbers[name] for name, value in values.items()}
        self._choices = ", ".join(values)

    def value(self, field: str, number: int) -> ValueT:
        """Raises InvalidConfigError when the number is unspecified or unknown."""
        if number not in self._value_of:
            what = "is not set" if number == 0 else f"{number} is not known"
            raise InvalidConfigError(field, f"{what}; use one of {self._choices}")
        return self._value_of[number]

    def number(self, value: ValueT) -> int:
        """The number of a value."""
        return self._number_of[value]


ENCODINGS = EnumTable(
    dict(pb.RecognitionConfig.AudioEncoding.items()),
    {"LINEAR16": AudioEncoding.LINEAR16, "MULAW": AudioEncoding.MULAW, "ALAW": AudioEncoding.ALAW},
)
TASKS = EnumTable(dict(pb.RecognitionConfig.Task.items()), {"TRANSCRIBE": Task.TRANSCRIBE, "TRANSLATE": Task.TRANSLATE})
DENOISING = EnumTable(
    dict(pb.RecognitionConfig.Denoise.items()),
    {
        "DENOISE_OFF": DenoisingMode.OFF,
        "DENOISE_VAD_ONLY": DenoisingMode.VAD_ONLY,
        "DENOISE_MIX": DenoisingMode.MIX,
    },
)
PROFILES = EnumTable(
    dict(pb.EndpointingConfig.Profile.items()), {profile.name: profile for profile in EndpointingProfile}
)
ROLES = EnumTable(
    dict(pb.CallInfo.ChannelRole.items()),
    {
        "CHANNEL_ROLE_UNSPECIFIED": ChannelRole.UNKNOWN,
        "AGENT": ChannelRole.AGENT,
        "CUSTOMER": ChannelRole.CUSTOMER,
        "IVR": ChannelRole.IVR,
    },
)
END_REASONS = EnumTable(dict(pb.RecognitionResult.EndReason.items()), {reason.value: reason for reason in EndReason})
ACTIVITY_KINDS = EnumTable(dict(pb.SpeechActivity.Kind.items()), {kind.value: kind for kind in ActivityKind})
SCENE_KINDS = EnumTable(dict(pb.Scene.Kind.items()), {kind.value: kind for kind in SceneKind})
TURN_KINDS = EnumTable(dict(pb.Turn.Kind.items()), {kind.value: kind for kind in TurnKind})
NOTICE_CODES = EnumTable(dict(pb.Notice.Code.items()), {code.value: code for code in NoticeCode})
