"""Writes the generated tables of every page.

python -m steadyseg.studies tables
"""

import argparse

from steadyseg.studies.harness.pages import all_pages
from steadyseg.studies.harness.tables import write_tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=("tables",))
    parser.parse_args()
    for page, tables in all_pages().items():
        write_tables(page, tables)


if __name__ == "__main__":
    main()
