"""How people read a scene event: what it is, and how long it lasted if that is known."""

from clients.replay.pacing import MS_PER_S
from clients.types import Scene, SceneKind


def scene_text(scene: Scene) -> str:
    """As in "[key 5]"; "[ringback …]" while it goes on, "[ringback, 8.0 s]" when it is over."""
    if scene.kind is SceneKind.DTMF:
        return f"[key {scene.digit}]"
    name = scene.kind.value.lower().replace("_", " ")
    return f"[{name}, {scene.duration_ms / MS_PER_S:.1f} s]" if scene.is_over else f"[{name} …]"
