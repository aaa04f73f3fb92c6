"""Keeps the spans of one stretch of time, for tests: what began while it was on, once it has ended."""

from __future__ import annotations

import threading
import weakref

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

from luckrate_otel import telemetry
from luckrate_otel.sdk.convert import to_span


class SpanCollector(SpanProcessor):
    """A span that began before start() belongs to another stretch, even if it ends in this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._on = False
        self._begun: set[tuple[int, int]] = set()
        self._ended: list[telemetry.Span] = []
        self._providers: weakref.WeakSet[TracerProvider] = weakref.WeakSet()

    def attach(self, provider: TracerProvider) -> None:
        """See its spans; once per provider, as processors cannot be taken off again."""
        if provider not in self._providers:
            self._providers.add(provider)
            provider.add_span_processor(self)

    def start(self) -> None:
        with self._lock:
            self._on, self._begun, self._ended = True, set(), []

    def stop(self) -> None:
        with self._lock:
            self._on = False

    @property
    def spans(self) -> tuple[telemetry.Span, ...]:
        with self._lock:
            return tuple(self._ended)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 - the SDK's signature
        context = span.get_span_context()
        if self._on and context is not None:
            with self._lock:
                self._begun.add((context.trace_id, context.span_id))

    def on_end(self, span: ReadableSpan) -> None:
        context = span.context
        if self._on and context is not None and (context.trace_id, context.span_id) in self._begun:
            read = to_span(span)
            with self._lock:
                self._ended.append(read)
