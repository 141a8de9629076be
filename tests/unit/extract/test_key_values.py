from __future__ import annotations

import pytest
from drawn_pages import document_of

from edge_runtime.errors import SchemaError
from edge_runtime.extract.assembling import assemble
from edge_runtime.extract.key_values import LAYOUTS, find_pairs, layouts_of, pair_fields
from edge_runtime.extract.schema_loading import load_schema

FORM = """
APPLICATION FOR MEMBERSHIP

Name: Jo Miller              Date: 12/03/2018 10:15
Occupation:      clerk at the harbour office
                 and part-time gardener
Telephone No.:   03-5547 360      Email: jo@example.org
COLOUR      dark green
Project Code BD-77
Remarks: first visit                  Time 12:30
"""


def pairs(drawing: str, layouts: tuple[str, ...] = LAYOUTS) -> dict[str, str]:
    return {pair.key: pair.text for pair in find_pairs(document_of(drawing), layouts)}


def test_labels_find_their_values() -> None:
    found = pairs(FORM, ("inline", "beside"))
    assert found["Name"] == "Jo Miller"
    assert found["Date"] == "12/03/2018 10:15"
    assert found["Occupation"] == "clerk at the harbour office and part-time gardener"
    assert found["Telephone No."] == "03-5547 360"
    assert found["Email"] == "jo@example.org"
    assert found["COLOUR"] == "dark green"
    assert found["Project Code"] == "BD-77"
    assert found["Remarks"] == "first visit"


def test_a_heading_is_no_pair() -> None:
    assert not any("APPLICATION" in text for item in pairs(FORM).items() for text in item)


def test_several_pairs_in_one_line_are_parted() -> None:
    assert pairs("NAME: Jo Miller DATE: 12/03/2018 CITY: Westport") == {
        "NAME": "Jo Miller",
        "DATE": "12/03/2018",
        "CITY": "Westport",
    }


def test_values_below_their_label_are_found_when_asked_for() -> None:
    drawing = """
    Date of birth:      Place:
    12/03/1978          Westport 9
    """
    assert pairs(drawing)["Date of birth"] == "12/03/1978"
    assert "Date of birth" not in pairs(drawing, ("inline", "beside"))


def test_times_and_addresses_are_not_cut_at_their_colon() -> None:
    assert pairs("Opening 12:30 today") == {}
    assert pairs("https://example.org/a") == {}


def test_empty_rules_to_write_on_are_no_values() -> None:
    assert pairs("Signature: ________") == {}
    assert pairs("Name: __Jo Miller____") == {"Name": "Jo Miller"}


def test_fields_have_evidence_and_repeated_keys_are_numbered() -> None:
    schema = load_schema("auto")
    fields = pair_fields(document_of("Tel: 123456\nTel: 654321\nA/B side: x1"), schema)
    assert [field.path for field in fields] == ["Tel/0", "Tel/1", "A~1B side"]
    assert all(field.evidence and 0 < field.confidence <= 1 for field in fields)
    assert assemble(schema, fields) == {"Tel": ["123456", "654321"], "A/B side": "x1"}


def test_an_empty_document_has_no_pairs() -> None:
    assert pair_fields(document_of(""), load_schema("form")) == []


def test_layouts_come_from_the_schema() -> None:
    assert layouts_of(load_schema("auto")) == ("inline", "beside")
    with pytest.raises(SchemaError, match="x-layouts"):
        layouts_of(load_schema({"type": "object", "x-open": True, "x-layouts": ["above"]}))
