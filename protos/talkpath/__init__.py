"""Talkpath's public contract: the protobuf files and their generated Python stubs."""
