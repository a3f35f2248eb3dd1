"""All window functions, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from asterism.languages.mongo.stages.windows.covariance import compile_covariance
from asterism.languages.mongo.stages.windows.framed import NAMES, compile_framed
from asterism.languages.mongo.stages.windows.partition import Evaluate, FunctionScope
from asterism.languages.mongo.stages.windows.ranking import compile_rank, compile_shift
from asterism.languages.mongo.stages.windows.series import (
    compile_derivative,
    compile_integral,
    compile_linear_fill,
    compile_locf,
    compile_moving_average,
    compile_scaler,
)

CompileFunction = Callable[[str, Any, FunctionScope], Evaluate]

WINDOW_FUNCTIONS: Final[dict[str, CompileFunction]] = {
    **dict.fromkeys(NAMES, compile_framed),
    "$covariancePop": compile_covariance,
    "$covarianceSamp": compile_covariance,
    "$rank": compile_rank,
    "$denseRank": compile_rank,
    "$documentNumber": compile_rank,
    "$shift": compile_shift,
    "$derivative": compile_derivative,
    "$integral": compile_integral,
    "$expMovingAvg": compile_moving_average,
    "$linearFill": compile_linear_fill,
    "$locf": compile_locf,
    "$minMaxScaler": compile_scaler,
}
