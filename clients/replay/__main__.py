"""`python -m clients.replay` is `talkpath-replay`."""

from clients.replay.cli import main

main()
