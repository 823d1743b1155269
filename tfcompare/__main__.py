"""Let `python -m tfcompare` do what the command `tfcompare` does."""

from orchestrator.__main__ import main

if __name__ == "__main__":
    main()
