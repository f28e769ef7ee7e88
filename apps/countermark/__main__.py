"""`python -I -m countermark` is the console script, without the current folder on the import path."""

from countermark.cli.entry import main

main()
