"""`tilewright run --check-operators`: every value of the graph against its operator's reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .console import console, count, note, print_json, progress
from .tables import listing

if TYPE_CHECKING:
    from numpy import generic
    from numpy.typing import NDArray

    from tilewright.debugging.operator_check import OperatorReport
    from tilewright.package import Package

ALL = 1 << 30


def run_and_check(
    package: Package,
    inputs: Mapping[str, NDArray[generic]],
    outputs: Mapping[str, Path],
    reference: str | None,
    *,
    check: bool,
    engines: str | None,
    json: bool,
) -> None:
    """Run once, write the outputs wanted, and show what was compared.

    `reference` names a model whose constants are taken instead of the package's. Raises MismatchError.
    """
    with progress("run") as report:
        from tilewright.debugging.operator_check import check_operators, report_data
        from tilewright.ipu21.simulator.choice import TRANSLATED

        graph = None
        if reference is not None:
            report("read the model")
            from tilewright.models.loader import load_model

            graph = load_model(reference)
        report("run and compare")
        result = check_operators(package, inputs, graph=graph, check=check, engines=engines or TRANSLATED)
    from .package import save_array

    for name, path in outputs.items():
        save_array(path, result.outputs[name])
        note(f"wrote {path}")
    if json:
        print_json(report_data(result, package))
        return
    _show(result, package)


def _show(result: OperatorReport, package: Package) -> None:
    out = console()
    rows = []
    for item in result.checked:
        step = package.profile.steps[item.step].name
        time = f" (time {item.instance + 1})" if item.instance else ""
        what = f"{item.value}, copied" if item.copy else item.value
        rows.append((what, f"{step}{time}", "exact" if item.worst == 0 else f"{item.worst:.1%} of bound"))
    listing(out, "Compared", ("value", "when whole", ">largest error"), rows, limit=ALL)
    listing(out, "Not compared", ("value", "reason"), list(result.skipped.items()), limit=ALL)
    if result.unkept:
        out.print(f"kept nowhere, judged with what follows: {', '.join(result.unkept)}", markup=False)
    out.print(f"{count(len(result.checked))} values are within their operators' tolerance.", markup=False)
