"""The watch over a call's bytes: collects half-seconds, has them judged, and tells each suspicion once.

Rules:
1. It sees the bytes frame by frame, so that what it says depends on the audio alone.
2. Each kind of notice once a call, or once a channel; bytes in another encoding are told alone, since all else that
   could be said of them follows from it.
3. Every half-second is judged until ten seconds of sound are, then every tenth second, until one looks wrong.
"""

from collections.abc import Iterable, Iterator

from pipeline.audio.codecs import LAYOUTS, ByteLayout, read_as
from pipeline.events import NoticeCode, SessionNotice
from pipeline.line_watch.channels import looks_dealt_out, looks_interleaved
from pipeline.line_watch.encoding import judge_encoding
from pipeline.line_watch.level import SpeechLevel
from pipeline.line_watch.votes import Votes
from pipeline.types import AudioFormat, Samples

_BLOCK_FRAMES = 50
_EAGER_BLOCKS = 20
_MOST_EAGER_BLOCKS = 120
"""Blocks that give no verdict may go on for a minute."""
_RARE_EVERY = 20
_SUSPICIOUS_BLOCKS = 10
"""A suspicion makes it judge every half-second again, for so many of them."""
_SPEECH_SHARE = 0.6
"""Of a block's frames, so that it counts as speech."""
_SOUND_RANGE = 2e-3
"""Between the lowest and the highest sample of a block that is more than silence."""

_NAMES = {
    ByteLayout.LINEAR16: "LINEAR16",
    ByteLayout.MULAW: "MULAW",
    ByteLayout.ALAW: "ALAW",
    ByteLayout.LINEAR16_BIG_ENDIAN: "big-endian 16-bit PCM",
    ByteLayout.UNSIGNED8: "unsigned 8-bit PCM",
}
_REMEDIES = {
    ByteLayout.LINEAR16_BIG_ENDIAN: "swap the bytes of each sample",
    ByteLayout.UNSIGNED8: "convert it to LINEAR16, MULAW or ALAW",
}


class LineWatch:
    """All channels of one call."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self._format = audio_format
        self._declared = LAYOUTS[audio_format.encoding]
        self._block = bytearray()
        self._num_frames = 0
        self._voiced = [0] * audio_format.num_channels
        self._num_blocks = 0
        self._num_judged = 0.0
        self._encodings: Votes[ByteLayout] = Votes()
        self._channels: Votes[bool] = Votes()
        self._levels = [SpeechLevel() for _ in range(audio_format.num_channels)]
        self._told: set[tuple[NoticeCode, int]] = set()

    def hear(self, frame: bytes, voiced: Iterable[bool]) -> list[SessionNotice]:
        """Takes the bytes of 10 ms, and for each channel whether speech is heard in them."""
        if (NoticeCode.ENCODING_MISMATCH, 0) in self._told:
            return []
        self._block += frame
        for channel, is_voiced in enumerate(voiced):
            self._voiced[channel] += is_voiced
        self._num_frames += 1
        if self._num_frames < _BLOCK_FRAMES:
            return []
        block, shares = bytes(self._block), [count / _BLOCK_FRAMES for count in self._voiced]
        self._block.clear()
        self._num_frames = 0
        self._voiced = [0] * len(self._voiced)
        self._num_blocks += 1
        is_due = self._num_judged < _EAGER_BLOCKS or self._num_blocks % _RARE_EVERY == 0
        return list(self._judge(block, shares)) if is_due else []

    def _judge(self, block: bytes, voiced_shares: list[float]) -> Iterator[SessionNotice]:
        samples = read_as(block, self._declared, self._format.num_channels)
        if float(samples.max() - samples.min()) < _SOUND_RANGE:
            return
        has_verdict, better = judge_encoding(block, self._declared, self._format.num_channels)
        # What cannot be judged counts a little too, so that a line of noise does not cost for ever.
        self._num_judged += 1 if has_verdict else _EAGER_BLOCKS / _MOST_EAGER_BLOCKS
        if better is not None:
            self._num_judged = min(self._num_judged, _EAGER_BLOCKS - _SUSPICIOUS_BLOCKS)
        if has_verdict and (found := self._encodings.add(better)) is not None:
            yield from self._tell(NoticeCode.ENCODING_MISMATCH, self._encoding_message(found))
            return
        if self._encodings.has_suspicion:
            return
        yield from self._judge_channels(samples)
        for channel, share in enumerate(voiced_shares):
            if share >= _SPEECH_SHARE and (faults := self._levels[channel].hear(samples[channel])):
                message = f"channel {channel + 1} is a poor line: {'; '.join(faults)}"
                yield from self._tell(NoticeCode.POOR_LINE, message, channel + 1)

    def _judge_channels(self, samples: Samples) -> Iterator[SessionNotice]:
        is_mono = self._format.num_channels == 1
        vote = looks_interleaved(samples[0]) if is_mono else looks_dealt_out(samples)
        if vote is not None and self._channels.add(vote or None):
            declared, found = ("1 channel", "2 channels") if is_mono else ("2 channels", "1 channel")
            message = (
                f"{declared} of audio were declared, but the samples look like {found};"
                f" set audio_channel_count to {found[0]} or send {declared}"
            )
            yield from self._tell(NoticeCode.SAMPLE_RATE_MISMATCH, message)

    def _encoding_message(self, found: ByteLayout) -> str:
        declared = _NAMES[self._declared]
        remedy = _REMEDIES.get(found, f"declare {_NAMES[found]}")
        return f"the audio was declared as {declared}, but looks like {_NAMES[found]}; {remedy}, or send {declared}"

    def _tell(self, code: NoticeCode, message: str, channel_tag: int = 0) -> Iterator[SessionNotice]:
        if (code, channel_tag) not in self._told:
            self._told.add((code, channel_tag))
            yield SessionNotice(code=code, message=message, channel_tag=channel_tag)
