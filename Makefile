# make test       what needs Go alone
# make check      what a change must pass: .ci/run, under 20 minutes on two cores
# make check-long everything that takes longer: the race detector everywhere, tests with the tag long, five minutes of each fuzzer
# make conformance  every test case of the ONNX project, by tier and opset, where they lie beside the repository
# make generate   the protobuf code again (needs protoc)
# make bench      all benchmarks, for benchstat

GO ?= go

.PHONY: build test check check-long conformance generate bench fmt clean

build:
	CGO_ENABLED=0 $(GO) build -o aitk ./cmd/aitk

test:
	$(GO) test ./...

check:
	.ci/run

check-long: check
	$(GO) test -race -timeout 2h ./...
	$(GO) test -tags long -timeout 4h ./...
	FUZZ_SECONDS=300 .ci/run fuzz

conformance:
	$(GO) test -v -timeout 1h ./internal/conformance -conformance.full -conformance.list=$(CURDIR)/conformance.txt

generate:
	GOBIN=$(CURDIR)/.bin $(GO) install google.golang.org/protobuf/cmd/protoc-gen-go
	PATH=$(CURDIR)/.bin:$$PATH $(GO) generate ./...

bench:
	$(GO) test -run '^$$' -bench . -benchmem -timeout 1h ./...

fmt:
	gofmt -w $$(git ls-files '*.go')

clean:
	rm -rf aitk .bin
