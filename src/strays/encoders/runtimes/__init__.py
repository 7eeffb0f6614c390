"""What runs a transformer: batches of token ids to embeddings.

choice            which runtime, on which device, in which precision
onnx_runtime      ONNX Runtime: the fastest on a CPU
onnx_graph        the model as an ONNX graph, in float32 or int8
torch_runtime     PyTorch, on a CPU or a GPU
packed_bert       BERT without padding, for a GPU; triton_attention is its kernel
base              what a runtime promises; how many cores it may use
"""
