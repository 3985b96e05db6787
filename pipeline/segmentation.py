"""Cuts a channel's audio into speech segments: pre-roll before, a little silence behind, no longer than the limit.

Audio is written once into one growing buffer per segment; requests get read-only views of it. What has to be changed
afterwards is changed in a copy.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pipeline.config import MAX_DOUBT_MS, EndpointingConfig
from pipeline.types import FRAME_MS, FRAME_SAMPLES, EndReason, Samples, SpeechSegment

_CUT_SMOOTHING_FRAMES = 5
"""Energies are averaged over this many frames, so that a cut falls into a pause and not into a plosive."""
VOICED_SCORE = 0.35
"""From this score on a frame counts for how sure it is that somebody speaks."""
_SCORE_DECIMALS = 3
_UNSURE_SCORE = 0.2
"""On a quiet line frames before the onset are below. Over music or noise they are above, and detection is late."""
_UNSURE_PRE_ROLL_MS = 800
"""Most that is kept before an onset to which the line was unsure."""

ScoredFrame = tuple[Samples, float]
"""10 ms and their speech score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSegment:
    """What has been heard of the segment under way."""

    segment_id: str
    channel_tag: int
    start_sample: int
    """Call clock at 16 kHz."""
    speech_start_sample: int
    """Where speech began behind the pre-roll, call clock at 16 kHz; the start itself where an utterance was cut."""
    samples: Samples = field(repr=False, compare=False)
    speech_score: float = 0.0
    """Mean score of the voiced frames, 0 to 1."""


class _Recording:
    """The audio of one open segment, and where it could best be cut."""

    def __init__(self, segment_id: str, start_frame: int, speech_start_frame: int, max_frames: int) -> None:
        self.segment_id = segment_id
        self.start_frame = start_frame
        self.speech_start_frame = speech_start_frame
        self.num_frames = 0
        self.cut_frames = 0
        """Length up to the quietest point in the search range; 0 while there is none."""
        self._lowest_energy = np.inf
        self._energies: deque[float] = deque(maxlen=_CUT_SMOOTHING_FRAMES)
        self._samples = np.empty(max_frames * FRAME_SAMPLES, dtype=np.float32)
        self._scores = np.empty(max_frames, dtype=np.float32)

    def append(self, frame: Samples, score: float) -> None:
        start = self.num_frames * FRAME_SAMPLES
        self._scores[self.num_frames] = score
        self._samples[start : start + FRAME_SAMPLES] = frame
        self.num_frames += 1
        self._energies.append(float(np.dot(frame, frame)))

    def revise(self, first_frame: int, end_frame: int, change: Callable[[Samples], Samples]) -> None:
        """Changes a copy: views of the audio as it was are with engines."""
        begin = max(0, first_frame - self.start_frame)
        end = min(self.num_frames, end_frame - self.start_frame)
        if begin >= end:
            return
        revised = np.empty_like(self._samples)
        revised[: self.num_frames * FRAME_SAMPLES] = self.audio(self.num_frames)
        self._samples = revised
        for frame in revised[: end * FRAME_SAMPLES].reshape(-1, FRAME_SAMPLES)[begin:]:
            frame[:] = change(frame)

    def search_cut(self) -> None:
        """Considers the middle of the newest frames as a place to cut."""
        energy = sum(self._energies) / len(self._energies)
        if energy <= self._lowest_energy:
            self._lowest_energy = energy
            self.cut_frames = self.num_frames - len(self._energies) // 2

    def audio(self, num_frames: int) -> Samples:
        view = self._samples[: num_frames * FRAME_SAMPLES]
        view.setflags(write=False)
        return view

    def speech_score(self, num_frames: int) -> float:
        """Mean score of what was taken for speech in the first frames."""
        scores = self._scores[:num_frames]
        voiced = scores[scores >= VOICED_SCORE]
        return round(float(voiced.mean()), _SCORE_DECIMALS) if len(voiced) else 0.0

    def frames_behind(self, num_frames: int) -> list[ScoredFrame]:
        audio = self.audio(self.num_frames)[num_frames * FRAME_SAMPLES :]
        return list(zip(audio.reshape(-1, FRAME_SAMPLES), self._scores[num_frames : self.num_frames], strict=True))


class Segmenter:
    """One channel's cutter. Frame numbers are the channel's own, from 0; `start_sample` is call clock."""

    def __init__(self, channel_tag: int, config: EndpointingConfig, start_sample: int) -> None:
        self._channel_tag = channel_tag
        self._start_sample = start_sample
        self._max_frames = config.max_segment_ms // FRAME_MS
        self._cut_search_start_frames = self._max_frames - config.cut_search_ms // FRAME_MS
        self._pre_roll_frames = config.pre_roll_ms // FRAME_MS
        self._post_roll_frames = config.post_roll_ms // FRAME_MS
        self._unsure_pre_roll_frames = max(self._pre_roll_frames, _UNSURE_PRE_ROLL_MS // FRAME_MS)
        self._onset_frames = (config.onset_ms + MAX_DOUBT_MS) // FRAME_MS
        self._recent: deque[ScoredFrame] = deque(maxlen=self._unsure_pre_roll_frames + self._onset_frames)
        self._frame = 0
        self._num_segments = 0
        self._recording: _Recording | None = None

    @property
    def earliest_needed_sample(self) -> int:
        """Call clock: audio before this can't become part of the open or a future segment."""
        if self._recording is not None:
            return self._sample_at(self._recording.start_frame)
        num_needed = self._pre_roll_of(list(self._recent)) + self._onset_frames
        return self._sample_at(self._frame - min(num_needed, len(self._recent)))

    @property
    def open_segment(self) -> OpenSegment | None:
        """The segment under way, as far as it will surely not be cut shorter."""
        if (recording := self._recording) is None:
            return None
        surely_kept = recording.cut_frames or min(recording.num_frames, self._cut_search_start_frames)
        return self._open_segment(recording, surely_kept)

    def append(self, frame: Samples, score: float) -> None:
        """Takes the next 10 ms at 16 kHz and how likely they are speech, 0 to 1."""
        self._frame += 1
        if self._recording is None:
            self._recent.append((frame, score))
            return
        self._recording.append(frame, score)
        if self._recording.num_frames >= self._cut_search_start_frames + _CUT_SMOOTHING_FRAMES:
            self._recording.search_cut()

    def revise(self, first_frame: int, end_frame: int, change: Callable[[Samples], Samples]) -> None:
        """Changes frames that were taken already; what was handed out of them before stays as it was."""
        if self._recording is not None:
            self._recording.revise(first_frame, end_frame, change)
            return
        oldest_frame = self._frame - len(self._recent)
        for frame in range(max(first_frame, oldest_frame), min(end_frame, self._frame)):
            samples, score = self._recent[frame - oldest_frame]
            self._recent[frame - oldest_frame] = (change(samples), score)

    def skip(self, num_frames: int) -> None:
        """Time passes without audio while no segment is open."""
        self._frame += num_frames
        self._recent.clear()

    def open(self, speech_frame: int) -> None:
        """Speech began with this frame: starts a segment with the pre-roll in front of it."""
        recent = list(self._recent)
        since_onset = self._frame - speech_frame
        before = recent[: max(0, len(recent) - since_onset)]
        self._recent.clear()
        self._start_recording(recent[-(since_onset + self._pre_roll_of(before)) :], speech_frame)

    def close(self, speech_end_frame: int, reason: EndReason) -> SpeechSegment:
        """Ends the open segment. Audio behind the post-roll is kept as pre-roll of the next."""
        recording = self._open_recording()
        num_frames = self._closed_frames(recording, speech_end_frame)
        rest = recording.frames_behind(num_frames)
        self._recording = None
        self._recent.extend(rest)
        return self._segment(recording, num_frames, speech_end_frame, reason)

    def closed_at(self, speech_end_frame: int) -> OpenSegment | None:
        """What the open segment would hold if its speech had ended here; None while it may yet be cut elsewhere."""
        recording = self._open_recording()
        num_frames = self._closed_frames(recording, speech_end_frame)
        if recording.num_frames > self._cut_search_start_frames:
            return None
        return self._open_segment(recording, num_frames)

    def split(self, speech_end_frame: int, reason: EndReason) -> SpeechSegment:
        """Ends the open segment while speech goes on: at its quietest point if it is too long, else here."""
        recording = self._open_recording()
        at_limit = reason is EndReason.MAX_LENGTH and recording.cut_frames
        num_frames = recording.cut_frames if at_limit else recording.num_frames
        rest = recording.frames_behind(num_frames)
        self._start_recording(rest, self._frame - len(rest))
        return self._segment(recording, num_frames, speech_end_frame, reason)

    @property
    def is_at_limit(self) -> bool:
        """Whether the open segment has to be split now."""
        return self._recording is not None and self._recording.num_frames >= self._max_frames

    def _pre_roll_of(self, before: list[ScoredFrame]) -> int:
        """How many of the frames before an onset belong to it."""
        num_unsure = 0
        for _, score in reversed(before):
            if score < _UNSURE_SCORE:
                break
            num_unsure += 1
        return min(self._unsure_pre_roll_frames, self._pre_roll_frames + num_unsure)

    def _closed_frames(self, recording: _Recording, speech_end_frame: int) -> int:
        keep = speech_end_frame + self._post_roll_frames - recording.start_frame
        return min(recording.num_frames, max(1, keep))

    def _open_segment(self, recording: _Recording, num_frames: int) -> OpenSegment:
        return OpenSegment(
            segment_id=recording.segment_id,
            channel_tag=self._channel_tag,
            start_sample=self._sample_at(recording.start_frame),
            speech_start_sample=self._sample_at(recording.speech_start_frame),
            samples=recording.audio(num_frames),
            speech_score=recording.speech_score(num_frames),
        )

    def _start_recording(self, frames: list[ScoredFrame], speech_frame: int) -> None:
        self._num_segments += 1
        segment_id = f"{self._channel_tag}-{self._num_segments}"
        start_frame = self._frame - len(frames)
        self._recording = _Recording(segment_id, start_frame, max(start_frame, speech_frame), self._max_frames)
        for frame, score in frames:
            self._recording.append(frame, score)

    def _open_recording(self) -> _Recording:
        if self._recording is None:
            raise RuntimeError("no segment is open")
        return self._recording

    def _segment(
        self, recording: _Recording, num_frames: int, speech_end_frame: int, reason: EndReason
    ) -> SpeechSegment:
        end_frame = recording.start_frame + num_frames
        return SpeechSegment(
            segment_id=recording.segment_id,
            channel_tag=self._channel_tag,
            start_sample=self._sample_at(recording.start_frame),
            speech_start_sample=self._sample_at(min(recording.speech_start_frame, end_frame)),
            speech_end_sample=self._sample_at(min(speech_end_frame, end_frame)),
            samples=recording.audio(num_frames),
            speech_score=recording.speech_score(num_frames),
            end_reason=reason,
        )

    def _sample_at(self, frame: int) -> int:
        return self._start_sample + frame * FRAME_SAMPLES
