"""Candidates for the partition key of a container; see `asterism.advisor.keys.candidate`."""

from __future__ import annotations

from asterism.advisor.keys.candidate import BetweenValues, CandidateKey, Draw, KnownValues

__all__ = ["BetweenValues", "CandidateKey", "Draw", "KnownValues"]
