"""Detection models in Keras 3: backbones, heads and the SSD assembled from them."""
