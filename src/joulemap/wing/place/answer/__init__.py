"""A model over the devices of a box: the best placement, each device alone, and why the mixture wins or does not."""
