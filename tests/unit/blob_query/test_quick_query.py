"""Quick queries as the official client asks and reads them."""

from __future__ import annotations

import csv
import io
import json

import pytest
from azure.storage.blob import DelimitedJsonDialect, DelimitedTextDialect
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.blob.query_answer import QueryAnswer
from asterism.apis.blob.query_request import read_query_request
from tests.unit.blob_query.quick_query import SYNC, ask, request_body

CITIES = b"""city,country,people,founded
Basel,CH,178000,0044-01-01
"Graz, an der Mur",AT,291000,1128-01-01
Bern,CH,134000,1191-01-01
Z\xc3\xbcrich,CH,421000,0015-01-01
Wien,AT,1900000,0001-01-01
"""
WITH_HEADER = DelimitedTextDialect(has_header=True)
NO_HEADER = DelimitedTextDialect(has_header=False)
ORDERS = (
    b'{"id":1,"who":{"name":"Ada"},"items":[{"sku":"a","n":2},{"sku":"b","n":1}],"paid":true}\n'
    b'{"id":2,"who":{"name":"Bob"},"items":[],"paid":false,"note":null}\n'
    b'{"id":3,"who":{"name":"Cy"},"items":[{"sku":"a","n":5}],"paid":true,"note":"x"}\n'
)


def cities(query: str) -> list[list[str]]:
    """Return the rows of a query over the cities, whose names are in the header."""
    asked = ask(query, CITIES, blob_format=WITH_HEADER, output_format=NO_HEADER)
    assert asked.faults == []
    return list(csv.reader(io.StringIO(asked.data.decode())))


def orders(query: str) -> list[object]:
    asked = ask(query, ORDERS, blob_format=DelimitedJsonDialect())
    assert asked.faults == []
    return [json.loads(line) for line in asked.data.splitlines()]


# --- delimited text -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT city FROM BlobStorage WHERE people > 400000", [["Zürich"], ["Wien"]]),
        ("SELECT _1, _3 FROM BlobStorage WHERE country = 'AT' LIMIT 1", [["Graz, an der Mur", "291000"]]),
        ("select c.city from blobstorage c where c.country='CH' and not c.city like 'B%';", [["Zürich"]]),
        ("SELECT BlobStorage.city FROM BlobStorage WHERE people BETWEEN 134000 AND 178000", [["Basel"], ["Bern"]]),
        ("SELECT city FROM BlobStorage WHERE city IN ('Bern', 'Wien', 'Oslo')", [["Bern"], ["Wien"]]),
        ("SELECT city FROM BlobStorage WHERE country NOT IN ('CH') AND city LIKE '%_n'", [["Wien"]]),
        ("SELECT UPPER(city), CHAR_LENGTH(city) FROM BlobStorage WHERE city = 'Bern'", [["BERN", "4"]]),
        ("SELECT SUBSTRING(city, 2, 2), SUBSTRING(city FROM 3) FROM BlobStorage LIMIT 1", [["as", "sel"]]),
        ("SELECT TRIM(LEADING 'B' FROM city), TRIM('  x ') FROM BlobStorage LIMIT 1", [["asel", "x"]]),
        ("SELECT people / 1000 + 1, people % 1000, people * 1.5 FROM BlobStorage LIMIT 1", [["179", "0", "267000"]]),
        ("SELECT city || '/' || country FROM BlobStorage LIMIT 1", [["Basel/CH"]]),
        ("SELECT city FROM BlobStorage WHERE CAST(founded AS TIMESTAMP) > CAST('1150-01-01' AS TIMESTAMP)", [["Bern"]]),
        (
            "SELECT COUNT(*), SUM(people), MIN(people), MAX(people) FROM BlobStorage WHERE country='CH'",
            [["3", "733000", "134000", "421000"]],
        ),
        ("SELECT AVG(people), MIN(city) FROM BlobStorage WHERE country = 'AT'", [["1095500", "Graz, an der Mur"]]),
        ("SELECT SUM(people) / COUNT(*) FROM BlobStorage", [["584800"]]),
        ("SELECT COUNT(*), SUM(people) FROM BlobStorage WHERE city = 'Oslo'", [["0", ""]]),
        ("SELECT COALESCE(NULLIF(country, 'CH'), 'none') FROM BlobStorage LIMIT 2", [["none"], ["AT"]]),
        ("SELECT city FROM BlobStorage LIMIT 0", []),
        ("SELECT city FROM BlobStorage WHERE people IS NULL OR 1 = 2", []),
        (
            "SELECT City FROM BlobStorage WHERE COUNTRY <> 'CH' -- capitals do not matter",
            [["Graz, an der Mur"], ["Wien"]],
        ),
    ],
)
def test_queries_of_delimited_text(query: str, rows: list[list[str]]) -> None:
    assert cities(query) == rows


def test_a_header_is_written_where_the_output_has_one() -> None:
    asked = ask("SELECT city AS town, people + 1 FROM BlobStorage LIMIT 1", CITIES, blob_format=WITH_HEADER)
    assert asked.data == b"town,_2\nBasel,178001\n"


def test_a_header_is_written_when_no_record_follows() -> None:
    assert ask("SELECT * FROM BlobStorage WHERE 1 = 2", CITIES, blob_format=WITH_HEADER).data.startswith(
        b"city,country,"
    )


def test_text_becomes_json_and_back() -> None:
    out = ask(
        "SELECT city, people FROM BlobStorage LIMIT 1",
        CITIES,
        blob_format=WITH_HEADER,
        output_format=DelimitedJsonDialect(),
    )
    assert out.data == b'{"city":"Basel","people":"178000"}\n'
    back = ask(
        "SELECT id, who, note FROM BlobStorage WHERE id = 2",
        ORDERS,
        blob_format=DelimitedJsonDialect(),
        output_format=NO_HEADER,
    )
    assert back.data == b'2,"{""name"":""Bob""}",\n'


def test_a_record_without_the_column_is_an_error_and_the_others_are_results() -> None:
    asked = ask("SELECT _2 FROM BlobStorage", b"a,1\nb\nc,3\n", output_format=NO_HEADER)
    assert asked.data == b"1\n3\n"
    assert asked.faults == [("InvalidColumnOrdinal", False)] * 1
    assert asked.errors[0].position == 4


def test_text_that_is_no_number_is_an_error_of_its_record() -> None:
    asked = ask("SELECT _1 FROM BlobStorage WHERE _2 > 1", b"a,x\nb,2\n")
    assert asked.faults == [("InvalidTypeConversion", False)]
    assert ask("SELECT _1 FROM BlobStorage WHERE _2 > 1", b"a,x\nb,2\n").data == b"b\n"


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("SELECT none FROM BlobStorage", ("InvalidColumnName", True)),
        ("SELECT _1.a FROM BlobStorage", ("InvalidColumnName", True)),
        ("SELECT _1 FROM BlobStorage[*].a", ("InvalidTable", True)),
        ("SELECT 1 / 0 FROM BlobStorage", ("DivideByZero", False)),
        ("SELECT 9223372036854775807 + 1 FROM BlobStorage", ("ArithmeticOverflow", False)),
        ("SELECT 1e999 % 7 FROM BlobStorage", ("ArithmeticOverflow", False)),
    ],
)
def test_faults_have_names(query: str, fault: tuple[str, bool]) -> None:
    assert ask(query, b"a,b\n").faults == [fault]


def test_data_that_end_within_quotes_are_fatal_after_the_results_before() -> None:
    asked = ask("SELECT * FROM BlobStorage", b'a\n"b\n')
    assert asked.data == b"a\n"
    assert asked.faults == [("ParseError", True)]


def test_an_empty_blob_has_no_results() -> None:
    asked = ask("SELECT city FROM BlobStorage", b"", blob_format=WITH_HEADER)
    assert asked.data == b""
    assert asked.faults == []


def test_bytes_that_are_not_utf_8_come_back() -> None:
    assert ask("SELECT _2, _1 FROM BlobStorage", b"\xff\xfe,b\n").data == b"b,\xff\xfe\n"


def test_progress_reaches_the_end_of_the_blob() -> None:
    asked = ask("SELECT _1 FROM BlobStorage", CITIES, piece_bytes=7)
    asked.reader.readall()
    assert len(asked.reader) == len(CITIES)
    assert asked.reader._bytes_processed == len(CITIES)


FIELDS = st.lists(st.lists(st.text("ab,;\"'\n\r\\ é", max_size=6), min_size=1, max_size=4), max_size=8)


@given(FIELDS, st.integers(min_value=1, max_value=30))
def test_fields_come_back_from_pieces_of_any_length(rows: list[list[str]], piece_bytes: int) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    data = ask("SELECT * FROM BlobStorage", written.getvalue().encode(), piece_bytes=piece_bytes).data
    found = list(csv.reader(io.StringIO(data.decode(), newline="")))
    # A record of one empty field is an empty line, which is no record to Python's reader.
    assert found == [row if row != [""] else [] for row in rows]


@given(FIELDS, st.integers(min_value=1, max_value=30))
def test_other_signs_come_back_too(rows: list[list[str]], piece_bytes: int) -> None:
    dialect = DelimitedTextDialect(delimiter=";", quotechar="'", lineterminator="\r\n", escapechar="\\")
    plain = DelimitedTextDialect(delimiter=",", quotechar='"', lineterminator="\n", escapechar="")
    kept = [row for row in rows if row != [""]]
    written = io.StringIO()
    csv.writer(written, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(kept)
    query = "SELECT * FROM BlobStorage"
    middle = ask(query, written.getvalue().encode(), blob_format=plain, output_format=dialect).data
    data = ask(query, middle, blob_format=dialect, output_format=plain, piece_bytes=piece_bytes).data
    assert list(csv.reader(io.StringIO(data.decode(), newline=""))) == kept


@pytest.mark.parametrize("blob", [b"x" * 5_000_000, b'"' + b"x\n" * 2_500_000, b"," * 20_000, b"," * 20_000 + b"\n"])
def test_a_record_beyond_the_limit_is_fatal(blob: bytes) -> None:
    assert ask("SELECT * FROM BlobStorage", blob).faults == [("RecordTooLarge", True)]


def test_the_rest_of_the_blob_is_not_needed_after_the_last_result() -> None:
    request = read_query_request(request_body("SELECT _1 FROM BlobStorage LIMIT 2"))
    answer = QueryAnswer(request, blob_bytes=1_000_000, sync=SYNC)
    answer.feed(b"a\n")
    assert not answer.is_finished
    answer.feed(b"b\nc\n")
    assert answer.is_finished


def test_results_come_before_the_end_of_a_large_blob() -> None:
    request = read_query_request(request_body("SELECT * FROM BlobStorage"))
    answer = QueryAnswer(request, blob_bytes=10**9, sync=SYNC)
    sent = [answer.feed(b"0123456,89\n" * 6000) for _ in range(40)]
    assert len(list(filter(None, sent))) == 2
    assert max(map(len, sent)) < 1_200_000


# --- JSON -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT id, who.name FROM BlobStorage WHERE paid", [{"id": 1, "name": "Ada"}, {"id": 3, "name": "Cy"}]),
        (
            "SELECT items[0].sku AS first, note FROM BlobStorage[*]",
            [{"first": "a"}, {"note": None}, {"first": "a", "note": "x"}],
        ),
        ("SELECT BlobStorage[*].who.name FROM BlobStorage[*] WHERE id=2", [{"name": "Bob"}]),
        ("SELECT sku, n FROM BlobStorage[*].items[*] WHERE n > 1", [{"sku": "a", "n": 2}, {"sku": "a", "n": 5}]),
        ("SELECT _1.name FROM BlobStorage[*].who LIMIT 1", [{"name": "Ada"}]),
        ("SELECT * FROM BlobStorage[*].items[0] s WHERE s.n = 5", [{"sku": "a", "n": 5}]),
        ("SELECT SUM(n) AS total, COUNT(*) AS lines FROM BlobStorage.items[*]", [{"total": 8, "lines": 3}]),
        ("SELECT id FROM BlobStorage WHERE note IS NULL AND NOT paid", [{"id": 2}]),
        ("SELECT id FROM BlobStorage WHERE note = 'x' OR id = 1", [{"id": 1}, {"id": 3}]),
        ("SELECT id + 0.5, CAST(id AS STRING) s FROM BlobStorage LIMIT 1", [{"_1": 1.5, "s": "1"}]),
    ],
)
def test_queries_of_json(query: str, rows: list[object]) -> None:
    assert orders(query) == rows


@given(
    st.lists(
        st.dictionaries(st.text('ab{}[]"\\', max_size=4), st.text('ab{}[]"\\,\n', max_size=6), max_size=3), max_size=5
    ),
    st.integers(min_value=1, max_value=30),
    st.sampled_from(["", "\n", " \r\n ", ";"]),
)
def test_records_come_back_from_pieces_of_any_length(
    records: list[dict[str, str]], piece_bytes: int, between: str
) -> None:
    blob = between.join(map(json.dumps, records)).encode()
    dialects = {
        "blob_format": DelimitedJsonDialect(delimiter=";"),
        "output_format": DelimitedJsonDialect(delimiter="\n"),
    }
    data = ask("SELECT * FROM BlobStorage", blob, piece_bytes=piece_bytes, **dialects).data
    assert [json.loads(line) for line in data.decode().splitlines()] == records


@pytest.mark.parametrize(
    "blob", [b"{name: 1}", b'{"a":1} x', b'{"a":1', b"1", b'{"a":}', b"]", b"[" * 5000 + b"]" * 5000]
)
def test_text_that_is_no_json_is_one_fatal_error(blob: bytes) -> None:
    assert ask("SELECT * FROM BlobStorage", blob, blob_format=DelimitedJsonDialect()).faults == [("ParseError", True)]


def test_a_json_record_beyond_the_limit_is_fatal() -> None:
    blob = b'{"a":"' + b"x" * 5_000_000
    asked = ask("SELECT * FROM BlobStorage", blob, blob_format=DelimitedJsonDialect())
    assert asked.faults == [("RecordTooLarge", True)]


def test_the_elements_of_a_list_are_records() -> None:
    data = ask("SELECT a FROM BlobStorage", b'[{"a":1},{"a":2}]', blob_format=DelimitedJsonDialect()).data
    assert data == b'{"a":1}\n{"a":2}\n'
