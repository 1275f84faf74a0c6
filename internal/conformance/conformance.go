// Package conformance holds importer, reference interpreter and CPU device against the test cases that the ONNX project publishes for its operators,
// of every release, and gradients against golden vector-Jacobian products. It is all tests: there is no code here for others to use.
//
// The corpus lies beside the repository (../shared/onnx-node) and its tests skip where it is not there. `go test` runs a sample; `make conformance`
// runs everything and prints what passes by tier and opset, and every case that does not pass with its reason.
//
// It must not judge leniently: a case passes only if every output has the type, shape and values that the corpus expects, through both the
// reference interpreter and the device, within the tolerance that the corpus states.
package conformance
