"""OTLP out: one queue and one sender per destination."""
