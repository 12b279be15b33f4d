"""Settings of convolutions (initialiser, regulariser, activation, batch norm), from a config."""
