"""Words that say nothing about where to look: a light list of English function words."""

from __future__ import annotations

STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below
    between both but by can cannot could did do does doing don down during each few for from
    further had has have having he her here hers him his how i if in into is isn it its itself just
    let may me might more most must my no nor not now of off on once only or other our ours out
    over own same she should so some such than that the their theirs them then there these they
    this those through to too under until up upon us very was we were what when where which while
    who whom why will with within without would you your yours
    """.split()  # noqa: SIM905  a word list reads better than a hundred quoted lines
)
"""Lower-cased; words of one letter are dropped whatever they are."""
