"""`python -m joulemap`."""

from joulemap.cli import main

if __name__ == "__main__":
    main()
