"""Trees and batches of scored continuations."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from edge_runtime.llm.score_plan import ROOT, ScoreBatch, Tree, batches, build_tree

Continuations = st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=12)


def spelled(tree: Tree, path: list[int]) -> list[int]:
    return [tree.nodes[index].token for index in path]


def all_batches(tree: Tree, max_tokens: int, max_sequences: int) -> list[ScoreBatch]:
    return list(batches(tree, max_tokens=max_tokens, max_sequences=max_sequences))


def test_a_shared_beginning_is_decoded_once() -> None:
    tree = build_tree([[1, 2, 3], [1, 2, 4], [1, 5, 6]])
    assert spelled(tree, list(range(len(tree.nodes)))) == [1, 2, 5]
    assert tree.n_leaves == 2
    assert tree.first_asked == [1]


def test_a_single_token_needs_no_decoding() -> None:
    tree = build_tree([[7], [8], []])
    assert tree.nodes == []
    assert tree.first_asked == [7, 8]
    assert all_batches(tree, 10, 10) == []


def test_a_path_longer_than_a_batch_comes_alone() -> None:
    tree = build_tree([[1] * 20, [2, 2]])
    sizes = [(len(batch.nodes), batch.n_sequences) for batch in all_batches(tree, 5, 8)]
    assert (19, 1) in sizes


@given(Continuations)
def test_every_continuation_is_spelled_by_its_path(continuations: list[list[int]]) -> None:
    tree = build_tree(continuations)
    for tokens, path in zip(continuations, tree.paths, strict=True):
        assert spelled(tree, path) == tokens[:-1]
        asked = [tree.first_asked, *(tree.nodes[index].asked for index in path)]
        assert all(token in known for token, known in zip(tokens, asked, strict=False))


@given(Continuations)
def test_parents_come_before_children_and_lead_to_the_root(
    continuations: list[list[int]],
) -> None:
    tree = build_tree(continuations)
    for index, node in enumerate(tree.nodes):
        assert node.parent < index
        assert node.depth == (0 if node.parent == ROOT else tree.nodes[node.parent].depth + 1)
        assert node.leaves


@given(Continuations)
def test_no_two_nodes_stand_for_the_same_beginning(continuations: list[list[int]]) -> None:
    tree = build_tree(continuations)
    places = [(node.parent, node.token) for node in tree.nodes]
    assert len(set(places)) == len(places)


@given(Continuations, st.integers(1, 8), st.integers(1, 4))
def test_batches_cover_all_nodes_within_their_limits(
    continuations: list[list[int]], max_tokens: int, max_sequences: int
) -> None:
    tree = build_tree(continuations)
    cut = all_batches(tree, max_tokens, max_sequences)
    assert {index for batch in cut for index in batch.nodes} == set(range(len(tree.nodes)))
    for batch in cut:
        assert len(batch.nodes) <= max_tokens or batch.n_sequences == 1
        assert 1 <= batch.n_sequences <= max_sequences
        assert batch.nodes == sorted(batch.nodes)


@given(Continuations, st.integers(1, 8), st.integers(1, 4))
def test_each_sequence_of_a_batch_is_an_unbroken_path_from_the_root(
    continuations: list[list[int]], max_tokens: int, max_sequences: int
) -> None:
    tree = build_tree(continuations)
    for batch in all_batches(tree, max_tokens, max_sequences):
        for sequence in range(batch.n_sequences):
            path = [
                index
                for index, members in zip(batch.nodes, batch.sequences, strict=True)
                if sequence in members
            ]
            parents = [tree.nodes[index].parent for index in path]
            assert parents == [ROOT, *path[:-1]]
