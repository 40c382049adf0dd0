"""The parts of engine/run.py, one concept a file."""
