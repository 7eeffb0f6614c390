"""One GPU: BERT-base in bfloat16 on short titles, text in to score out, against sentence-transformers in the same run.

The weights are random: they are as fast as any, and BERT-base need not be downloaded. --tokenizer names a folder with a
tokenizer (that of the default encoder where none is given). Also checks that what the GPU computes is what
transformers computes in float32.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import machine, seconds, write_json
from benchmarks.titles import titles

BATCH_SIZES = (256, 1024, 4096, 16_384)
# Dense bfloat16 products that the GPU does in practice, and those BERT-base needs for a token.
PEAK_FLOPS = 790e12
FLOPS_PER_TOKEN = 2 * 85e6


def bert_base(folder: Path, tokenizer: Path) -> None:
    """A folder with a BERT-base of random weights."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    torch.manual_seed(0)
    words = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True)
    BertModel(BertConfig(vocab_size=len(words)), add_pooling_layer=False).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        if (tokenizer / name).is_file():
            shutil.copy(tokenizer / name, folder)


def agreement(folder: Path, texts: list[str]) -> dict[str, float]:
    """Cosines between the GPU's embeddings and those of transformers in float32."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    from strays.encoders import load_encoder

    encoder = load_encoder(str(folder), cache=False)
    found = encoder.encode(texts)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True).cuda().eval()
    batch = tokenizer(texts, return_tensors="pt", padding=True, truncation=True, max_length=512).to("cuda")
    with torch.inference_mode():
        hidden, mask = model(**batch).last_hidden_state, batch["attention_mask"].unsqueeze(-1)
        exact = ((hidden * mask).sum(1) / mask.sum(1)).cpu().numpy()
    cosine = (found * exact).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(exact, axis=1)
    alone = np.abs(np.vstack([encoder.encode([text]) for text in texts[:20]]) - found[:20]).max()
    return {"mean_cosine": float(cosine.mean()), "lowest_cosine": float(cosine.min()), "alone_or_not": float(alone)}


def sentence_transformers_rates(folder: Path, texts: list[str]) -> dict[str, float]:
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cuda", model_kwargs={"dtype": torch.bfloat16})
    rates = {}
    for size in BATCH_SIZES:
        model.encode(texts[:2000], batch_size=size, show_progress_bar=False)
        taken = seconds(lambda size=size: model.encode(texts, batch_size=size, show_progress_bar=False))  # type: ignore[misc]
        rates[str(size)] = len(texts) / taken
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", type=Path, help="folder with a tokenizer; else the default encoder's")
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--out", default="gpu.json", help="name of the result")
    options = parser.parse_args()
    import torch

    from strays import TextOutlierDetector
    from strays.encoders import load_encoder
    from strays.encoders.sources import find_folder

    if not torch.cuda.is_available():
        sys.exit("there is no GPU here")
    rng = np.random.default_rng(0)
    texts = titles(options.texts, rng, numbered=False)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        bert_base(folder, options.tokenizer or find_folder("default"))
        long = [" ".join(texts[i : i + 1 + i % 30]) for i in range(300)]
        checked = {"titles": agreement(folder, texts[:2000]), "longer": agreement(folder, long)}
        encoder = load_encoder(str(folder), cache=False)
        tokens = encoder._tokenizer  # type: ignore[attr-defined]
        list(tokens.batches(texts[:50_000], 65_536))  # starts its processes
        start = time.perf_counter()
        n_tokens = sum(int(batch.lengths.sum()) for batch in tokens.batches(texts, 65_536))
        tokenizing = len(texts) / (time.perf_counter() - start)
        model = TextOutlierDetector(encoder=encoder).fit(titles(20_000, rng, numbered=False))
        encoder.encode(texts[:50_000])
        model.anomaly_score(texts[:50_000])
        runs: list[dict[str, float]] = []
        for _ in range(3):
            runs.append({})
            runs[-1]["encode"] = len(texts) / seconds(lambda: encoder.encode(texts))
            runs[-1]["text_to_score"] = len(texts) / seconds(lambda: model.anomaly_score(texts))
        peers = sentence_transformers_rates(folder, texts[: min(100_000, len(texts))])
    best = max(peers.values())
    median: dict[str, Any] = {key: float(np.median([run[key] for run in runs])) for key in runs[0]}
    per_title = n_tokens / len(texts)
    write_json(
        options.out,
        {
            "gpu": torch.cuda.get_device_name(),
            "machine": machine("torch", "transformers", "sentence-transformers", "numpy"),
            "texts": len(texts),
            "tokens_per_title": per_title,
            "agreement": checked,
            "runs_on": encoder.runs_on,
            "titles_per_second": {**median, "tokenizing_alone": tokenizing},
            "runs": runs,
            "sentence_transformers_by_batch_size": peers,
            "ratio_to_sentence_transformers": median["text_to_score"] / best,
            "physical_limit": PEAK_FLOPS / (FLOPS_PER_TOKEN * per_title),
        },
    )


if __name__ == "__main__":
    main()
