"""What one optimisation step needs, and the weights that training starts from."""
