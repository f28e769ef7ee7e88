"""The report of `verify layout`."""

from countermark.actions.legacy import CheckedLayout
from countermark.cli.report import Report


def layout_report(source: str, checked: CheckedLayout) -> Report:
    """The layout with its links, and each file that differs from a product; what was not compared is told."""
    proven = checked.proven
    lines = [f"✓ {source}  steps {', '.join(proven.steps)}  links {checked.links}  products {len(proven.products)}"]
    lines.extend(
        f"    {name}  {' '.join(f'{algorithm}:{digest}' for algorithm, digest in hashes.items())}"
        for name, hashes in proven.products.items()
    )
    return Report(
        exit=checked.exit,
        evaluated=1 + checked.compared,
        of=1 + (checked.compared or len(proven.products)),
        findings=checked.findings,
        not_evaluated=() if checked.compared else tuple(f"product {name} (give --artifacts)" for name in proven.products),
        text="\n".join(lines),
        extra={
            "layout": {"steps": list(proven.steps), "links": checked.links, "products": {k: dict(v) for k, v in proven.products.items()}}
        },
    )
