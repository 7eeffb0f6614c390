"""Titles of about nine words, made up from lists of words; mostly distinct."""

from __future__ import annotations

import numpy as np

WHO = "farmers,sailors,bakers,teachers,pilots,miners,gardeners,judges,singers,doctors,weavers,clerks,divers,tailors"
HOW = "old,young,tired,angry,proud,local,foreign,retired,lucky,silent,famous,careful,hungry,cheerful,jobless,brave"
DID = "find,lose,sell,praise,fear,repair,count,buy,hide,paint,refuse,borrow,miss,study,copy,defend,burn,collect"
WHAT = "bridges,engines,letters,apples,stamps,boats,maps,clocks,horses,mirrors,songs,taxes,roofs,coins,bicycles,trains"
WHERE = "harbour,valley,market,capital,north,desert,suburb,forest,island,station,village,border,museum,airport,canal"
WHEN = "after,before,during,despite,without,since"
EVENT = "storm,election,strike,harvest,festival,flood,merger,trial,holiday,drought,parade,blackout,visit,verdict"
WORDS = [word for words in (WHO, HOW, DID, WHAT, WHERE, WHEN, EVENT) for word in words.split(",")]


def titles(n: int, rng: np.random.Generator, *, numbered: bool = True) -> list[str]:
    """Titles such as 'old bakers sell clocks in island after flood 1234', or without the number."""
    lists = [np.array(words.split(",")) for words in (HOW, WHO, DID, WHAT, WHERE, WHEN, EVENT)]
    how, who, did, what, where, when, event = (words[rng.integers(0, len(words), n)].tolist() for words in lists)
    numbers = rng.integers(1, 10_000, n).tolist()
    together = zip(how, who, did, what, where, when, event, numbers, strict=True)
    if not numbered:
        return [f"{h} {w} {d} {t} in {p} {m} {e}" for h, w, d, t, p, m, e, _ in together]
    return [f"{h} {w} {d} {t} in {p} {m} {e} {i}" for h, w, d, t, p, m, e, i in together]
