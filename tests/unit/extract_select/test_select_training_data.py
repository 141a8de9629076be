from __future__ import annotations

import random

import pytest

from tools.ranker_augment import (
    Row,
    made_up_address,
    made_up_name,
    name_without_code,
    noisy,
    tightened,
    with_block,
)
from tools.ranker_data import document_of, receipt_examples, receipt_specs, variant
from tools.ranker_forms import made_up_form
from tools.ranker_totals import closing


def bill() -> tuple[list[Row], dict[str, str]]:
    texts = [
        "BLUE HERON SUPPLIES LTD",
        "27 Harbour Road,",
        "Ashford, Kent TN23 1AB",
        "Tel: 01233 555 014",
        "Date: 14/03/2021",
        "Garden hose 40.00",
        "Brass tap 10.00",
        "Total 50.00",
        "Cash 60.00",
        "Change 10.00",
    ]
    rows = [Row(20, 30.0 * i, 20 + 10 * len(t), 30.0 * i + 20, t) for i, t in enumerate(texts)]
    fields = {
        "company": "BLUE HERON SUPPLIES LTD",
        "date": "14/03/2021",
        "address": "27 Harbour Road, Ashford, Kent TN23 1AB",
        "total": "50.00",
    }
    return rows, fields


@pytest.mark.parametrize("seed", range(8))
def test_a_variant_still_offers_every_answer(seed: int) -> None:
    rows, fields = bill()
    specs = receipt_specs()
    made, answers = variant(rows, fields, random.Random(seed), specs)
    examples = receipt_examples("v", made, answers, group=0, source="var", specs=specs)
    assert {e.field for e in examples} == set(fields)
    assert sum(bool(e.is_gold.any()) for e in examples) >= 3  # noise may spoil one


def test_the_same_seed_makes_the_same_variant() -> None:
    rows, fields = bill()
    specs = receipt_specs()
    first = variant(rows, fields, random.Random(3), specs)
    assert first == variant(rows, fields, random.Random(3), specs)


@pytest.mark.parametrize("seed", range(20))
def test_a_made_up_closing_adds_up(seed: int) -> None:
    made = closing(4250, random.Random(seed))
    printed = [cents for _, cents, _ in made.rows if cents is not None]
    assert made.answer_cents in printed
    assert abs(made.answer_cents - 4250) <= 2


def test_a_block_is_replaced_and_the_rest_moves() -> None:
    rows, _ = bill()
    made = with_block(rows, [1, 2], ["9 Mill Lane", "Second line", "Third line"])
    texts = [row.text for row in sorted(made, key=lambda r: r.y0)]
    assert texts[1:4] == ["9 Mill Lane", "Second line", "Third line"]
    assert texts[4] == "Tel: 01233 555 014"
    telephone = next(r for r in made if r.text.startswith("Tel"))
    assert telephone.y0 > rows[3].y0


def test_tightening_keeps_order_and_text() -> None:
    rows, _ = bill()
    made = tightened(rows, random.Random(1))
    assert [r.text for r in made] == [r.text for r in rows]
    assert [r.y0 for r in made] == sorted(r.y0 for r in made)


def test_noise_keeps_most_of_the_text() -> None:
    rows, _ = bill()
    made = noisy(rows, random.Random(5))
    assert len(made) == len(rows)
    assert all(0 < r.score <= 1 for r in made)


def test_made_up_names_and_addresses_are_plausible() -> None:
    rng = random.Random(0)
    for _ in range(50):
        lines = made_up_name(rng)
        assert name_without_code(lines)
        assert not any(c.isdigit() for c in name_without_code(lines))
        assert 1 <= len(made_up_address(rng)) <= 5


def test_a_made_up_form_shows_every_label_and_value() -> None:
    for seed in range(20):
        rows, entries = made_up_form(random.Random(seed))
        assert len(rows) > len(entries) >= 5


def test_document_numbers_its_lines() -> None:
    rows, _ = bill()
    assert [line.index for line in document_of("d", rows).lines] == list(range(len(rows)))
