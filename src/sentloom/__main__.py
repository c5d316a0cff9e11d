"""`python -m sentloom`: the same command, for `accelerate launch -m sentloom` and torchrun."""

from sentloom.cli import main

if __name__ == "__main__":
    main()
