"""The KV cache outside the model: state blobs and the prefix store."""
