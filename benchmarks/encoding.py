"""Titles a second on a CPU: strays beside its peers, with the same MiniLM weights and the same texts, in one run.

    python -m benchmarks.encoding --data DIR

Every way is run once a round, in an order that changes; rates are medians. Ways that are not installed are left out.
`cosine` is that with sentence-transformers' embeddings; the limit is what the products alone would take at the rate
of one large float32 product on this machine. Writes results/encoding.json.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.common import machine, seconds, write_json
from strays import TextOutlierDetector
from strays.encoders import load_encoder
from strays.encoders.runtimes.onnx_graph import TABLE, bert_graph
from strays.encoders.runtimes.onnx_session import OnnxSession
from strays.encoders.sources import find_folder
from strays.studies.corpora import data_folder, load_corpus

Way = Callable[[list[str]], np.ndarray]
ROUNDS, TITLES, MANY = 7, 1500, 20_000
BATCH_SIZES = (16, 32, 64, 128)
FLOPS_PER_TOKEN = 2 * 6 * (4 * 384**2 + 2 * 384 * 1536)


def transformer_ways() -> dict[str, Way]:
    """The same weights, run by peers and by strays."""
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(find_folder("default")), device="cpu")
    ways: dict[str, Way] = {
        f"sentence-transformers, batches of {size}": lambda texts, size=size: theirs.encode(  # type: ignore[misc]
            texts, batch_size=size, show_progress_bar=False
        )
        for size in BATCH_SIZES
    }
    ways["ONNX Runtime as fastembed runs it"] = fastembed_style()
    if find_spec("openvino"):
        ways["OpenVINO, two streams"] = openvino()
    ways["strays on PyTorch"] = load_encoder("default", runtime="torch", cache=False).encode
    ways["strays, full precision"] = load_encoder("default", precision="full", cache=False).encode
    ways["strays, as it comes"] = load_encoder("default", cache=False).encode
    return ways


def fastembed_style() -> Way:
    """ONNX Runtime in float32 on batches of 256 texts as they come, padded to the longest, threads left to it."""
    files = load_encoder("default", precision="full")._pretrained  # type: ignore[attr-defined]
    weights = files.weights()
    session = OnnxSession(bert_graph(weights, files.config, files.shape), weights[TABLE], threads=0)
    tokenizer = files.tokenizer.backend
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()

    def encode(texts: list[str]) -> np.ndarray:
        found = []
        for start in range(0, len(texts), 256):
            batch = tokenizer.encode_batch(texts[start : start + 256])
            ids, mask = np.array([text.ids for text in batch]), np.array([text.attention_mask for text in batch])
            found.append(session.run(ids, mask))
        return np.concatenate(found)

    return encode


def openvino() -> Way:
    """OpenVINO in float32 on our batches, each of two streams on a core of its own."""
    import torch
    from openvino import AsyncInferQueue, Core, convert_model

    from strays.encoders.tokenizer import Batch

    encoder = load_encoder("default", precision="full", cache=False)
    encoder.encode(["a"])
    core = Core()
    options = {"INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 2, "INFERENCE_NUM_THREADS": 2}
    # From the model itself: OpenVINO does not know the operations of our graph that are ONNX Runtime's own.
    model = encoder._pretrained.model()  # type: ignore[attr-defined]
    example = {name: torch.ones(1, 4, dtype=torch.int64) for name in ("input_ids", "attention_mask")}
    compiled = core.compile_model(convert_model(model, example_input=example), "CPU", options)
    queue = AsyncInferQueue(compiled, 2)

    def encode(texts: list[str]) -> np.ndarray:
        out = np.empty((len(texts), 384), dtype=np.float32)

        def keep(request: Any, batch: Batch) -> None:
            hidden, mask = request.get_output_tensor(0).data, batch.mask[:, :, None]
            pooled = (hidden * mask).sum(1) / mask.sum(1)
            out[batch.rows] = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)

        queue.set_callback(keep)
        for batch in encoder._tokenizer.batches(texts, 512):  # type: ignore[attr-defined]
            queue.start_async({"input_ids": batch.ids, "attention_mask": batch.mask}, batch)
        queue.wait_all()
        return out

    return encode


class Fresh:
    """`fast` when it has seen as many other titles before: what a long file is like after its first seconds."""

    def prepare(self, texts: list[str]) -> None:
        """Not on the clock."""
        self.encoder = load_encoder("fast")
        self.encoder.encode(texts[: len(texts) // 2])

    def __call__(self, texts: list[str]) -> np.ndarray:
        """On the clock."""
        return self.encoder.encode(texts[len(texts) // 2 :])


def static_ways() -> dict[str, Way]:
    """`fast` from nothing, on titles it has not seen yet and on titles it has; and model2vec with the same table."""
    fast = load_encoder("fast")
    fast.encode(["distilled before the clock starts"])

    def cold(texts: list[str]) -> np.ndarray:
        return load_encoder("fast").encode(texts)

    ways: dict[str, Way] = {"fast, loading included": cold, "fast, fresh titles": Fresh(), "fast": fast.encode}
    if find_spec("model2vec"):
        from model2vec import StaticModel
        from tokenizers import Tokenizer

        distilled = fast._distil()  # type: ignore[attr-defined]
        theirs = StaticModel(distilled.table, Tokenizer.from_str(distilled.tokenizer), {"normalize": True})
        ways["model2vec"] = lambda texts: np.asarray(theirs.encode(texts))
    return ways


def scoring_ways(corpus: list[str]) -> dict[str, Way]:
    """Text in, score out: fitted models of strays and of PyOD's EmbeddingOD, each with its own default."""
    encoder = load_encoder("default", cache=False)
    ways: dict[str, Way] = {"strays, text to score": TextOutlierDetector(encoder).fit(corpus).anomaly_score}
    if find_spec("pyod"):
        from pyod.models.embedding import EmbeddingOD

        theirs = EmbeddingOD(encoder=str(find_folder("default")), detector="LUNAR").fit(corpus)
        ways["PyOD EmbeddingOD, text to score"] = theirs.decision_function
    return ways


def measured(ways: dict[str, Way], texts: list[str], rng: np.random.Generator) -> dict[str, list[float]]:
    """Texts a second of each way, every round."""
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS + 1):
        for name in rng.permutation(list(ways)).tolist():
            way = ways[name]
            if isinstance(way, Fresh):
                way.prepare(texts)
            time.sleep(0.5)  # threads of the way before go on spinning for a while
            start = time.perf_counter()
            n = len(way(texts))
            rates[name].append(n / (time.perf_counter() - start))
    return {name: found[1:] for name, found in rates.items()}  # the first round loads


def product_rate() -> float:
    """Operations a second of a large float32 product."""
    import torch

    A = torch.randn(2048, 2048)
    return 2 * 2048**3 / min(seconds(lambda: A @ A) for _ in range(15))


def from_cache(texts: list[str]) -> dict[str, float]:
    """Seconds to encode texts the first time and the second, each by an encoder that is loaded anew."""
    with tempfile.TemporaryDirectory() as folder:
        from strays.encoders.cache import EmbeddingCache, models_folder
        from strays.encoders.settings import EncoderSettings
        from strays.encoders.transformer import TransformerEncoder

        if (kept := models_folder()) and kept.is_dir():
            shutil.copytree(kept, Path(folder) / kept.name)
        taken = []
        for _ in range(2):
            encoder = TransformerEncoder(EncoderSettings("default"), cache=EmbeddingCache(Path(folder)))
            taken.append(seconds(lambda: encoder.encode(texts)))  # noqa: B023
    return {"texts": len(texts), "first_seconds": taken[0], "second_seconds": taken[1], "ratio": taken[0] / taken[1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with the corpora; else STRAYS_DATA")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    titles = load_corpus("5.2-ag", data_folder(options.data)).texts
    titles = [titles[i] for i in rng.permutation(len(titles))[:MANY]]
    few, corpus = titles[:TITLES], titles[-2000:]
    ways = transformer_ways()
    rates = measured(ways, few, rng)
    exact = ways[f"sentence-transformers, batches of {BATCH_SIZES[0]}"](few)
    cosine = {name: float((way(few) * exact).sum(1).mean()) for name, way in ways.items()}
    rates |= measured(static_ways(), titles, rng) | measured(scoring_ways(corpus), few, rng)
    typical = {name: median(found) for name, found in rates.items()}
    best = max(rate for name, rate in typical.items() if name.startswith("sentence"))
    encoder = load_encoder("default", cache=False)
    batches = encoder._tokenizer.batches(few, 512)  # type: ignore[attr-defined]
    tokens = sum(int(batch.lengths.sum()) for batch in batches) / len(few)
    result = {
        "machine": machine("torch", "onnxruntime", "sentence-transformers", "tokenizers", "numpy"),
        "as_it_comes": encoder.runs_on,
        "titles": TITLES,
        "titles_of_static_encoders": len(titles),
        "rounds": ROUNDS,
        "tokens_per_title": tokens,
        "titles_per_second": typical,
        "ratio_to_sentence_transformers": {name: rate / best for name, rate in typical.items()},
        "cosine": cosine,
        "limit_of_float32_products": product_rate() / (FLOPS_PER_TOKEN * tokens),
        "every_round": rates,
        "from_cache": from_cache(titles[:5000]),
    }
    write_json("encoding.json", result)
    for name, rate in typical.items():
        print(f"{name:45} {rate:10,.0f}/s  {rate / best:7.2f} x  cosine {cosine.get(name, float('nan')):.5f}")
    print(result["from_cache"], result["limit_of_float32_products"])


if __name__ == "__main__":
    main()
