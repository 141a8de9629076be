"""Training rows for the ranker: documents with answers, as candidates with features.

Reads the folder layout of the evaluation data: `receipts_text.jsonl` (reference lines and fields),
`documents.jsonl` (forms with key/value pairs), and recognised lines as JSON lines
`{"id", "lines": [[x0,y0,...,x3,y3,text,score], ...]}`.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rapidfuzz import fuzz

from edge_runtime.extract.candidates import Candidate
from edge_runtime.extract.document_facts import DocumentFacts
from edge_runtime.extract.labels import FieldRole, terms_of
from edge_runtime.extract.ranking import make_candidates
from edge_runtime.extract.schema import FieldKind, FieldSpec
from edge_runtime.extract.schema_loading import load_schema
from edge_runtime.extract.vocabulary import cue_key, legal_form_pattern
from edge_runtime.values import Box, Document, Line, Page, PageInfo, Quad
from tools import ranker_augment as augment
from tools.ranker_augment import Row
from tools.ranker_forms import made_up_form
from tools.ranker_totals import with_closing
from tools.score_fields import alphanumerics, normalised_equal, parse_amount

NEAR = 85.0
UNREADABLE = "<unk>"
MAX_OTHERS = 60
RECEIPT_FIELDS = ("company", "date", "address", "total")


@dataclass
class Example:
    """One field of one document.

    `is_gold` marks candidates to be preferred (the best available when none is exact),
    `is_right` those that count as correct. `group` is what must not be in two folds.
    """

    id: str
    group: int
    source: str
    role: FieldRole
    field: str
    names: tuple[str, ...]
    values: np.ndarray
    candidates: list[Candidate]
    is_gold: np.ndarray
    is_right: np.ndarray
    is_present: bool
    spec: FieldSpec
    document: Document


def document_of(name: str, rows: Sequence[Row]) -> Document:
    lines = []
    for number, row in enumerate(rows):
        box = Box(row.x0, row.y0, row.x1, row.y1)
        lines.append(Line(0, number, row.text, row.score, Quad.from_box(box), box))
    width = int(max((r.x1 for r in rows), default=1))
    height = int(max((r.y1 for r in rows), default=1))
    return Document(name, (Page(PageInfo(0, width, height), tuple(lines)),))


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def recognised_rows(lines: Iterable[Sequence[Any]]) -> list[Row]:
    rows = []
    for line in lines:
        xs, ys = [float(v) for v in line[0:8:2]], [float(v) for v in line[1:8:2]]
        rows.append(Row(min(xs), min(ys), max(xs), max(ys), str(line[8]), float(line[9])))
    return rows


def reference_rows(lines: Iterable[Sequence[Any]]) -> list[Row]:
    return [Row(float(a), float(b), float(c), float(d), str(t)) for a, b, c, d, t in lines]


def receipt_specs() -> dict[str, FieldSpec]:
    return {spec.path: spec for spec in load_schema("receipt").fields}


def marks(
    name: str, candidates: Sequence[Candidate], reference: str
) -> tuple[np.ndarray, np.ndarray]:
    """Which candidates are to be preferred, and which are right."""
    right = np.array(
        [normalised_equal(name, c.value, c.raw, reference) for c in candidates], dtype=bool
    )
    if right.any() or name in {"date", "total"} or not candidates:
        return right, right
    wanted = alphanumerics(reference)
    near = np.array([fuzz.ratio(alphanumerics(str(c.value)), wanted) for c in candidates])
    if near.max() >= NEAR:
        return near >= near.max() - 1e-9, right
    return right, right


def rows_of_answer(
    facts: DocumentFacts, spec: FieldSpec, reference: str
) -> tuple[list[int], list[Candidate]]:
    """Numbers of the lines that show the answer, and the candidates that are it."""
    candidates, _ = make_candidates(facts, spec)
    gold, _ = marks(spec.path, candidates, reference)
    chosen = [c for c, g in zip(candidates, gold, strict=True) if g]
    if not chosen:
        return [], []
    best = min(chosen, key=lambda c: sum(len(line.text) for line in c.lines))
    return [line.index for line in best.lines], chosen


def variant(
    rows: Sequence[Row],
    fields: Mapping[str, Any],
    rng: random.Random,
    specs: Mapping[str, FieldSpec],
) -> tuple[list[Row], dict[str, Any]]:
    """A document like `rows` with other names, another layout and recognition noise."""
    answers = dict(fields)
    current = list(rows)
    for name in ("address", "company"):
        if answers.get(name) and rng.random() < 0.65:
            current = _renamed(current, answers, name, rng, specs)
    if answers.get("company") and rng.random() < 0.4:
        taken, _ = _answer_rows(current, answers, "company", specs)
        if taken:
            has_form = bool(legal_form_pattern().search(cue_key(str(answers["company"]))))
            current = augment.with_header(current, taken, rng, has_form=has_form)
    amount = parse_amount(str(answers.get("total") or ""))
    if amount is not None and rng.random() < 0.6:
        facts = DocumentFacts(document_of("variant", current))
        closed = with_closing(current, float(amount), rng, facts)
        if closed is not None:
            current, answers["total"] = closed[0], f"{closed[1]:.2f}"
    kept = {
        i for name in answers if name in specs for i in _gold_rows(current, answers, name, specs)
    }
    current = augment.without_some(current, sorted(kept), rng, rng.choice((0.0, 0.1, 0.25)))
    if rng.random() < 0.5:
        current = augment.tightened(current, rng)
    return augment.noisy(current, rng), answers


def _answer_rows(
    rows: Sequence[Row], answers: Mapping[str, Any], name: str, specs: Mapping[str, FieldSpec]
) -> tuple[list[int], list[Candidate]]:
    facts = DocumentFacts(document_of("variant", rows))
    return rows_of_answer(facts, specs[name], str(answers[name]))


def _gold_rows(
    rows: Sequence[Row], answers: Mapping[str, Any], name: str, specs: Mapping[str, FieldSpec]
) -> set[int]:
    if not answers.get(name):
        return set()
    _, chosen = _answer_rows(rows, answers, name, specs)
    return {line.index for candidate in chosen for line in candidate.lines}


def _renamed(
    rows: list[Row],
    answers: dict[str, Any],
    name: str,
    rng: random.Random,
    specs: Mapping[str, FieldSpec],
) -> list[Row]:
    """`rows` with a made-up name or address in place of the real one; `answers` follows."""
    taken, _ = _answer_rows(rows, answers, name, specs)
    printed = "".join(rows[i].text for i in taken)
    if not taken or len(alphanumerics(printed)) > len(alphanumerics(str(answers[name]))) + 14:
        return rows  # the lines say more than the answer
    if name == "company":
        lines = augment.made_up_name(rng)
        answers[name] = augment.name_without_code(lines)
    else:
        lines = augment.made_up_address(rng)
        answers[name] = " ".join(lines)
    return augment.with_block(rows, taken, lines)


def receipt_examples(
    name: str,
    rows: Sequence[Row],
    fields: Mapping[str, Any],
    *,
    group: int,
    source: str,
    specs: Mapping[str, FieldSpec],
    rng: random.Random | None = None,
) -> list[Example]:
    """One example per field; with `rng` only some of the wrong candidates are kept."""
    facts = DocumentFacts(document_of(name, rows))
    made: list[Example] = []
    for field in RECEIPT_FIELDS:
        reference = fields.get(field)
        spec = specs[field]
        candidates, table = make_candidates(facts, spec)
        gold, right = marks(field, candidates, str(reference or ""))
        values = table.values
        if rng is not None and len(candidates) > MAX_OTHERS:
            kept = _thinned(candidates, gold, rng)
            candidates = [candidates[i] for i in kept]
            values, gold, right = values[kept], gold[kept], right[kept]
        made.append(
            Example(
                id=name,
                group=group,
                source=source,
                role=terms_of(spec).role,
                field=field,
                names=table.names,
                values=values,
                candidates=candidates,
                is_gold=gold,
                is_right=right,
                is_present=bool(reference),
                spec=spec,
                document=facts.document,
            )
        )
    return made


def _thinned(candidates: Sequence[Candidate], gold: np.ndarray, rng: random.Random) -> list[int]:
    """Gold ones, those that share a line with one, and a random part of the others."""
    near = {p.run.index for c, g in zip(candidates, gold, strict=True) if g for p in c.pieces}
    close = [i for i, c in enumerate(candidates) if any(p.run.index in near for p in c.pieces)]
    taken = set(close)
    others = [i for i in range(len(candidates)) if i not in taken]
    rng.shuffle(others)
    return sorted([*close, *others[:MAX_OTHERS]])


def form_examples(
    name: str,
    rows: Sequence[Row],
    pairs: Iterable[Mapping[str, Any]],
    *,
    group: int,
    source: str = "form",
) -> list[Example]:
    """One example per labelled value of a form, asked for by its printed label."""
    facts = DocumentFacts(document_of(name, rows))
    made: list[Example] = []
    known = list(pairs)
    times = Counter(str(pair["key"]).strip(" :").casefold() for pair in known)
    for number, pair in enumerate(known):
        key = str(pair["key"]).strip(" :")
        value = str(pair["value"])
        if times[key.casefold()] > 1 or UNREADABLE in value:
            continue  # a label that stands twice has no one answer
        if len(alphanumerics(key)) < 2 or not alphanumerics(value) or len(key.split()) > 6:
            continue
        spec = FieldSpec(f"pair{number}", key, FieldKind.STRING, labels=(key,))
        candidates, table = make_candidates(facts, spec)
        if terms_of(spec).role in {FieldRole.ORGANISATION, FieldRole.ADDRESS}:
            continue
        box = Box(*(float(v) for v in pair["value_box"]))
        wanted = alphanumerics(value)
        near = np.array(
            [
                fuzz.ratio(alphanumerics(str(c.value)), wanted) if _meets(c, box) else 0.0
                for c in candidates
            ]
        )
        gold = (near >= max(NEAR, float(near.max()) - 1e-9)) if len(near) else near > 0
        made.append(
            Example(
                id=f"{name}#{number}",
                group=group,
                source=source,
                role=terms_of(spec).role,
                field=key,
                names=table.names,
                values=table.values,
                candidates=candidates,
                is_gold=gold,
                is_right=gold,
                is_present=True,
                spec=spec,
                document=facts.document,
            )
        )
    return made


def _meets(candidate: Candidate, box: Box) -> bool:
    return any(
        line.reading.intersection_area(box) > 0.2 * line.reading.width * line.reading.height
        or line.reading.intersection_area(box) > 0.4 * box.width * box.height
        for line in candidate.lines
    )


def labelled_amount_examples(
    name: str, rows: Sequence[Row], *, group: int, rng: random.Random, n_most: int = 4
) -> list[Example]:
    """Amounts asked for by the words printed before them in their row."""
    facts = DocumentFacts(document_of(name, rows))
    asked = [
        (number, placed)
        for number, placed in enumerate(facts.amounts)
        if placed.match.n_decimals == 2
        and placed.n_in_row == 1
        and 3 <= sum(c.isalpha() for c in placed.left_text) <= 30
        and not any(c.isdigit() for c in placed.left_text)
    ]
    rng.shuffle(asked)
    made: list[Example] = []
    for _, placed in asked[:n_most]:
        label = " ".join("".join(c if c.isalpha() else " " for c in placed.left_text).split())
        words = label.split()
        if len(words) > 2 and rng.random() < 0.3:
            words.pop(rng.randrange(len(words)))
        label = " ".join(words).lower()
        spec = FieldSpec("value", "value", FieldKind.AMOUNT, labels=(label,))
        candidates, table = make_candidates(facts, spec)
        gold = np.array([c.placed is placed for c in candidates], dtype=bool)
        right = np.array([c.value == placed.match.value for c in candidates], dtype=bool)
        made.append(
            Example(
                id=name,
                group=group,
                source="row",
                role=FieldRole.AMOUNT,
                field=label,
                names=table.names,
                values=table.values,
                candidates=candidates,
                is_gold=gold,
                is_right=right,
                is_present=True,
                spec=spec,
                document=facts.document,
            )
        )
    return made


def dated_examples(
    name: str,
    rows: Sequence[Row],
    fields: Mapping[str, Any],
    *,
    group: int,
    rng: random.Random,
    specs: Mapping[str, FieldSpec],
) -> list[Example]:
    """The day of issue, and another labelled day, in a document with several dates."""
    reference = fields.get("date")
    facts = DocumentFacts(document_of(name, rows))
    if not reference or not facts.dates:
        return []
    current = list(rows)
    if rng.random() < 0.4:
        current = _relabelled(current, facts, str(reference), rng)
    current, told = augment.dated_rows(current, rng)
    if rng.random() < 0.6:
        current = augment.noisy(current, rng)
    facts = DocumentFacts(document_of(name, current))
    kind, label, iso = told[0]
    words = {"due": "due_date", "birth": "date_of_birth"}.get(kind, f"{kind}_date")
    other = FieldSpec(words, words, FieldKind.DATE, labels=(label.lower(),))
    made: list[Example] = []
    for spec, answer in ((specs["date"], str(reference)), (other, iso)):
        candidates, table = make_candidates(facts, spec)
        gold, right = marks("date", candidates, answer)
        made.append(
            Example(
                id=name,
                group=group,
                source="var",
                role=FieldRole.DATE,
                field=spec.name,
                names=table.names,
                values=table.values,
                candidates=candidates,
                is_gold=gold,
                is_right=right,
                is_present=True,
                spec=spec,
                document=facts.document,
            )
        )
    return made


def _relabelled(
    rows: Sequence[Row], facts: DocumentFacts, reference: str, rng: random.Random
) -> list[Row]:
    """The date's own box replaced by the date with another label, or with none."""
    current = list(rows)
    for placed in facts.dates:
        if len(placed.lines) == 1 and normalised_equal("date", placed.match.iso, None, reference):
            at = placed.lines[0].index
            label = augment.issue_label(rng) if rng.random() < 0.7 else ""
            text = f"{label}: {placed.match.text}" if label else placed.match.text
            current[at] = replace(current[at], text=text)
    return current


def made_up_form_examples(number: int, *, group: int) -> list[Example]:
    """Fields of a made-up form, some asked for by other words than the printed ones."""
    rng = random.Random(f"form-{number}")
    rows, entries = made_up_form(rng)
    facts = DocumentFacts(document_of(f"form-{number}", rows))
    made: list[Example] = []
    for entry in entries:
        words = entry.label.split()
        asked = (
            words[rng.randrange(len(words))]
            if len(words) > 1 and rng.random() < 0.2
            else entry.label
        )
        spec = FieldSpec("value", "value", FieldKind.STRING, labels=(asked.lower(),))
        candidates, table = make_candidates(facts, spec)
        wanted = alphanumerics(entry.value)
        near = np.array([fuzz.ratio(alphanumerics(str(c.value)), wanted) for c in candidates])
        gold = (near >= max(NEAR, float(near.max()) - 1e-9)) if len(near) else near > 0
        made.append(
            Example(
                id=f"form-{number}",
                group=group,
                source="made",
                role=FieldRole.STRING,
                field=entry.label,
                names=table.names,
                values=table.values,
                candidates=candidates,
                is_gold=gold,
                is_right=gold,
                is_present=True,
                spec=spec,
                document=facts.document,
            )
        )
    return made
