"""One module or package for each command, called by its name."""
