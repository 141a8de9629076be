from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from edge_runtime.errors import ConfigError
from edge_runtime.extract.calibration import (
    Calibrator,
    expected_calibration_error,
    logit,
    sigmoid,
)
from edge_runtime.extract.candidates import amount_candidates
from edge_runtime.extract.labels import FieldRole
from edge_runtime.extract.ranking import (
    Ranking,
    load_ranker,
    make_candidates,
    rank,
    scores_of,
    signals_of,
)
from edge_runtime.extract.schema import FieldKind, FieldSpec
from edge_runtime.resources import find_data
from tests.unit.extract_select.made_up_sheets import BILL, BILL_GAPS, facts


def test_occurrences_of_one_value_add_up() -> None:
    candidates = amount_candidates(
        facts([[(0, "A 5.00")], [(0, "B 5.00")], [(0, "C 7.00")]]), FieldKind.AMOUNT
    )
    ranking = rank(candidates, np.array([1.0, 1.0, 1.2]))
    assert ranking.choices[0].candidate.value == 5.0
    assert sum(choice.probability for choice in ranking.choices) == pytest.approx(1.0)
    assert 0 < ranking.margin < 1


def test_nothing_to_rank_is_an_empty_ranking() -> None:
    ranking = rank([], np.zeros(0))
    assert ranking == Ranking((), 0)
    assert ranking.margin == 0.0
    assert signals_of(ranking) == {}


def test_shipped_weights_cover_every_role() -> None:
    assert set(load_ranker().roles) == set(FieldRole)


def test_shipped_weights_are_small_and_name_known_features() -> None:
    path = find_data("pipelines", "ranker.json")
    assert path is not None
    assert path.stat().st_size < 300_000
    sheet = facts(BILL, gaps=BILL_GAPS)
    for name, kind in (
        ("date", "date"),
        ("total", "amount"),
        ("company", "string"),
        ("note", "string"),
    ):
        spec = FieldSpec(name, name, FieldKind(kind), labels=(name,))
        _, table = make_candidates(sheet, spec)
        role = {"date": "date", "total": "total", "company": "organisation", "note": "string"}[name]
        unknown = set(load_ranker().roles[FieldRole(role)].weights) - set(table.names)
        assert not unknown


def test_features_are_finite_and_one_row_a_candidate() -> None:
    sheet = facts(BILL, gaps=BILL_GAPS)
    for kind in FieldKind:
        spec = FieldSpec("value", "value", kind, labels=("invoice no", "total"))
        candidates, table = make_candidates(sheet, spec)
        assert table.values.shape == (len(candidates), len(table.names))
        assert np.isfinite(table.values).all()


def test_unknown_columns_count_nothing() -> None:
    sheet = facts(BILL, gaps=BILL_GAPS)
    _, table = make_candidates(sheet, FieldSpec("date", "date", FieldKind.DATE))
    assert (scores_of(table, {"no such feature": 9.0}) == 0).all()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 99}', '{"format": 1, "roles": {"x": 1}}']
)
def test_a_file_that_holds_no_weights_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "weights.json"
    path.write_text(text)
    with pytest.raises(ConfigError):
        load_ranker(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        load_ranker(tmp_path / "nothing.json")


def test_weights_from_another_file(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    entry = {
        "weights": {"y": 1},
        "calibration": {"bias": 0.5, "logit": 1},
        "thresholds": {"ok": 0.8, "keep": 0.1},
    }
    path.write_text(json.dumps({"format": 1, "roles": {"date": entry}}))
    assert load_ranker(path).roles[FieldRole.DATE].ok_confidence == 0.8


def test_probability_is_bounded_and_follows_the_signals() -> None:
    calibrator = Calibrator(0.0, {"margin": 4.0}, ceiling=0.97)
    assert calibrator.probability({"margin": 100.0}) == 0.97
    assert calibrator.probability({"margin": -1000.0}) == pytest.approx(0.0)
    assert calibrator.probability({}) == pytest.approx(0.5)


def test_logit_undoes_sigmoid_and_stays_finite() -> None:
    assert logit(sigmoid(1.5)) == pytest.approx(1.5)
    assert np.isfinite([logit(0.0), logit(1.0)]).all()


def test_calibration_error_of_honest_and_of_boasting_confidences() -> None:
    honest = [(0.5, True), (0.5, False)]
    boasting = [(0.99, False), (0.99, False)]
    assert expected_calibration_error(honest) == pytest.approx(0.0)
    assert expected_calibration_error(boasting) == pytest.approx(0.99)
    assert expected_calibration_error([]) == 0.0
