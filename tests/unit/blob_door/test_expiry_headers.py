"""The headers that set the expiry of a blob."""

from __future__ import annotations

import pytest

from asterism.apis.blob.blobs.expiry import read_expiry
from asterism.apis.storage.refusals import Refusal
from asterism.models.blobs.changes import ExpiryMode, SetExpiry
from asterism.values.ticks import TICKS_PER_SECOND

NOW = 1_700_000_000 * TICKS_PER_SECOND


def read(option: str, time: str | None = None) -> SetExpiry:
    headers = {"x-ms-expiry-option": option}
    if time is not None:
        headers["x-ms-expiry-time"] = time
    return read_expiry(headers, NOW)


def test_a_blob_expires_after_milliseconds_or_at_a_date_or_never() -> None:
    assert read("RelativeToNow", "1500") == SetExpiry(ExpiryMode.RELATIVE_TO_NOW, 1500)
    assert read("relativetocreation", "1") == SetExpiry(ExpiryMode.RELATIVE_TO_CREATION, 1)
    assert read("NeverExpire") == SetExpiry(ExpiryMode.NEVER_EXPIRE)
    absolute = read("Absolute", "Wed, 15 Nov 2023 00:00:00 GMT")
    assert absolute == SetExpiry(ExpiryMode.ABSOLUTE, 1_700_006_400 * TICKS_PER_SECOND)


@pytest.mark.parametrize(
    ("option", "time"),
    [
        ("Soon", "1"),
        ("RelativeToNow", None),
        ("RelativeToNow", "0"),
        ("RelativeToNow", "-5"),
        ("RelativeToNow", "9" * 30),
        ("RelativeToNow", "0" * 19 + "1" + "9" * 200),
        ("RelativeToNow", "1" + "9" * 5000),
        ("RelativeToCreation", "0" * 19 + "1"),
        ("Absolute", "Wed, 15 Nov 2022 00:00:00 GMT"),
        ("Absolute", "tomorrow"),
    ],
)
def test_other_times_are_refused(option: str, time: str | None) -> None:
    with pytest.raises(Refusal) as refused:
        read(option, time)
    assert refused.value.status == 400
