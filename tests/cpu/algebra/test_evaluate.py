"""Spaces cut into chunks are whole, and polynomials over a chunk are those of its points."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis.strategies import randoms

from tests.cpu.prove.random_expressions import expression, value, variable
from tlcheck.algebra.algebra import Algebra, unread
from tlcheck.algebra.evaluate import Dimension, Evaluator, chunks, mix, size, text_hash


def _points(space: list[Dimension]) -> list[tuple[int, ...]]:
    return list(product(*(range(d.start, d.start + d.extent) for d in space)))


@settings(max_examples=60)
@given(random=randoms(use_true_random=False))
def test_chunks_cover_a_space_once(random: Random) -> None:
    space = [Dimension(uid, random.randint(-3, 9), random.randint(1, 7)) for uid in range(random.randint(0, 4))]
    limit = random.choice((1, 2, 5, 16, 64, 10_000))
    seen: list[tuple[int, ...]] = []
    for env in chunks(space, limit):
        columns = np.broadcast_arrays(*(np.asarray(env[d.uid]) for d in space)) if space else []
        rows = list(zip(*(c.ravel().tolist() for c in columns), strict=True)) if space else [()]
        assert len(rows) <= max(limit, 1)
        seen += rows
    assert sorted(seen) == sorted(_points(space))
    assert len(seen) == size(space)


def test_an_empty_dimension_has_no_points() -> None:
    space = [Dimension(1, 0, 4), Dimension(2, 0, 0)]
    covered = [np.broadcast(*(np.asarray(v) for v in env.values())).size for env in chunks(space, 2)]
    assert sum(covered) == 0


@settings(max_examples=60)
@given(random=randoms(use_true_random=False))
def test_values_over_a_chunk_are_those_of_its_points(random: Random) -> None:
    algebra = Algebra(unread)
    space = [Dimension(uid, random.randint(-3, 3), random.randint(1, 6)) for uid in (1, 2, 3)]
    algebra.ranges.update({d.uid: (d.start, d.start + d.extent - 1) for d in space})
    e = expression(random, [variable(d.uid) for d in space], 4)
    poly = algebra.poly(e)
    (env,) = chunks(space, 10_000)
    shape = tuple(d.extent for d in space)
    got = np.broadcast_to(np.asarray(Evaluator(algebra, env)(poly)), shape).ravel().tolist()
    assert got == [value(e, dict(zip((1, 2, 3), p, strict=True))) for p in _points(space)]


def test_mixing_is_one_to_one_and_names_have_hashes_of_their_own() -> None:
    words = np.arange(-50_000, 50_000, dtype=np.int64).view(np.uint64)
    assert len(np.unique(mix(words))) == len(words)
    assert len({text_hash(f"A{n}") for n in range(10_000)}) == 10_000
    assert text_hash("A") == text_hash("A")
