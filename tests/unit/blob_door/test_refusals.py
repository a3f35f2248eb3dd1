"""Every reason for which the model refuses a call has a refusal of the protocol."""

from __future__ import annotations

import pytest

from asterism.apis.blob.errors import container_refusal_of, refusal_of
from asterism.models.blobs.failures import BlobFailure


@pytest.mark.parametrize("failure", list(BlobFailure))
def test_every_failure_has_a_status_a_code_and_a_sentence(failure: BlobFailure) -> None:
    for refusal in (refusal_of(failure), container_refusal_of(failure)):
        assert 300 <= refusal.status < 600
        assert refusal.code.isalnum()
        assert refusal.message.endswith(".")
