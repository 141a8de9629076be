"""How to score many continuations with few decoded tokens.

Continuations form a tree: a beginning that several share is decoded once. The last token of a
continuation is never decoded, since nothing is read after it. The tree is cut into batches that
fit the limits of the context; a beginning shared across two batches is decoded in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

ROOT = -1


@dataclass(slots=True)
class Node:
    """One token to decode.

    `parent` is an index into the same list (`ROOT` for the first token after the history),
    `depth` counts from 0, `asked` are the tokens whose log-probability is read after this one.
    """

    token: int
    parent: int
    depth: int
    asked: list[int] = field(default_factory=list[int])
    leaves: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class Tree:
    """All tokens to decode, parents before children, each path in order (depth first).

    `first_asked` are the tokens read from the logits at hand; `paths[i]` are the node indices of
    continuation i without its last token; `n_leaves` sequences cover all paths.
    """

    nodes: list[Node]
    first_asked: list[int]
    paths: list[list[int]]
    n_leaves: int


@dataclass(frozen=True, slots=True)
class ScoreBatch:
    """Node indices in decode order, and for each the local sequence numbers (0-based)."""

    nodes: list[int]
    sequences: list[list[int]]
    n_sequences: int


def build_tree(continuations: Sequence[Sequence[int]]) -> Tree:
    """The merged tree of all continuations; equal ones share everything."""
    children: dict[tuple[int, int], int] = {}
    unordered: list[Node] = []
    first_asked: dict[int, None] = {}
    raw_paths: list[list[int]] = []
    for tokens in continuations:
        path: list[int] = []
        parent = ROOT
        for depth, token in enumerate(tokens):
            asked = unordered[parent].asked if parent != ROOT else None
            if asked is None:
                first_asked.setdefault(token)
            elif token not in asked:
                asked.append(token)
            if depth == len(tokens) - 1:
                break
            index = children.get((parent, token))
            if index is None:
                index = len(unordered)
                children[parent, token] = index
                unordered.append(Node(token, parent, depth))
            path.append(index)
            parent = index
        raw_paths.append(path)
    return _depth_first(unordered, list(first_asked), raw_paths)


def _depth_first(nodes: list[Node], first_asked: list[int], paths: list[list[int]]) -> Tree:
    below: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        below.setdefault(node.parent, []).append(index)
    order: list[int] = []
    stack = list(reversed(below.get(ROOT, [])))
    while stack:
        index = stack.pop()
        order.append(index)
        stack.extend(reversed(below.get(index, [])))
    new_index = {old: new for new, old in enumerate(order)}
    new_index[ROOT] = ROOT
    sorted_nodes = [nodes[old] for old in order]
    n_leaves = 0
    for new, (old, node) in enumerate(zip(order, sorted_nodes, strict=True)):
        node.parent = new_index[node.parent]
        if old not in below:
            at = new
            while at != ROOT:
                sorted_nodes[at].leaves.append(n_leaves)
                at = sorted_nodes[at].parent
            n_leaves += 1
    return Tree(
        sorted_nodes, first_asked, [[new_index[old] for old in path] for path in paths], n_leaves
    )


def batches(tree: Tree, *, max_tokens: int, max_sequences: int) -> Iterator[ScoreBatch]:
    """Cut the tree into batches of at most `max_tokens` nodes and `max_sequences` leaves.

    A single path longer than `max_tokens` comes as a batch of its own with one sequence; the
    caller decodes it in pieces.
    """
    path_of_leaf: list[list[int]] = [[] for _ in range(tree.n_leaves)]
    for index, node in enumerate(tree.nodes):
        for leaf in node.leaves:
            path_of_leaf[leaf].append(index)
    taken: list[int] = []
    nodes: set[int] = set()
    for leaf, path in enumerate(path_of_leaf):
        added = nodes.union(path)
        if taken and (len(added) > max_tokens or len(taken) == max_sequences):
            yield _batch(tree, taken, nodes)
            taken, added = [], set(path)
        taken.append(leaf)
        nodes = added
    if taken:
        yield _batch(tree, taken, nodes)


def _batch(tree: Tree, leaves: list[int], nodes: set[int]) -> ScoreBatch:
    local = {leaf: number for number, leaf in enumerate(leaves)}
    order = sorted(nodes)
    sequences = [[local[leaf] for leaf in tree.nodes[i].leaves if leaf in local] for i in order]
    return ScoreBatch(order, sequences, len(leaves))
