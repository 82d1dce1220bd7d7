"""Tell whose the races are that were seen as lowered: the author's own, TileLang's, or not known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from tlcheck.execute.observe.authors import Author
from tlcheck.execute.observe.order import HappensBefore
from tlcheck.execute.observe.races import EXCHANGE, Contest, Race
from tlcheck.reasons import ATOMICS_ORDER, EXCHANGE_ORDER, UNSAID, Reason


@dataclass(frozen=True)
class Attributed:
    """Whose races are. ordered: buffers that were watched as lowered, with why their order is not known. races:
    TileLang's. contested: the author's own, and what races in the source.
    """

    ordered: Mapping[str, Reason]
    races: tuple[Race, ...]
    contested: tuple[tuple[Race, Contest], ...]


def attributed(watches: Sequence[HappensBefore], authors: Callable[[], Sequence[Author]]) -> Attributed:
    """Whose the races are that were seen as lowered.

    authors: watched the source; asked for where something races.
    """
    names = sorted({parameter or name for watch in watches for name, parameter in watch.buffers.items()})
    ordered = dict.fromkeys(names, UNSAID)
    races: list[Race] = []
    contested: list[tuple[Race, Contest]] = []
    for race, ordering in [(race, watch.ordering) for watch in watches for race in watch.races.values()]:
        name = race.name
        contest = next(filter(None, (author.contest(race) for author in authors())), None)
        if contest is not None:
            contested.append((race, contest))
            ordered[name] = contest.words("it" if contest.atomics else race.buffer)
        elif race.across and ordering and not race.sure:
            ordered[name] = Reason(ATOMICS_ORDER, "blocks access it that atomics may order")
        elif race.missing == EXCHANGE:
            ordered[name] = Reason(EXCHANGE_ORDER, "a write follows a read that a shuffle alone may order")
        else:
            races.append(race)
    return Attributed(ordered, tuple(races), tuple(contested))


def open_to_order(contests: Iterable[tuple[str, Contest]], name: str, last: Set[str]) -> Reason:
    """Return why the value of an output depends on an order that the kernel does not say; empty where it does not.

    contests: what races in the source, by buffer. last: parameters that are not read but for themselves, so that no
    other output depends on them.
    """
    found = (contest.words(racing) for racing, contest in contests if racing == name or racing not in last)
    return next(found, UNSAID)
