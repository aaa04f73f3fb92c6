"""OTLP in: the two receivers, who may send, and what a sender is told."""
