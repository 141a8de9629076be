"""Make `pipelines/ranker.json`: weights, calibration and thresholds for choosing field values.

    python tools/train_ranker.py --data DIR --ids FILE [--ids FILE] --lines FILE
        [--form-lines FILE --form-ids FILE] [--model GGUF]
        [--out pipelines/ranker.json] [--report report.json]

DIR holds `receipts_text.jsonl` (reference lines and fields) and `documents.jsonl`; `--lines` and
`--form-lines` are recognised lines of its images. Only documents named in `--ids` are read, so
documents kept aside for evaluation stay unseen. Everything is seeded: same input, same weights.

Candidates of a field compete in a softmax; the weights maximise the probability of the right
ones. Folds for calibration never split a company.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rapidfuzz import fuzz
from scipy.optimize import minimize

from edge_runtime.extract.calibration import Calibrator, expected_calibration_error
from edge_runtime.extract.labels import FieldRole
from edge_runtime.extract.ranking import Ranking, rank, signals_of
from tools import ranker_data as data
from tools import ranker_model
from tools.ranker_data import Example

L2 = 0.01
MAX_ITERATIONS = 120
N_FOLDS = 5
N_THREADS = 2
N_VARIANTS = 3
N_MADE_UP_FORMS = 120
SOURCE_WEIGHT = {"ocr": 2.0, "ref": 1.0, "var": 1.0, "form": 1.0, "made": 1.0, "row": 1.0}
SIGNALS = ("logit", "margin", "score", "ocr", "ocr_doubt", "letters", "n_lines", "repaired")
WANTED_WRONG_SHARE = 0.06
ABSENT_WEIGHT = 0.1
LEAST_OK, MOST_OK = 0.6, 0.95
MOST_KEEP = 0.15
RECEIPT_ROLES = (FieldRole.DATE, FieldRole.TOTAL, FieldRole.ORGANISATION, FieldRole.ADDRESS)
LABELLED_ROLES = (
    FieldRole.STRING,
    FieldRole.IDENTIFIER,
    FieldRole.PERSON,
    FieldRole.TEXT,
    FieldRole.CONTACT,
    FieldRole.CHOICE,
)
AMOUNT_FEATURES = re.compile(
    r"label|decimals|currency|(only|many|last)_in_row|times_|bare_row|negative|zero|repaired"
)
LEGAL_WORDS = re.compile(r"\b(sdn|bhd|berhad|s b|sb|ltd|enterprise|trading|co|company)\b")


@dataclass
class Picked:
    """What the ranker chose for an example it was not trained on."""

    example: Example
    ranking: Ranking
    right: bool
    signals: dict[str, float]


def company_groups(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Document id to company number; near-duplicate names and addresses count as one company."""
    ids = [row["id"] for row in rows]
    parent = {i: i for i in ids}

    def root(i: str) -> str:
        while parent[i] != i:
            i = parent[i]
        return i

    def core(text: str) -> str:
        bare = re.sub(r"[^a-z0-9 ]", "", text.lower().replace("/", " "))
        return " ".join(LEGAL_WORDS.sub(" ", bare).split()) or bare

    names = [core(str(row["fields"].get("company") or row["id"])) for row in rows]
    places = [data.alphanumerics(str(row["fields"].get("address") or "")) for row in rows]
    for a in range(len(ids)):
        for b in range(a):
            same_name = fuzz.ratio(names[a], names[b]) >= 85
            same_place = len(places[a]) > 25 and fuzz.ratio(places[a], places[b]) >= 92
            if same_name or same_place:
                parent[root(ids[a])] = root(ids[b])
    numbers = {key: n for n, key in enumerate(sorted({root(i) for i in ids}))}
    return {i: numbers[root(i)] for i in ids}


def fit(examples: Sequence[Example], columns: np.ndarray | None = None) -> dict[str, float]:
    """Weights by feature name; companies with many documents count less per document."""
    usable = [e for e in examples if e.is_gold.any() and not e.is_gold.all()]
    names = usable[0].names
    counts = Counter((e.group, e.source) for e in usable)
    share = np.array([SOURCE_WEIGHT[e.source] / counts[(e.group, e.source)] ** 0.5 for e in usable])
    share /= share.mean()
    x = np.concatenate([e.values for e in usable])
    segment = np.repeat(np.arange(len(usable)), [len(e.values) for e in usable])
    blocked = np.where(np.concatenate([e.is_gold for e in usable]), 0.0, -1e9)
    mean, deviation = x.mean(0), x.std(0)
    used = deviation > 1e-6
    if columns is not None:
        used &= columns
    scale = np.where(used, deviation, 1.0)
    z = ((x - mean) / scale * used).astype(np.float32)
    starts = np.r_[0, np.flatnonzero(np.diff(segment)) + 1]
    n = len(usable)

    def log_sum(s: np.ndarray) -> np.ndarray:
        top = np.maximum.reduceat(s, starts)
        return top + np.log(np.add.reduceat(np.exp(s - top[segment]), starts))

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        s = (z @ w.astype(np.float32)).astype(np.float64)
        every, gold = log_sum(s), log_sum(s + blocked)
        pull = np.exp(s - every[segment]) - np.exp(s + blocked - gold[segment])
        gradient = (z.T @ (pull * share[segment]).astype(np.float32)).astype(np.float64) / n
        return float((share * (every - gold)).sum() / n + L2 * (w @ w) / 2), gradient + L2 * w

    found = minimize(
        loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITERATIONS}
    )
    weights = found.x / scale * used
    return {k: round(float(v), 5) for k, v in zip(names, weights, strict=True) if abs(v) > 1e-5}


def pick(example: Example, weights: Mapping[str, float]) -> Picked:
    """The choice among an example's candidates."""
    column = np.array([weights.get(name, 0.0) for name in example.names])
    ranking = rank(example.candidates, example.values.astype(np.float64) @ column)
    right = False
    if ranking.choices:
        at = next(i for i, c in enumerate(example.candidates) if c is ranking.choices[0].candidate)
        right = bool(example.is_right[at])
    return Picked(example, ranking, right, signals_of(ranking))


def fold_of(examples: Iterable[Example]) -> dict[int, int]:
    """Company number to fold."""
    groups = sorted({e.group for e in examples})
    random.Random(7).shuffle(groups)
    return {g: i % N_FOLDS for i, g in enumerate(groups)}


def cross_validate(examples: Sequence[Example], columns: np.ndarray | None = None) -> list[Picked]:
    """Choices for every example by weights that never saw its company, absences included."""
    folds = fold_of(examples)
    picked: list[Picked] = []
    for fold in range(N_FOLDS):
        weights = fit([e for e in examples if folds[e.group] != fold], columns)
        for e in examples:
            if folds[e.group] != fold:
                continue
            if e.is_present:
                picked.append(pick(e, weights))
            if e.source != "ocr":
                picked.append(pick(without_answer(e), weights))
    return picked


def without_answer(example: Example) -> Example:
    """The same document as if the lines with the answer were not there."""
    gold = [c for c, g in zip(example.candidates, example.is_gold, strict=True) if g]
    runs = {p.run.index for c in gold for p in c.pieces}
    keys = {c.key for c in gold}
    kept = [
        i
        for i, c in enumerate(example.candidates)
        if c.key not in keys and not any(p.run.index in runs for p in c.pieces)
    ]
    return replace(
        example,
        values=example.values[kept],
        candidates=[example.candidates[i] for i in kept],
        is_gold=np.zeros(len(kept), dtype=bool),
        is_right=np.zeros(len(kept), dtype=bool),
        is_present=False,
    )


def calibrate(picked: Sequence[Picked]) -> Calibrator:
    """Logistic regression from signals to being right."""
    usable = [p for p in picked if p.signals]
    counts = Counter((p.example.group, p.example.source) for p in usable)
    share = np.array(
        [
            SOURCE_WEIGHT[p.example.source]
            / counts[(p.example.group, p.example.source)]
            * (1.0 if p.example.is_present else ABSENT_WEIGHT)
            for p in usable
        ]
    )
    x = np.array([[p.signals[s] for s in SIGNALS] for p in usable])
    y = np.array([p.right for p in usable], dtype=float)
    mean, deviation = x.mean(0), x.std(0) + 1e-9
    z = np.c_[np.ones(len(x)), (x - mean) / deviation]

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        s = z @ w
        value = (share * (np.logaddexp(0, s) - y * s)).sum() / share.sum()
        gradient = z.T @ (share * (1 / (1 + np.exp(-s)) - y)) / share.sum()
        return value + 0.005 * (w[1:] @ w[1:]), gradient + 0.01 * np.r_[0, w[1:]]

    w = minimize(loss, np.zeros(z.shape[1]), jac=True, method="L-BFGS-B").x
    weights = w[1:] / deviation
    bias = float(w[0] - (weights * mean).sum())
    named = {s: round(float(v), 5) for s, v in zip(SIGNALS, weights, strict=True)}
    return Calibrator(round(bias, 5), named)


def thresholds(picked: Sequence[Picked], calibrator: Calibrator) -> dict[str, float]:
    """Least confidence of `ok`, and the one below which a value counts as absent.

    Every company counts alike, so that the share of wrong ones is what an unseen company has.
    """
    counts = Counter((p.example.group, p.example.source) for p in picked)
    rows = [
        (
            calibrator.probability(p.signals),
            p.right,
            SOURCE_WEIGHT[p.example.source] / counts[(p.example.group, p.example.source)],
        )
        for p in picked
        if p.signals and p.example.is_present
    ]
    ok, wrong, seen = MOST_OK, 0.0, 0.0
    for confidence, right, weight in sorted(rows, reverse=True):
        seen += weight
        wrong += weight * (not right)
        if wrong <= WANTED_WRONG_SHARE * seen:
            ok = confidence
    right_ones = sorted(c for c, right, _ in rows if right)
    keep = right_ones[len(right_ones) // 100] if right_ones else MOST_KEEP
    return {
        "ok": round(min(max(ok, LEAST_OK), MOST_OK), 3),
        "keep": round(min(keep, MOST_KEEP), 3),
    }


def report_of(picked: Sequence[Picked], calibrator: Calibrator) -> dict[str, Any]:
    """Cross-validated accuracy per source, and how well confidences are calibrated."""
    by_source: dict[str, list[Picked]] = defaultdict(list)
    for p in picked:
        if p.example.is_present:
            by_source[p.example.source].append(p)
    return {
        source: {
            "n": len(rows),
            "accuracy": round(sum(p.right for p in rows) / len(rows), 4),
            "ece": round(
                expected_calibration_error(
                    [(calibrator.probability(p.signals), p.right) for p in rows]
                ),
                4,
            ),
        }
        for source, rows in by_source.items()
    }


def train_role(
    role: FieldRole,
    examples: Sequence[Example],
    columns: np.ndarray | None = None,
    model: Path | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entry of one role for the weights file, and its report."""
    picked = cross_validate(examples, columns)
    calibrator = calibrate(picked)
    limits = thresholds(picked, calibrator)
    report = report_of(picked, calibrator)
    print(role.value, json.dumps(report), limits, flush=True)
    entry = {
        "weights": fit(examples, columns),
        "calibration": {
            "bias": calibrator.bias,
            **calibrator.weights,
            "ceiling": calibrator.ceiling,
        },
        "thresholds": limits,
    }
    if model is not None:
        opinion, report["model"] = model_entry(role, picked, model)
        if opinion is not None:
            entry["model"] = opinion
    return entry, report


def model_entry(
    role: FieldRole, picked: Sequence[Picked], model: Path
) -> tuple[dict[str, float] | None, dict[str, Any]]:
    """Weights of the model's opinion for doubtful fields of recognised pages."""
    real = [p for p in picked if p.example.is_present and p.example.source in {"ocr", "form"}]
    questions = []
    for p in real:
        if len(p.ranking.choices) < 2 or p.ranking.margin >= ranker_model.ASK_BELOW_MARGIN:
            continue
        right = {
            id(c): bool(r) for c, r in zip(p.example.candidates, p.example.is_right, strict=True)
        }
        choices = ranker_model.leading(p.ranking.choices)
        questions.append(
            ranker_model.Question(
                group=p.example.group,
                spec=p.example.spec,
                document=p.example.document,
                choices=choices,
                is_right=np.array([right[id(c.candidate)] for c in choices], dtype=bool),
            )
        )
    if not questions:
        return None, {"n_fields": len(real), "n_asked": 0}
    questions.sort(key=lambda q: id(q.document))
    ranker_model.ask(questions, model, N_THREADS)
    return ranker_model.weigh(role, questions, len(real))


def read_ids(paths: Iterable[Path]) -> list[str]:
    return list(dict.fromkeys(i for p in paths for i in p.read_text(encoding="utf-8").split()))


def read_receipts(args: argparse.Namespace) -> list[Example]:
    """Examples of all receipts named in the id lists: reference lines, recognised, variants."""
    wanted = set(read_ids(args.ids))
    rows = [r for r in data.read_jsonl(args.data / "receipts_text.jsonl") if r["id"] in wanted]
    groups = company_groups(rows)
    recognised = {r["id"]: r["lines"] for r in data.read_jsonl(args.lines) if r["id"] in wanted}
    specs = data.receipt_specs()
    examples: list[Example] = []
    for row in rows:
        name, fields, group = row["id"], row["fields"], groups[row["id"]]
        reference = data.reference_rows(row["lines"])
        examples += data.receipt_examples(
            name, reference, fields, group=group, source="ref", specs=specs
        )
        if name in recognised:
            lines = data.recognised_rows(recognised[name])
            examples += data.receipt_examples(
                name, lines, fields, group=group, source="ocr", specs=specs
            )
        for number in range(N_VARIANTS):
            rng = random.Random(f"{name}-{number}")
            lines, answers = data.variant(reference, fields, rng, specs)
            examples += data.receipt_examples(
                name, lines, answers, group=group, source="var", specs=specs, rng=rng
            )
            examples += data.dated_examples(
                name, reference, fields, group=group, rng=rng, specs=specs
            )
        rng = random.Random(f"{name}-rows")
        examples += data.labelled_amount_examples(name, reference, group=group, rng=rng)
    return examples


def read_forms(args: argparse.Namespace) -> list[Example]:
    """Examples of labelled values on forms."""
    wanted = set(read_ids([args.form_ids]))
    lines = {r["id"]: r["lines"] for r in data.read_jsonl(args.form_lines) if r["id"] in wanted}
    examples: list[Example] = []
    for number, row in enumerate(data.read_jsonl(args.data / "documents.jsonl")):
        if row["set"] == "forms" and row["id"] in lines:
            rows = data.recognised_rows(lines[row["id"]])
            examples += data.form_examples(row["id"], rows, row["pairs"], group=number)
    for number in range(N_MADE_UP_FORMS):
        examples += data.made_up_form_examples(number, group=10**6 + number)
    return examples


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--ids", type=Path, action="append", required=True)
    parser.add_argument("--lines", type=Path, required=True)
    parser.add_argument("--form-ids", type=Path)
    parser.add_argument("--form-lines", type=Path)
    parser.add_argument("--model", type=Path, help="GGUF whose opinion is weighed in")
    parser.add_argument("--out", type=Path, default=Path("pipelines/ranker.json"))
    parser.add_argument("--report", type=Path)
    args = parser.parse_args()
    examples = read_receipts(args)
    roles: dict[str, Any] = {}
    reports: dict[str, Any] = {}
    for role in RECEIPT_ROLES:
        mine = [e for e in examples if e.role is role]
        roles[role.value], reports[role.value] = train_role(role, mine, model=args.model)
    rows = [e for e in examples if e.source == "row"]
    columns = np.array([bool(AMOUNT_FEATURES.match(name)) for name in rows[0].names])
    roles["amount"], reports["amount"] = train_role(FieldRole.AMOUNT, rows, columns)
    roles["number"] = {
        **roles["amount"],
        "weights": {k: v for k, v in roles["amount"]["weights"].items() if "decimals" not in k},
    }
    if args.form_lines and args.form_ids:
        forms = read_forms(args)
        entry, reports["labelled"] = train_role(FieldRole.STRING, forms, model=args.model)
        roles |= {role.value: entry for role in LABELLED_ROLES}
    text = json.dumps({"format": 1, "roles": roles}, indent=None, separators=(",", ":"))
    args.out.write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")
    if args.report:
        args.report.write_text(json.dumps(reports, indent=1) + "\n", encoding="utf-8")
    print(f"{args.out}: {args.out.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
