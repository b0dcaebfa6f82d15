"""The tour that `make demo` takes: read tables, check them, describe them, look at six patients."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

import counterpath as cp
from counterpath.cli.tables import description_table


def main() -> None:
    """Everything it writes goes to the folder `demo`."""
    console = Console()
    folder = Path("demo")
    folder.mkdir(exist_ok=True)

    ward = cp.load_example_ward()
    console.print(ward)
    console.print()
    report = ward.check()
    console.print(str(report), highlight=False)
    console.print()
    console.print(description_table(ward))

    today = ward.until(12.0)
    plan = cp.Plan.continued() + cp.Plan.repeat("fluid", every=2.0, times=2)
    planned = plan.resolve(today)
    console.print(
        f"\nTwelve hours in, {len(today)} patients have {today.records.rows} records. A plan that keeps what is "
        f"running and gives fluid now and in two hours makes {planned.rows} treatments."
    )

    picture = folder / "patients.png"
    treated = [patient for patient in ward.patients if len(set(ward[[patient]].events.treatment)) == 2][:6]
    cp.draw_patients(ward, treated, path=picture)
    summary = folder / "cohort.txt"
    summary.write_text(f"{ward}\n\n{report}\n", encoding="utf-8")
    console.print(f"\nSix patients are drawn in {picture}, and the report is in {summary}.")


if __name__ == "__main__":
    main()
