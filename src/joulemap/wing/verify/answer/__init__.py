"""What people measured with their own tools, beside the prediction for it, and why the two differ."""
