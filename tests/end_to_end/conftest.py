"""A real server process with real weights, shared by the tests of this folder."""

import subprocess
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def server_address(tmp_path_factory) -> Iterator[str]:
    """HOST:PORT of a `talkpath-server` with tiny.en; it must stop cleanly when it is told to."""
    log = (tmp_path_factory.mktemp("server") / "log").open("w+")
    command = [sys.executable, "-c", "from server.cli import main; main()", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, "--model", "tiny.en", "--set", "server.max_concurrent_calls=16"],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    try:
        line = process.stdout.readline()
        log.seek(0)
        assert line.startswith("talkpath-server listening on "), log.read()
        yield line.split()[-1]
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
        log.close()
