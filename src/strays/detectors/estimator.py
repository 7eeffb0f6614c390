"""scikit-learn's protocol of an estimator, without scikit-learn, which takes longer to import than a scan does.

Whoever uses scikit-learn finds an estimator as it knows them: `get_params`, `set_params`, `sklearn.base.clone`,
pipelines, searches, `check_estimator`. Only what asks scikit-learn itself, such as the tags, imports it.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any, ClassVar, Self, TypeVar

REPR_WIDTH = 80


class Estimator:
    """An object whose parameters are those of its constructor, which does nothing but store them.

    >>> class Scaled(Estimator):
    ...     def __init__(self, factor=1.0, inner=None):
    ...         self.factor, self.inner = factor, inner
    >>> scaled = Scaled(inner=Scaled(factor=3))
    >>> scaled.set_params(inner__factor=5)
    Scaled(inner=Scaled(factor=5))
    >>> clone(scaled).get_params()
    {'factor': 1.0, 'inner__factor': 5, 'inner__inner': None, 'inner': Scaled(factor=5)}
    """

    # What scikit-learn takes it for, such as "outlier_detector".
    _estimator_type: ClassVar[str | None] = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; `deep` adds those of parameters that are estimators, as name__inner."""
        params: dict[str, Any] = {}
        for name in sorted(_defaults(type(self))):
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{inner}": found for inner, found in value.get_params().items()}
            params[name] = value
        return params

    def set_params(self, **params: Any) -> Self:
        """Change parameters; name__inner is the parameter `inner` of the estimator that is the parameter `name`."""
        valid = sorted(_defaults(type(self)))
        for key in params:
            if key.partition("__")[0] not in valid:
                raise ValueError(f"Invalid parameter {key!r} for estimator {self}. Valid parameters are: {valid!r}.")
        for key in sorted(params, key=lambda key: "__" in key):  # an inner one is of the estimator given beside it
            name, is_inner, inner = key.partition("__")
            if is_inner:
                getattr(self, name).set_params(**{inner: params[key]})
            else:
                setattr(self, name, params[key])
        return self

    def __repr__(self) -> str:
        """The class with the parameters that are not the defaults, in lines of at most REPR_WIDTH where they fit."""
        default, start = _defaults(type(self)), f"{type(self).__name__}("
        given = self.get_params(deep=False).items()
        changed = [f"{name}={value!r}" for name, value in given if repr(value) != repr(default[name])]
        lines = [start]
        for i, words in enumerate(changed):
            if i and len(lines[-1]) + len(words) + len(", )") > REPR_WIDTH:
                lines[-1] += ","
                lines.append(" " * len(start) + words)
            else:
                lines[-1] += f", {words}" if i else words
        return "\n".join(lines) + ")"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=self._estimator_type, target_tags=TargetTags(required=False))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """What a notebook shows: scikit-learn's diagram."""
        from sklearn.utils import estimator_html_repr

        return {"text/plain": repr(self), "text/html": estimator_html_repr(self)}


E = TypeVar("E", bound=Estimator)


def clone(estimator: E) -> E:
    """An unfitted estimator with the same parameters: what sklearn.base.clone makes of one of ours."""
    params = estimator.get_params(deep=False)
    return type(estimator)(
        **{
            name: clone(value) if isinstance(value, Estimator) else copy.deepcopy(value)
            for name, value in params.items()
        }
    )


def _defaults(cls: type) -> dict[str, Any]:
    """The parameters of a class's constructor, and their defaults."""
    return {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}
