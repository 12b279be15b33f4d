"""The processes: each wires the library to signals, exit codes and the environment."""
