"""The program of an engine's host process: loads the engine once, then forks a process for each lane.

Forked lanes share the memory of the weights, also of those in kernels' own layouts. An engine that holds a device
cannot be forked; its host serves the one lane itself.

Hosts and lanes leave signals to the server, which lets calls finish first, and end when their connection does.
"""

import ctypes
import gc
import os
import signal
import socket
from multiprocessing.connection import Connection

from pipeline.engines.base import Engine
from pipeline.engines.hosting.messages import Failure, Load, Ready, Release, Transcribe

IDLE_S = 2.0
"""A lane without work for so long gives free memory back: allocators keep tens of MB of it, a changing number."""


def main(descriptor: int) -> None:
    """Serves the server at the other end of this socket."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for lanes that end
    try:
        with Connection(os.dup(descriptor)) as control:
            engine = _load(control)
        if engine is not None:
            _open_lanes(engine, socket.socket(fileno=descriptor))
    except (EOFError, ConnectionError):
        pass  # the server has gone


def _load(control: Connection) -> Engine | None:
    wanted: Load = control.recv()
    try:
        engine = wanted.factory()
    except Exception as error:
        control.send(Failure.of(error))
        return None
    control.send(engine.info)
    return engine


def _open_lanes(engine: Engine, control: socket.socket) -> None:
    gc.collect()
    gc.freeze()  # a collection in a lane would touch, and so copy, what is shared
    while True:
        received, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not received:
            return
        if engine.info.device != "cpu":
            _serve(engine, Connection(descriptors[0]))
            return
        if os.fork() == 0:
            control.close()
            _serve(engine, Connection(descriptors[0]))
            os._exit(0)
        os.close(descriptors[0])


def _serve(engine: Engine, lane: Connection) -> None:
    try:
        lane.send(_warmed_up(engine))
        while True:
            if not lane.poll(IDLE_S):
                _give_memory_back()
            message: Transcribe | Release = lane.recv()
            if isinstance(message, Release):
                engine.release(message.segment_keys)
            else:
                lane.send(_answer(engine, message))
    except (EOFError, ConnectionError):
        pass  # the server has gone, or wants no more of this lane


def _give_memory_back() -> None:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)


def _warmed_up(engine: Engine) -> Ready | Failure:
    try:
        engine.warm_up()
    except Exception as error:
        return Failure.of(error)
    return Ready(pid=os.getpid())


def _answer(engine: Engine, message: Transcribe) -> object:
    try:
        return engine.transcribe(message.batch)
    except Exception as error:
        return Failure.of(error)
