"""Payload readers."""
