"""What the processor says of itself: health, status and metrics."""
