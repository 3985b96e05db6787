"""Where settings come from, which one wins, and what is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.errors import StartupError
from server.settings import ModelSettings, Settings, load_settings, render_toml
from tests.support.server import settings_for_tests


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    path = tmp_path / "talkpath.toml"
    path.write_text(
        '[server]\nlisten = "127.0.0.1:1"\nmax_concurrent_calls = 11\ndrain_grace_s = 1.5\n'
        '[models]\nnames = ["base", "tiny.en"]\n'
    )
    return path


def test_priority(settings_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALKPATH_SERVER__LISTEN", "127.0.0.1:2")
    monkeypatch.setenv("TALKPATH_SERVER__MAX_CONCURRENT_CALLS", "12")
    monkeypatch.setenv("TALKPATH_MODELS__NAMES", "one,two")
    monkeypatch.setenv("TALKPATH_TEST_DATA", "/not/a/setting")
    settings = load_settings(settings_file, ["server.listen=127.0.0.1:3", "server.listen=127.0.0.1:4"])
    assert settings.server.listen == "127.0.0.1:4"
    assert settings.server.max_concurrent_calls == 12
    assert settings.server.drain_grace_s == 1.5
    assert settings.models.names == ("one", "two")
    assert load_settings().models.names == ("one", "two")
    monkeypatch.delenv("TALKPATH_MODELS__NAMES")
    assert load_settings(settings_file).models.names == ("base", "tiny.en")
    assert load_settings().models == ModelSettings()
    assert load_settings(None, ['models.names=["a,b", "c"]']).models.names == ("a,b", "c")


def test_print_config_round_trip(settings_file: Path, tmp_path: Path) -> None:
    settings = load_settings(settings_file, ["recognition.vad=energy", "recognition.hangover_ms=640"])
    printed = tmp_path / "printed.toml"
    printed.write_text(render_toml(settings))
    assert load_settings(printed) == settings
    printed.write_text(render_toml(Settings()))
    assert load_settings(printed) == Settings()


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, unique=True))
def test_any_text_survives_toml(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    path = tmp_path_factory.mktemp("toml") / "x.toml"
    settings = Settings.model_construct(models=ModelSettings(names=tuple(names)))
    path.write_text(render_toml(settings), encoding="utf-8", newline="")
    assert load_settings(path).models.names == tuple(names)


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("server.lissen=x", ["server.lissen", "no such setting"]),
        ("sever.listen=x", ["sever", "no such setting"]),
        ("listen=x", ["listen=x", "section.key=value"]),
        ("server.listen", ["section.key=value"]),
        ("server.listen=here", ["server.listen", "'here'", "HOST:PORT"]),
        ("server.listen=127.0.0.1:70000", ["70000"]),
        ("server.listen=0.0.0.0:50051", ["0.0.0.0:50051", "127.0.0.1", "server.insecure=true"]),
        ("server.listen=example.org:50051", ["server.insecure=true"]),
        ("server.max_concurrent_calls=0", ["server.max_concurrent_calls", "'0'", "greater than or equal to 1"]),
        ("server.max_concurrent_calls=many", ["server.max_concurrent_calls", "'many'"]),
        ("models.names=", ["models.names", "at least one model"]),
        ("models.names=a,a", ["models.names", "each once"]),
        ("recognition.hangover_ms=1", ["endpointing.hangover_ms", "1 is outside 100 to 5000"]),
        ("recognition.vad=ears", ["recognition.vad", "'ears'", "silero"]),
        ("telemetry.log_format=xml", ["telemetry.log_format", "'xml'", "json"]),
        ("telemetry.prometheus_listen=9", ["telemetry.prometheus_listen", "HOST:PORT"]),
    ],
)
def test_wrong_settings_are_one_clear_line(override: str, parts: list[str]) -> None:
    with pytest.raises(StartupError) as caught:
        load_settings(None, [override])
    assert all(part in str(caught.value) for part in parts), str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["TALKPATH_SERVER__LISSEN", "TALKPATH_SEVER__LISTEN"])
def test_unknown_variables_are_errors(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(StartupError, match="no such setting|no section"):
        load_settings()


def test_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="no such settings file"):
        load_settings(tmp_path / "absent.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[server\n")
    with pytest.raises(StartupError, match=r"broken\.toml"):
        load_settings(broken)
    broken.write_text("[server]\nunknown = 1\n")
    with pytest.raises(StartupError, match=r"server\.unknown"):
        load_settings(broken)


def test_beyond_this_machine_on_purpose() -> None:
    settings = load_settings(None, ["server.listen=[::]:0", "server.insecure=true"])
    assert settings.server.insecure
    assert load_settings(None, ["server.listen=[::1]:0"]).server.listen == "[::1]:0"


def test_settings_reach_the_pipeline() -> None:
    settings = settings_for_tests(recognition__hangover_ms=900, scheduling__max_batch_size=3)
    assert settings.recognition.call_defaults().endpointing.hangover_ms == 900
    assert settings.scheduling.policy("cpu").max_batch_size == 3
    assert (
        settings_for_tests().scheduling.policy("cpu").max_batch_size
        < settings_for_tests().scheduling.policy("cuda").max_batch_size
    )
