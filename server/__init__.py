"""A process that serves calls over gRPC."""
