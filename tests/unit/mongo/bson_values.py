"""Documents of every type of BSON, for property tests."""

from __future__ import annotations

from typing import Any

from bson import Binary, Code, DatetimeMS, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from hypothesis import strategies as st

NAMES = st.text(st.characters(exclude_characters="\x00$.", codec="utf-8"), min_size=1, max_size=8)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
_UNSIGNED = st.integers(0, 2**32 - 1)

SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(Int64),
    st.floats(),
    TEXTS,
    st.binary(min_size=12, max_size=12).map(ObjectId),
    st.integers(-(2**63), 2**63 - 1).map(DatetimeMS),
    st.integers(-(10**30), 10**30).map(lambda number: Decimal128(f"{number}E-3")),
    st.sampled_from(["NaN", "Infinity", "-Infinity", "1.10", "-0", "1E+6000"]).map(Decimal128),
    st.builds(Binary, st.binary(max_size=24), st.sampled_from([0, 5, 128])),
    st.builds(Binary, st.binary(min_size=16, max_size=16), st.sampled_from([3, 4])),
    st.builds(Regex, st.text("ab.*[]/", max_size=6), st.sampled_from(["", "i", "im", "sx"])),
    st.builds(Code, TEXTS),
    st.builds(Code, TEXTS, st.dictionaries(NAMES, st.integers(0, 9), max_size=2)),
    st.builds(Timestamp, _UNSIGNED, _UNSIGNED),
    st.builds(MinKey),
    st.builds(MaxKey),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
DOCUMENTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(NAMES, VALUES, max_size=5)
# Values that may stand in `_id`.
IDS: st.SearchStrategy[Any] = SCALARS.filter(lambda value: not isinstance(value, Regex)) | st.dictionaries(
    NAMES, SCALARS, min_size=1, max_size=2
)
