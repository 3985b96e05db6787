from pathlib import Path

import numpy as np
import pytest
import soundfile

from clients.replay.manifest import ManifestEntry
from clients.replay.plan import (
    CallOptions,
    PlanError,
    attach_references,
    find_recordings,
    load_audio,
    plan_calls,
    read_hints,
)
from clients.types import ChannelRole, Denoise, Encoding, Limits, SpeechContext

LIMITS = Limits(
    max_message_bytes=1 << 20,
    max_recognize_duration_ms=60_000,
    max_concurrent_calls=10,
    max_channel_count=2,
    sample_rates_hz=(8000, 16000, 24000, 48000),
)


def write_wav(
    path: Path, *, channels: int = 1, rate_hz: int = 8000, subtype: str = "PCM_16", num_samples: int = 800
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    levels = np.linspace(0.1, 0.3, channels)
    soundfile.write(path, np.tile(levels, (num_samples, 1)), rate_hz, subtype=subtype)
    return path


def test_folders_are_searched_and_files_taken_as_they_are(tmp_path):
    first, second = write_wav(tmp_path / "b" / "2.wav"), write_wav(tmp_path / "b" / "a" / "1.WAV")
    (tmp_path / "b" / "notes.txt").write_text("no audio")
    odd = tmp_path / "odd.name"
    odd.write_bytes(first.read_bytes())
    assert find_recordings([odd, tmp_path / "b"]) == [odd, first, second]
    (tmp_path / "empty").mkdir()
    with pytest.raises(PlanError, match="no recording in this folder"):
        find_recordings([tmp_path / "empty"])
    with pytest.raises(PlanError, match=r"missing\.wav: no such file"):
        find_recordings([tmp_path / "missing.wav"])


@pytest.mark.parametrize(("rate_hz", "sent_hz"), [(8000, 8000), (11_025, 16_000), (22_050, 24_000), (96_000, 48_000)])
def test_a_rate_the_server_does_not_take_becomes_the_next_that_loses_nothing(tmp_path, rate_hz, sent_hz):
    path = write_wav(tmp_path / "a.wav", rate_hz=rate_hz, num_samples=rate_hz)
    (call,) = plan_calls([path], CallOptions(), LIMITS)
    assert call.settings.sample_rate_hz == sent_hz
    assert len(load_audio(call)) == pytest.approx(2 * sent_hz, abs=4)


def test_the_files_own_encoding_is_kept_unless_another_is_asked(tmp_path):
    mulaw = write_wav(tmp_path / "a.wav", subtype="ULAW")
    flac = write_wav(tmp_path / "b.flac")
    calls = plan_calls([mulaw, flac], CallOptions(), LIMITS)
    assert [call.settings.encoding for call in calls] == [Encoding.MULAW, Encoding.LINEAR16]
    calls = plan_calls([mulaw, flac], CallOptions(encoding=Encoding.ALAW, sample_rate_hz=16_000), LIMITS)
    assert [(call.settings.encoding, len(load_audio(call))) for call in calls] == [(Encoding.ALAW, 1600)] * 2


def test_options_reach_the_call(tmp_path):
    options = CallOptions(
        language_code="en-GB",
        model="base",
        roles=(ChannelRole.AGENT, ChannelRole.CUSTOMER),
        denoise=Denoise.OFF,
        hangover_ms=700,
    )
    (call,) = plan_calls([write_wav(tmp_path / "a.wav", channels=2)], options, LIMITS)
    settings = call.settings
    assert (settings.language_code, settings.model, settings.denoise) == ("en-GB", "base", Denoise.OFF)
    assert settings.endpointing.hangover_ms == 700
    assert settings.channel_roles == {1: ChannelRole.AGENT, 2: ChannelRole.CUSTOMER}
    assert [call.role_name(tag) for tag in (1, 2)] == ["agent", "customer"]
    assert call.duration_s == pytest.approx(0.1)


def test_channels_stay_apart_unless_their_words_are_one_text(tmp_path):
    path = write_wav(tmp_path / "a.wav", channels=2)
    apart = ManifestEntry(path=path, name="a", texts={1: "a", 2: "b"}, is_mixed=False, roles={2: ChannelRole.IVR})
    mixed = ManifestEntry(path=path, name="a", texts={1: "a b"}, language_code="es-MX")
    no_words = ManifestEntry(path=path, name="a", language_code="zxx")
    calls = plan_calls([path, apart, mixed, no_words], CallOptions(), LIMITS)
    assert [call.settings.num_channels for call in calls] == [2, 2, 1, 2]
    assert [call.settings.language_code for call in calls] == ["", "", "es-MX", ""]
    assert [calls[1].role_name(tag) for tag in (1, 2)] == ["channel 1", "ivr"]
    assert calls[2].role_name(1) == "caller"
    levels = np.frombuffer(load_audio(calls[2]), "<i2") / 32768
    assert levels == pytest.approx(0.2, abs=1e-3)
    (one_role,) = plan_calls([path], CallOptions(roles=(ChannelRole.CUSTOMER,)), LIMITS)
    assert one_role.settings.num_channels == 1


def test_what_does_not_fit_is_refused_before_anything_is_played(tmp_path):
    with pytest.raises(PlanError, match="has 3 channels, the server takes 2"):
        plan_calls([write_wav(tmp_path / "a.wav", channels=3)], CallOptions(), LIMITS)
    roles = CallOptions(roles=(ChannelRole.AGENT, ChannelRole.CUSTOMER))
    with pytest.raises(PlanError, match="has 1 channels, --channels names 2"):
        plan_calls([write_wav(tmp_path / "b.wav")], roles, LIMITS)
    with pytest.raises(PlanError, match="holds no audio"):
        plan_calls([write_wav(tmp_path / "c.wav", num_samples=0)], CallOptions(), LIMITS)
    (tmp_path / "d.wav").write_text("text")
    with pytest.raises(PlanError, match=r"d\.wav.*use WAV"):
        plan_calls([tmp_path / "d.wav"], CallOptions(), LIMITS)


def test_repeats_are_calls_of_their_own(tmp_path):
    paths = [write_wav(tmp_path / "a.wav"), write_wav(tmp_path / "b.wav")]
    calls = plan_calls(paths, CallOptions(), LIMITS, repeat=2)
    assert [(call.index, call.name) for call in calls] == [(0, "a.wav"), (1, "b.wav"), (2, "a.wav"), (3, "b.wav")]


def test_named_files_find_their_reference(tmp_path, monkeypatch):
    path, other = write_wav(tmp_path / "a.wav"), write_wav(tmp_path / "b.wav")
    entry = ManifestEntry(path=path, name="a", texts={1: "hello"})
    monkeypatch.chdir(tmp_path)
    assert attach_references([Path("a.wav"), other], (entry,)) == [entry, other]


def test_hints_reach_the_call(tmp_path):
    path = write_wav(tmp_path / "a.wav")
    file = tmp_path / "hints.txt"
    file.write_text("# names\nFennimar Plus\n\n  Ån  \n", "utf-8")
    assert read_hints(file) == ("Fennimar Plus", "Ån")
    (call,) = plan_calls([path], CallOptions(hints=read_hints(file)), LIMITS)
    assert call.settings.speech_contexts == (SpeechContext(phrases=("Fennimar Plus", "Ån")),)
    (call,) = plan_calls([path], CallOptions(), LIMITS)
    assert call.settings.speech_contexts == ()
    with pytest.raises(PlanError, match="one phrase a line"):
        read_hints(tmp_path / "missing.txt")
