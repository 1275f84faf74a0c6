#!/bin/sh
# Compiles the test kernels again. Needs Debian's clang-19; with clang-22 its text of the same kernels as well.
set -e
cd "$(dirname "$0")"
compile() { # compiler source target version suffix
	$1 --target=nvptx64-nvidia-cuda -march=sm_$3 -Xclang -target-feature -Xclang +ptx$4 -O3 -ffreestanding -ffp-contract=off -S "$2.c" -o "$2.$5.ptx"
}
for f in vector matmul reduce math ints convert control atomic table bugs; do
	compile clang-19 $f 75 63 sm75
	compile clang-19 $f 80 70 sm80
	if command -v clang-22 >/dev/null; then compile clang-22 $f 80 70 clang22; fi
done
for f in mma80 convert80 warp80 approx bugs80; do
	compile clang-19 $f 80 70 sm80
	if command -v clang-22 >/dev/null; then compile clang-22 $f 80 70 clang22; fi
done
compile clang-19 mma75 75 65 sm75
compile clang-19 fp8 89 81 sm89
