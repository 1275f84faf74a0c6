# make test       what needs Go alone
# make check      what a change must pass: .ci/run, under 20 minutes on two cores
# make check-long everything that takes longer: the race detector everywhere, tests with the tag long, five minutes of each fuzzer
# make conformance  every test case of the ONNX project, by tier and opset, where they lie beside the repository
# make generate   the protobuf code again (needs protoc)
# make build-cuda the command with the CUDA device; needs a C compiler, nothing of CUDA
# make test-cuda  the CUDA device on the fake driver (gcc); test-gpu: the same on this machine's GPU
# make cuda-verify kernels and header held against NVIDIA's own parts, which it fetches; cuda-kernels: the PTX again (clang-19)
# make bench      all benchmarks, for benchstat
# make bench-plan  the planner and the allocator on public instances, beside what others published (SECTION=fixed, free, networks, joint, pack or traces: that alone)

GO ?= go

.PHONY: build-cuda test-cuda test-cuda-long test-gpu cuda-verify cuda-kernels build test check check-long conformance generate bench bench-plan fmt clean

build:
	CGO_ENABLED=0 $(GO) build -o aitk ./cmd/aitk

test:
	$(GO) test ./...

check:
	.ci/run

check-long: check
	$(GO) test -race -timeout 2h ./...
	$(GO) test -tags long -timeout 4h ./...
	$(MAKE) test-cuda-long
	FUZZ_SECONDS=300 .ci/run fuzz

conformance:
	$(GO) test -v -timeout 1h ./internal/conformance -conformance.full -conformance.list=$(CURDIR)/conformance.txt

generate:
	GOBIN=$(CURDIR)/.bin $(GO) install google.golang.org/protobuf/cmd/protoc-gen-go
	PATH=$(CURDIR)/.bin:$$PATH $(GO) generate ./...

bench:
	$(GO) test -run '^$$' -bench . -benchmem -timeout 1h ./...

bench-plan:
	$(GO) run ./internal/benchplan $(SECTION)

fmt:
	gofmt -w $$(git ls-files '*.go')

clean:
	rm -rf aitk .bin

# The cgo flags of one package do not reach another, so gorgonia.org/cu is told by the environment where our header is. The build cache does not see
# changes of it: its hash is part of the flags.
CUDA_HEADER := $(CURDIR)/runtime/cuda/include
CUDA_ENV = CGO_ENABLED=1 CGO_CFLAGS="-I$(CUDA_HEADER) -DAITK_CUDA_H=$$(sha256sum <$(CUDA_HEADER)/cuda.h | cut -c1-16)"
CUDA_TESTS := ./runtime/cuda/... ./internal/e2e/oncuda

build-cuda:
	$(CUDA_ENV) $(GO) build -tags cuda -o aitk ./cmd/aitk

test-cuda:
	$(CUDA_ENV) $(GO) vet -tags cuda $(CUDA_TESTS) ./cmd/aitk
	$(CUDA_ENV) $(GO) test -tags cuda -timeout 30m $(CUDA_TESTS)
	$(CUDA_ENV) $(GO) test -tags cuda -timeout 30m -run CUDA ./cmd/aitk

# All steps of the trainings, every order of the device with every budget, each call of the driver as the one that fails, and lanes under the race detector.
test-cuda-long:
	$(CUDA_ENV) $(GO) test -tags "cuda long" -timeout 4h -v ./internal/e2e/oncuda
	$(CUDA_ENV) $(GO) test -tags cuda -timeout 4h -run CUDA ./cmd/aitk -lost 1
	$(CUDA_ENV) $(GO) test -race -tags cuda -timeout 1h -run 'TestConformance/(lanes|load|data)|TestGraphs|TestLost|TestOverlap|TestPlanted' ./runtime/cuda

test-gpu:
	AITK_GPU=1 $(CUDA_ENV) $(GO) test -tags cuda -count 1 -v -timeout 30m $(CUDA_TESTS)

cuda-verify:
	runtime/cuda/verify.sh

cuda-kernels:
	runtime/cuda/kernels/generate.sh
