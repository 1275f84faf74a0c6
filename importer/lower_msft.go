package importer

// msftLowerer has the ops of com.microsoft that ONNX Runtime's optimizer writes.
func msftLowerer(opType string) lowerFunc {
	return nil
}
