"""OTLP bytes in and out: the only protobuf code and the only attribute decoder of this package."""
