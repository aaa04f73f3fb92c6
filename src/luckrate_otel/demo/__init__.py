"""`luckrate-otel demo`: the real processor, real captured traffic, and what a backend then sees."""
