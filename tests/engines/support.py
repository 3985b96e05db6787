"""What the engine tests share: clips, requests, and the embedded weights as a transformers folder."""

import json
import shutil
import wave
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import soxr
import torch

from pipeline.engines.whisper.sources import EMBEDDED_MODELS, LoadedModel
from pipeline.types import CORE_SAMPLE_RATE_HZ, Batch, DecodeHints, DecodeRequest, DecodeResult, Samples

CLIP_TEXTS = {
    "order": "I would like to check the status of my order from last Tuesday.",
    "hold": "Please hold the line while I transfer your call.",
    "address": "The new address is 12 Garden Street in Springfield.",
}
_CLIPS = Path(__file__).parent / "data"
_ROOT = Path(__file__).parents[2]


def read_wav(path: Path) -> Samples:
    """The first channel of a 16-bit WAV file, float32 at 16 kHz."""
    with wave.open(str(path)) as file:
        assert file.getsampwidth() == 2
        raw = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").reshape(-1, file.getnchannels())
        samples = raw[:, 0].astype(np.float32) / 32_768
        return soxr.resample(samples, file.getframerate(), CORE_SAMPLE_RATE_HZ)


@cache
def clip(name: str) -> Samples:
    return read_wav(_CLIPS / f"{name}.wav")


def silence(seconds: float) -> Samples:
    return np.zeros(int(seconds * CORE_SAMPLE_RATE_HZ), dtype=np.float32)


_SEGMENTS = count()


def request(audio: Samples, *, number: int = 0, is_final: bool = True, **options: Any) -> DecodeRequest:
    """Of an utterance of its own, unless `segment_id` says that it goes on."""
    draft = options.pop("draft", ())
    segment_id = options.pop("segment_id", f"segment {next(_SEGMENTS)}")
    return DecodeRequest(
        request_id=f"call/{number}",
        session_id="call",
        segment_id=segment_id,
        channel_tag=1,
        revision=1,
        audio=audio,
        is_final=is_final,
        hints=DecodeHints(**options),
        draft=draft,
    )


def batch(*requests: DecodeRequest) -> Batch:
    longest_s = max(len(r.audio) for r in requests) / CORE_SAMPLE_RATE_HZ
    return Batch(requests=requests, padded_audio_s=longest_s * len(requests))


def text(result: DecodeResult) -> str:
    assert result.error is None
    return result.alternatives[0].transcript if result.alternatives else ""


def embedded_folder(name: str) -> Path:
    """Where the first part of an embedded model lies."""
    package, path = EMBEDDED_MODELS[name].parts[0]
    found = find_spec(package)
    assert found is not None
    assert found.submodule_search_locations
    return Path(found.submodule_search_locations[0], path).parent


def _split(state: dict[str, torch.Tensor], name: str, prefix: str, letters: str) -> None:
    for letter, part in zip(letters, state.pop(name).chunk(len(letters)), strict=True):
        if not (letter == "k" and name.endswith(".bias")):
            state[f"{prefix}.{letter}_proj.{name.rsplit('.', 1)[1]}"] = part.clone()


def transformers_state(loaded: LoadedModel) -> dict[str, torch.Tensor]:
    """The weights under the names of transformers' WhisperForConditionalGeneration."""
    state = dict(loaded.state)
    for name in list(state):
        for joined, parts, new in ((".attention.qkv.", "qkv", ".self_attn"), (".cross.kv.", "kv", ".encoder_attn")):
            if joined in name:
                _split(state, name, name.split(joined)[0] + new, parts)
    renamings = (
        ("encoder.norm.", "encoder.layer_norm."),
        ("decoder.norm.", "decoder.layer_norm."),
        (".attention_norm.", ".self_attn_layer_norm."),
        (".cross_norm.", ".encoder_attn_layer_norm."),
        (".ffn_norm.", ".final_layer_norm."),
        (".attention.out.", ".self_attn.out_proj."),
        (".cross.out.", ".encoder_attn.out_proj."),
        (".cross.q.", ".encoder_attn.q_proj."),
        (".ffn_in.", ".fc1."),
        (".ffn_out.", ".fc2."),
    )
    renamed = {}
    for name, value in state.items():
        for ours, theirs in renamings:
            name = name.replace(ours, theirs)
        name = name.removesuffix(".positions") + ".embed_positions.weight" if name.endswith(".positions") else name
        name = "decoder.embed_tokens.weight" if name == "decoder.embeddings" else name
        renamed[f"model.{name}"] = value
    return renamed


def write_transformers_folder(loaded: LoadedModel, tokenizer: Path, folder: Path) -> None:
    """Saves loaded weights as transformers would."""
    from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration

    spec, vocabulary = loaded.spec, loaded.vocabulary
    config = WhisperConfig(
        vocab_size=spec.vocabulary_size,
        num_mel_bins=spec.num_mel_bins,
        d_model=spec.width,
        encoder_layers=spec.encoder_layers,
        decoder_layers=spec.decoder_layers,
        encoder_attention_heads=spec.num_heads,
        decoder_attention_heads=spec.num_heads,
        encoder_ffn_dim=4 * spec.width,
        decoder_ffn_dim=4 * spec.width,
        max_target_positions=spec.max_tokens,
        decoder_start_token_id=vocabulary.start,
        eos_token_id=vocabulary.end_of_text,
        bos_token_id=vocabulary.end_of_text,
        pad_token_id=vocabulary.end_of_text,
    )
    model = WhisperForConditionalGeneration(config)
    missing = model.load_state_dict(transformers_state(loaded), strict=False)
    assert missing.missing_keys == ["proj_out.weight"]
    assert not missing.unexpected_keys
    model.tie_weights()
    model.generation_config = GenerationConfig(
        alignment_heads=[list(pair) for pair in spec.alignment_heads],
        suppress_tokens=list(spec.suppressed_ids),
        begin_suppress_tokens=list(spec.begin_suppressed_ids),
        no_timestamps_token_id=vocabulary.no_timestamps,
        decoder_start_token_id=vocabulary.start,
        eos_token_id=vocabulary.end_of_text,
        bos_token_id=vocabulary.end_of_text,
        pad_token_id=vocabulary.end_of_text,
        is_multilingual=spec.is_multilingual,
        max_length=spec.max_tokens,
    )
    model.save_pretrained(folder)
    shutil.copy(tokenizer, folder / "tokenizer.json")
    assert json.loads((folder / "config.json").read_text())["model_type"] == "whisper"
