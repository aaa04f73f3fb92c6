"""What survives a kill: the file, its rows, and what of the held spans is written there."""
