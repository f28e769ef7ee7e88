"""The version of this release; the build reads it from here, so that no start of the program has to ask the installed metadata."""

__version__ = "0.1.0"
