"""The machinery: it knows no op. Start reading at `op.py`."""
