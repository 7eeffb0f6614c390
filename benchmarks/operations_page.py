"""The figures in docs/operations.md, from the results alone: `python -m benchmarks.operations_page`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from benchmarks.attacks.runner import FINE
from benchmarks.common import marked
from benchmarks.speed_page import REPO, results, table

PAGE = REPO / "docs" / "operations.md"
# What of the kept files is hit by single bits: the attack's kinds, in words.
KEPT = {"graph": "graphs", "static table": "static tables", "cache, any bit": "the cache of embeddings"}
# What the kinds of benchmarks/attacks/faults do.
FAULTS = {
    "killed": "where the process is killed",
    "torn": "where it is killed in the middle of a write",
    "no space": "that fail for want of space",
    "full": "from which on the disk is full",
    "denied": "that are not permitted",
    "broken": "with an input/output error",
    "interrupted": "that are interrupted",
}


def served_table() -> str:
    found = results("serve.json")
    rows = []
    for one in sorted([found["served"], *found["other_calls"]], key=lambda one: int(one["texts_per_call"])):
        refused = one["statuses"].get("429", 0) / one["calls"]
        rows.append(
            [
                str(one["texts_per_call"]),
                f"{one['texts_per_second']:,.0f}",
                f"{one['of_offline']:.2f}",
                f"{one['ms']['p50']:,.0f}",
                f"{one['ms']['p95']:,.0f}",
                f"{refused:.0%}",
            ]
        )
    header = [
        "texts in a call",
        "texts a second",
        "of `strays score`",
        "ms, median",
        "ms, 95th percentile",
        "refused (429)",
    ]
    return table(header, rows)


def served_words() -> str:
    found = results("serve.json")
    served, flood, after, answers = (found[key] for key in ("served", "overload", "afterwards", "answers"))
    memory = served["memory"]
    refused = f"{flood['statuses'].get('429', 0) / flood['calls']:.0%}"
    return f"""{served["clients"]} clients on the {found["machine"]["cores"]} cores that also serve them, titles of some
15 tokens, the default encoder (`python -m benchmarks.serve`):

{served_table()}

In {served["seconds"]:.0f} s with {served["texts_per_call"]} texts in a call {failed(served)} of {served["calls"]:,}
calls failed, and memory went from {memory["first_third_mb"]:,.0f} to {memory["last_third_mb"]:,.0f} MB. With four times
the clients {refused} of {flood["calls"]:,} calls were refused with 429 and {failed(flood)} failed; right after,
{after["clients"]} clients got {after["texts_per_second"]:,.0f} texts a second again. Of {answers["compared"]:,} answers
{answers["swapped"]} were another text's: the largest difference to the offline score was
{answers["largest_difference"]:.0g}, {answers["p_values_that_differ"]} p-values and {answers["flags_that_differ"]} flags
differed. Calls of one short text cost more in HTTP than in scoring: send several in a call where you can."""


def failed(run: dict[str, Any]) -> int:
    """Calls that got neither an answer nor a refusal."""
    return sum(n for status, n in run["statuses"].items() if status not in ("200", "429"))


def soak_words() -> str:
    found = results("soak.json")
    server, desk = found["server"], found["desk"]
    saved, exported = (sum(desk[f"verdicts_{how}"].values()) for how in ("acknowledged", "exported"))
    replaced = f"a model replaced {server['models_saved']} times"
    return f"""Server and desk together for {found["minutes"]:.0f} minutes under mixed load: calls of 1 to 1,000 texts,
explanations, {replaced}, clients that leave, read slowly, stay silent or send no HTTP,
and a log that is read slowly, then for a minute not at all (`python -m benchmarks.soak`):

{soak_table(server, desk)}

Of {server["answers_compared"]:,} scores {server["answers_swapped"]} were another text's or another model's (largest
difference to the offline score {server["largest_difference"]:.0g}). Of {saved:,} verdicts that the desk acknowledged
{exported:,} are in its last export. The log dropped {server["log"]["dropped_as_counted"]:,} lines."""


def soak_table(*both: dict[str, Any]) -> str:
    rows = [
        ["requests", *(f"{one['requests']:,}" for one in both)],
        ["answers with 5xx", *(str(one["server_errors"]) for one in both)],
        ["memory, middle third", *(f"{one['memory_mb']['middle_third']:,.0f} MB" for one in both)],
        ["memory, last third", *(f"{one['memory_mb']['last_third']:,.0f} MB" for one in both)],
        ["seconds from SIGTERM to the end, with explanations waiting", *(f"{one['stop_seconds']:.1f}" for one in both)],
    ]
    return table(["", "server", "desk"], rows)


def attack_words(name: str, what: str, then: str = "scored") -> str:
    found: dict[str, Any] = results(name)
    outcomes = found["outcomes"]
    bad = {outcome: n for outcome, n in outcomes.items() if outcome not in FINE and n}
    told = ", ".join(f"{n} {outcome}" for outcome, n in bad.items()) or "nothing else came about"
    return (
        f"{found['cases']:,} {what} of {len(found['kinds'])} kinds: {outcomes['refused']:,} refused with a clear "
        f"error, {outcomes['worked']:,} harmless and {then}; {told}."
    )


def bits_words(name: str, what: str) -> str:
    found: dict[str, Any] = results(f"attacks_{name}.json")
    told = ", ".join(f"{n:,} {outcome}" for outcome, n in sorted(found["came"].items()))
    return f"{found['cases']:,} single flipped bits in {what}: {told} (`python -m benchmarks.attacks.{name}`)."


def kept_words() -> str:
    found: dict[str, Any] = results("attacks_kept.json")
    by_kind = {kind: sum(outcomes.values()) for kind, outcomes in found["kinds"].items()}
    bits = ", ".join(f"{by_kind[kind]:,} in {what}" for kind, what in KEPT.items())
    same = found["outcomes"]["worked"] == found["cases"]
    told = (
        "every embedding was the same, bit for bit, and what was damaged was made again" if same else "**not all held**"
    )
    return (
        f"Single flipped bits, {bits}, and {found['cases'] - sum(by_kind[kind] for kind in KEPT):,} further damages of "
        f"the cache (pages, its end, the journal of a killed process): {told} (`python -m benchmarks.attacks.kept`)."
    )


def fault_words() -> str:
    found: dict[str, Any] = results("faults.json")
    calls: Counter[str] = Counter()
    states: Counter[str] = Counter()
    for tried in found["results"]:
        calls[FAULTS[tried["kind"]]] += tried["calls"]
        states.update(tried["found"])
    kinds = ", ".join(f"{n:,} {what}" for what, n in calls.items())
    came = ", ".join(f"{n:,} {state}" for state, n in states.most_common())
    n_commands = len({tried["scenario"] for tried in found["results"]})
    return (
        f"A fault at every file-system call of {n_commands} commands (save, "
        f"score to a file and to a folder, resume, review, cache), one run for each of {found['calls']:,} calls: "
        f"{kinds}. The next command found: {came}. Files of somebody else's, named much like ours, were compared byte "
        f"for byte, with their modes (`python -m benchmarks.attacks.faults.run`)."
    )


def cluster_words() -> str:
    jobs, gpu = results("cluster.json")["jobs"], results("cluster_gpu.json")
    compared = [run for job in jobs for run in job["results"] if "rows_compared" in run]
    ways = "; ".join(dict.fromkeys(run["engine"] for run in compared))
    on_gpu = [run for job in gpu["jobs"] for run in job["results"] if "rows_compared" in run]
    return (
        f"{jobs[0]['rows']:,} rows on a Ray cluster of two nodes ({ways}): {_equal(compared)} (`python -m "
        f"benchmarks.cluster`). {gpu['jobs'][0]['rows']:,} rows by an actor on an {gpu['machine']['gpu']}: "
        f"{_equal(on_gpu)} on that GPU (`--gpu-rows`)."
    )


def _equal(compared: list[dict[str, Any]]) -> str:
    same = all(run["same_bytes"] and run["same_manifest"] and not run["values_different"] for run in compared)
    return "every file and the manifest equal the local engine's byte for byte" if same else "**the outputs differ**"


def figures() -> str:
    models = attack_words("attacks_models.json", "mutated model folders")
    tables = attack_words("attacks_tables.json", "mutated tables")
    projects = attack_words("attacks_projects.json", "damaged and hostile projects", "opened")
    bits = results("attacks_projects.json")["kinds"]["one bit"]
    return f"""{served_words()}

{soak_words()}

- {models}
- {tables}
- {projects} Of {sum(bits.values()):,} single flipped bits {bits.get("refused", 0):,} were refused, and with
  {bits.get("worked", 0):,} the project held what it had (`python -m benchmarks.attacks.projects`).
- Looked for in each: exceptions that are not strays', crashes, files read or written outside, code that runs, network,
  memory beyond the file's size, time (`python -m benchmarks.attacks.models`, `python -m benchmarks.attacks.tables`).
- {bits_words("model_bits", "saved models of every detector")}
- {bits_words("manifest_bits", "manifests of scoring jobs")}
- {kept_words()}
- {fault_words()}
- {cluster_words()}
- schemathesis against the server's schema, slow and silent clients, half-sent bodies, bodies that cost more than they
  weigh, foreign hosts and pages, models replaced under load: `tests/apps/server`.
"""


def page() -> str:
    """What the page should be."""
    return marked(PAGE.read_text(), "operations", figures())


def main() -> None:
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
