"""Opening a strategy by its name."""

from __future__ import annotations

from edge_runtime.errors import UsageError
from edge_runtime.extract.review import DEFAULT_RULES, ReviewRules
from edge_runtime.extract.strategy import Strategy

KINDS = ("select", "generate")


def open_strategy(
    kind: str, *, locale: str | None = None, rules: ReviewRules | None = None
) -> Strategy:
    """The strategy called `kind`.

    Args:
        kind: "select" or "generate".
        locale: Decides order of dates and decimal signs where the document does not.
        rules: When a field is `ok`; None takes the strategy's own thresholds.

    Raises:
        UsageError: there is no such strategy.
    """
    if kind == "select":
        from edge_runtime.extract.select import SelectStrategy

        return SelectStrategy(locale=locale, rules=rules)
    if kind == "generate":
        from edge_runtime.extract.generate import GenerateStrategy, GenerateStrategyOptions

        return GenerateStrategy(
            GenerateStrategyOptions(locale=locale, rules=rules or DEFAULT_RULES)
        )
    raise UsageError(f"There is no strategy {kind!r}.", hint=f"use one of {', '.join(KINDS)}")
