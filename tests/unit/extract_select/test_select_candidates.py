from __future__ import annotations

from edge_runtime.extract.block_candidates import address_candidates, name_candidates
from edge_runtime.extract.candidates import Candidate, amount_candidates, date_candidates, part
from edge_runtime.extract.document_facts import DocumentFacts
from edge_runtime.extract.labelled_candidates import labelled_candidates
from edge_runtime.extract.labels import terms_of
from edge_runtime.extract.schema import FieldKind, FieldSpec
from edge_runtime.values import Box, Document, Line, Page, PageInfo, Quad, Word
from tests.unit.extract_select.made_up_sheets import BILL, BILL_GAPS, facts, page


def texts(candidates: list[Candidate]) -> set[str]:
    return {candidate.raw for candidate in candidates}


def test_a_name_is_offered_with_and_without_its_registration_number() -> None:
    found = texts(name_candidates(facts([[(0, "CITY MART LTD (519537-X)")]]), FieldKind.STRING))
    assert {"CITY MART LTD (519537-X)", "CITY MART LTD"} <= found


def test_a_name_over_two_lines_is_joined() -> None:
    found = texts(
        name_candidates(
            facts([[(40, "HOLLOW OAK HOLDINGS")], [(40, "SDN. BHD.")]]), FieldKind.STRING
        )
    )
    assert "HOLLOW OAK HOLDINGS SDN. BHD." in found


def test_a_name_split_into_boxes_is_offered_whole_and_in_parts() -> None:
    found = texts(name_candidates(facts([[(0, "FY"), (22, "EAGLE LTD")]]), FieldKind.STRING))
    assert {"FY EAGLE LTD", "EAGLE LTD"} <= found


def test_an_address_block_is_joined_and_cut_before_the_telephone() -> None:
    rows = [[(0, "Address: 27 Harbour Road,")], [(0, "TN23 1AB Ashford Tel: 01233 555014")]]
    found = texts(address_candidates(facts(rows), FieldKind.TEXT))
    assert "27 Harbour Road, TN23 1AB Ashford" in found


def test_lines_without_any_sign_of_an_address_start_none() -> None:
    assert address_candidates(facts([[(0, "Thank")], [(0, "you")]]), FieldKind.TEXT) == []


def test_dates_and_amounts_carry_the_words_before_them() -> None:
    sheet = facts(BILL, gaps=BILL_GAPS)
    (date,) = date_candidates(sheet)
    assert date.value == "2021-03-14"
    amounts = {c.value: c for c in amount_candidates(sheet, FieldKind.AMOUNT)}
    assert {40.0, 10.0, 50.0, 60.0, 100.0} <= set(amounts)
    placed = amounts[60.0].placed
    assert placed is not None
    assert placed.left_text == "TOTAL"


def test_parts_of_a_date_are_no_amounts() -> None:
    amounts = amount_candidates(facts([[(0, "Date 14.03.2021  12.50")]]), FieldKind.AMOUNT)
    assert [c.value for c in amounts] == [12.5]


def test_whole_numbers_only_for_an_integer() -> None:
    found = amount_candidates(facts([[(0, "Qty 3"), (200, "7.50")]]), FieldKind.INTEGER)
    assert [c.value for c in found] == [3]


def test_a_labelled_value_is_offered_from_every_side() -> None:
    spec = FieldSpec("po", "po", FieldKind.STRING, labels=("order no",))
    for rows in (
        [[(0, "Order No: A-17")]],
        [[(0, "Order No"), (200, "A-17")]],
        [[(0, "Order No")], [(0, "A-17")]],
    ):
        assert "A-17" in texts(labelled_candidates(facts(rows), spec, terms_of(spec)))


def test_a_mail_address_needs_no_label() -> None:
    spec = FieldSpec("email", "email", FieldKind.EMAIL)
    rows = [[(0, "Write to us: desk@heron.example")]]
    found = labelled_candidates(facts(rows), spec, terms_of(spec))
    assert "desk@heron.example" in {c.value for c in found}


def test_evidence_is_as_narrow_as_the_word_boxes() -> None:
    words = tuple(
        Word(t, Quad.from_box(Box(x, 0, x + 50, 20)), 0.9)
        for t, x in (("Date", 0), ("2021-03-14", 60))
    )
    box = Box(0, 0, 110, 20)
    line = Line(0, 0, "Date 2021-03-14", 0.9, Quad.from_box(box), box, words=words)
    document = Document("d", (Page(PageInfo(0, 200, 50), (line,)),))
    (date,) = date_candidates(DocumentFacts(document))
    (evidence,) = date.evidence()
    assert evidence.quad.box == Box(60, 0, 110, 20)
    assert evidence.text == "2021-03-14"


def test_evidence_of_a_block_names_each_of_its_lines() -> None:
    document = page([[(0, "27 Harbour Road,")], [(0, "Ashford TN23 1AB")]])
    whole = max(
        address_candidates(DocumentFacts(document), FieldKind.TEXT), key=lambda c: len(c.pieces)
    )
    assert [e.line for e in whole.evidence()] == [0, 1]


def test_a_part_loses_separators_but_keeps_its_place() -> None:
    run = facts([[(0, "Ref:  A-17 ;")]]).layout.runs[0]
    piece = part(run, 4, len(run.text), "label")
    assert piece.text == "A-17"
    assert run.text[piece.start : piece.end] == "A-17"
