"""A trained model for use elsewhere: one ONNX graph, or one program of torch.export."""
