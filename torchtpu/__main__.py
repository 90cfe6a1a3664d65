"""`python -m torchtpu`: the same as the installed script `torchtpu`."""

from torchtpu.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
