"""specdash: mission control for an LLM inference server on a GPU host you reach over SSH."""

__version__ = "0.1.0"
