"""The paper, run again: its studies write rows, and tables, figures and docs/paper.md are made of the rows alone.

In the order in which one imports the other:

    study.py        what a study is, and how one runs and resumes
    methods.py      the methods that are compared
    comparison.py, cases.py, unseen.py, tuning.py    the studies
    registry.py     the studies by name
    printed.py      the figures that the paper prints
    summary.py      rows to means, intervals and tables of text
    tables.py       the tables of each study
    duels.py        AI-SVDD against classifiers
    findings.py     which of the paper's claims hold
    figures.py      the figures of each study
    page.py         docs/paper.md, from page.md and all of these
    run.py          the job behind `strays study`
"""
