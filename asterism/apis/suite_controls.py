"""The controls that a server has only if it was started for a test suite, with `--test-controls`."""

from __future__ import annotations

from dataclasses import dataclass, field

from asterism.apis.injected_faults import InjectedFaults
from asterism.clock import ClockSkew


@dataclass(frozen=True, slots=True)
class SuiteControls:
    faults: InjectedFaults = field(default_factory=InjectedFaults)
    # Of the clock that the whole server reads.
    skew: ClockSkew = field(default_factory=ClockSkew)
