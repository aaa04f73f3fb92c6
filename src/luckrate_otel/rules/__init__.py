"""The rules that a spec can ask for: one file each, all of them in `table.py`."""
