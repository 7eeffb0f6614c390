"""The paper, run again: its studies write rows, and tables, figures and docs/paper.md are made of the rows alone.

In the order in which one imports the other:

    study.py        what a study is, and how one runs and resumes
    methods.py      the methods that are compared
    trained.py      a method trained and tested, as often as a study asks for
    comparison.py, cases.py, unseen.py, tuning.py, choices.py, repeat.py    the studies
    registry.py     the studies by name
    printed.py      the figures that the paper prints
    summary.py      rows to means, intervals and tables of text
    details.py, case_tables.py, tables.py    the tables of each study
    duels.py        AI-SVDD against classifiers
    findings.py     which of the paper's claims hold
    figures.py      the figures of each study
    sketches.py     Figures 1 and 2, which need no rows
    page.py         docs/paper.md, from page.md and all of these
    run.py          the job behind `strays study`
"""
