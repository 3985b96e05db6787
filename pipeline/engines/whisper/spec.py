"""What a Whisper model looks like: its sizes and the token rules that come with its weights."""

from dataclasses import dataclass

MAX_FRAMES = 3_000
"""Mel frames of the window the model was trained on: 30 s at 10 ms."""
MAX_POSITIONS = MAX_FRAMES // 2
"""Encoder positions of that window: the second convolution halves the frames."""
_MULTILINGUAL_VOCABULARY = 51_865
"""English-only models have one token less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """Sizes and token rules of one set of weights."""

    num_mel_bins: int
    width: int
    """Features of a hidden state."""
    num_heads: int
    """Heads of the encoder's and the decoder's attentions."""
    encoder_layers: int
    decoder_layers: int
    vocabulary_size: int
    max_tokens: int
    """Decoder positions, prompt included."""
    alignment_heads: tuple[tuple[int, int], ...]
    """(decoder layer, head) whose cross-attention follows the audio; word times come from them."""
    suppressed_ids: tuple[int, ...]
    """Tokens that are never words: brackets, notes, ..."""
    begin_suppressed_ids: tuple[int, ...]
    """Tokens that may not come first: blank and end of text."""

    @property
    def is_multilingual(self) -> bool:
        """Whether the model knows languages and tasks."""
        return self.vocabulary_size >= _MULTILINGUAL_VOCABULARY


def default_alignment_heads(decoder_layers: int, num_heads: int) -> tuple[tuple[int, int], ...]:
    """All heads of the upper half of the decoder, for weights that do not say which heads follow the audio."""
    return tuple((layer, head) for layer in range(decoder_layers // 2, decoder_layers) for head in range(num_heads))
