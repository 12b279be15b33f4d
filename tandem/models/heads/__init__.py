"""Box predictors: from feature maps to box codes and class scores."""
