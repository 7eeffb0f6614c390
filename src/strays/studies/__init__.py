"""The paper's experiments and the published benchmarks. Only `strays study` and benchmarks/ import this package.

What every experiment shares, in the order in which one imports the other:

    rows.py         results as lines of JSON, appended one by one
    corpora.py      the labelled corpora, read from parquet files
    originals.py    makes those files from the public originals
    protocol.py     draws training, dev and test sets from a corpus
    embeddings.py   encodes the rows that were drawn
    paper/          the paper's own studies, and the page docs/paper.md
"""
