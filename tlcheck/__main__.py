"""`python -m tlcheck`: the same as the `tlcheck` command."""

from tlcheck.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
