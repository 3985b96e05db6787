"""The endpointing profiles: which durations suit which kind of speech.

A profile sets the durations that nobody gives; what it does not name is the server's. A profile is added here, in
`EndpointingProfile` and in the contract.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from pipeline.config import EndpointingConfig, EndpointingProfile

PROFILES: Final[Mapping[EndpointingProfile, Mapping[str, int]]] = {
    EndpointingProfile.CONVERSATION: {"hangover_ms": 500, "number_hangover_ms": 1_500, "max_segment_ms": 25_000},
    # The caller waits for the menu: end soon.
    EndpointingProfile.SHORT_ANSWER: {"hangover_ms": 350, "number_hangover_ms": 1_500, "max_segment_ms": 15_000},
    # Nobody waits for an answer, and whole sentences are recognised better than their parts.
    EndpointingProfile.DICTATION: {"hangover_ms": 950, "number_hangover_ms": 2_000, "max_segment_ms": 25_000},
}
"""Fields of EndpointingConfig."""


def with_profile(base: EndpointingConfig, profile: EndpointingProfile, given: Mapping[str, Any]) -> EndpointingConfig:
    """The durations of a profile, overridden by those given; all else is from `base`.

    Raises:
        InvalidConfigError: what is given is outside the limits.
    """
    return replace(base, **{"profile": profile, **PROFILES[profile], **given})
