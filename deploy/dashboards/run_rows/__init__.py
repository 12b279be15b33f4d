"""The rows of Tandem / Run."""
