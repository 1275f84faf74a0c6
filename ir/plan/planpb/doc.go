// Package planpb is the plan file's schema, compiled. Only package plan uses it; none of its types leaves that package.
package planpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative plan.proto
