"""What the paper proves or shows on points in the plane, as data: Section 3 and the supplement."""

from __future__ import annotations

from strays.studies.paper import printed
from strays.studies.paper.evidence import Contrast, figure
from strays.studies.paper.parts import Part, said
from strays.studies.paper.rules import CONVERGED, Below, Drawn, Never, Within

EQUATIONS = {"eq1": "Eq. 1", "eq4": "Eq. 4", "ai-svdd": "AI-SVDD"}
# No more than 1, but for rounding.
ROUNDED = 1 + 1e-9


def _case(field: str) -> Contrast:
    """A figure of case study II: size of the hypersphere, or anomaly to normal ratio, of an objective."""
    return figure("case-2", field)


OF_CASES = [
    said(
        "3",
        "the centre that is solved for gives a smaller volume than a fixed one (share of it)",
        Part("share of the volume", _case("joint_to_fixed"), Never(ROUNDED)),
    ),
    said(
        "supplement I",
        "Eq. 1 of a linear layer has the printed closed form (error of gradient descent)",
        Part("error of gradient descent", figure("case-1", "eq1_error"), Never(CONVERGED)),
    ),
    said(
        "3, supplement I",
        "Eq. 3 of a linear layer maps all points to zero (norm of the weights)",
        Part("norm of W", figure("case-1", "eq3_norm"), Never(CONVERGED)),
    ),
    said(
        "supplement I",
        "with weights of norm 1 no two points move apart (by Cauchy-Schwarz; the largest stretch)",
        (Part(title, _case(f"{name}.stretch"), Never(ROUNDED)) for name, title in EQUATIONS.items() if name != "eq1"),
    ),
    said(
        "supplement II",
        "sizes of 3.35, 0.94 and 0.96 for Eq. 1, Eq. 4 and AI-SVDD",
        (Part(title, _case(f"{name}.size"), Drawn(printed.CASE_2[name][0])) for name, title in EQUATIONS.items()),
    ),
    said(
        "supplement II",
        "ratios of 2.0, 2.8 and 3.48 for Eq. 1, Eq. 4 and AI-SVDD",
        (Part(title, _case(f"{name}.ratio"), Drawn(printed.CASE_2[name][1])) for name, title in EQUATIONS.items()),
    ),
    said(
        "supplement II",
        "Eq. 4 is smaller than Eq. 1",
        Part("size", _case("eq4.size") - _case("eq1.size"), Below()),
    ),
    said(
        "supplement II",
        "Eq. 4 has a larger ratio than Eq. 1",
        Part("ratio", _case("eq4.ratio") - _case("eq1.ratio")),
    ),
    said(
        "supplement II",
        "AI-SVDD is smaller than Eq. 1, and has a larger ratio",
        Part("size", _case("ai-svdd.size") - _case("eq1.size"), Below()),
        Part("ratio", _case("ai-svdd.ratio") - _case("eq1.ratio")),
    ),
    said(
        "supplement II",
        "AI-SVDD is close to Eq. 4 in size (within 0.05)",
        Part("size", _case("ai-svdd.size") - _case("eq4.size"), Within(0.05)),
    ),
    said(
        "supplement II",
        "AI-SVDD has a larger ratio than Eq. 4",
        Part("ratio", _case("ai-svdd.ratio") - _case("eq4.ratio")),
    ),
    said(
        "4, supplement III",
        "with labels the centre is closer to the truth",
        (
            Part(f"against {title}", figure("case-3", "taught") - figure("case-3", field), Below())
            for field, title in (("blind", "the mean of all"), ("blind_without_anomalies", "the mean of the normals"))
        ),
    ),
]
