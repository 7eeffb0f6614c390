"""The paper, run again: its studies write rows, and tables, figures and docs/paper.md are made of the rows alone.

In the order in which one imports the other:

    study.py        what a study is, and how one runs and resumes
    methods.py      the methods that are compared
    trained.py      a method trained and tested, as often as a study asks for
    comparison.py, cases.py, unseen.py, tuning.py, choices.py, repeat.py    the studies
    registry.py     the studies by name
    printed.py      the figures that the paper prints
    summary.py      rows to means, intervals and tables of text
    details.py, tuning_tables.py, case_tables.py, tables.py    the tables of each study
    evidence.py     figures and their differences, run by run; what the paper prints of the same
    duels.py        AI-SVDD against classifiers
    trends.py       what pollution does to each method
    rules.py        what a 95 % interval says: holds, does not hold, unclear
    parts.py        a statement and its parts, each judged by a rule
    kinds.py, case_statements.py, statements.py    what the paper says, as data
    judgement.py, claims.py    which of its statements hold
    figures.py      the figures of each study
    sketches.py     Figures 1 and 2, which need no rows
    page.py         docs/paper.md, from page.md and all of these
    run.py          the job behind `strays study`
"""
