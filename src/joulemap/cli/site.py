"""`joulemap site`."""

from __future__ import annotations

from joulemap.cli.command import command
from joulemap.cli.option.run import Site
from joulemap.cli.output import OutputOptions


@command
def site(*, site: Site = None, output: OutputOptions) -> None:
    """Show prices, power, host and habits of this place, and where they are stated.

    `--site` replaces the environment, such as JOULEMAP_GRID. That replaces `joulemap.toml`, or `[tool.joulemap]` of
    `pyproject.toml`, in this folder or the nearest above. JOULEMAP_SITE_FILE names another file.

    \b
    joulemap site
    joulemap site --site electricity=0.31USD/kWh --site price-per-hour.l4=0.40USD/h
    """
    from joulemap.ask.site import KNOWN, list_values, read_site
    from joulemap.system.config import HABIT, find_config, list_habits

    path = find_config().path
    stated = {**read_site(site or ()).stated, **list_habits()}
    output.write_table(
        list_values({**KNOWN, **HABIT}, stated),
        "name | value stated | unit | from source | default usual | used by uses",
        keep="stated source",
        answer=f"{path} holds here" if path else "no joulemap.toml here or above: defaults hold",
    )
