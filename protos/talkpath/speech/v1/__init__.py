"""Version 1 of the contract: speech_pb2 (messages) and speech_pb2_grpc (service)."""
