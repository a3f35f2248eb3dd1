"""A partition's number contains the number of its node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.values.identifiers import SEQUENCE_MAX, NodeNumber, node_of, partition_on, sequence_of


@given(st.integers(0, 2**31 - 1).map(NodeNumber), st.integers(0, SEQUENCE_MAX))
def test_a_partition_number_is_its_node_and_its_sequence(node: NodeNumber, sequence: int) -> None:
    number = partition_on(node, sequence)
    assert (node_of(number), sequence_of(number)) == (node, sequence)
    # It fits into the signed 64 bits of a database column.
    assert 0 <= number < 2**63


def test_the_numbers_of_the_embedded_store_are_the_sequence_itself() -> None:
    assert [partition_on(NodeNumber(0), sequence) for sequence in (0, 1, 99)] == [0, 1, 99]


@pytest.mark.parametrize(("node", "sequence"), [(-1, 0), (0, -1), (0, SEQUENCE_MAX + 1)])
def test_numbers_out_of_range_are_refused(node: int, sequence: int) -> None:
    with pytest.raises(ValueError, match="no partition"):
        partition_on(NodeNumber(node), sequence)
