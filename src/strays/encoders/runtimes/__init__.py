"""What runs a transformer: ONNX Runtime or PyTorch."""
