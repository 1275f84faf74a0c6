// Package onnxpb is the ONNX file format: messages generated from onnx.proto, and Read, the bounded reader in front of them.
//
// It knows bytes and fields and nothing of what an operator means; nothing of our graph appears here. Read never allocates what a
// file merely declares: every length is held against the bytes that are really there before it is believed, nesting and the number
// of messages are limited, and the data of large tensors is not read at all but only located.
package onnxpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative onnx.proto
