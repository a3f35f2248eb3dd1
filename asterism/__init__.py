"""Asterism: an open, partitioned, multi-model database that speaks Azure's data protocols."""

__version__ = "0.1.0"
