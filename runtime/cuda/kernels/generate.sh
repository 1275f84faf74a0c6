#!/usr/bin/env bash
# Makes sm_75/*.ptx and sm_80/*.ptx of the C files here. The compiler is part of the result: clang 19 of Debian bookworm (apt-get install clang-19).
# No kernel is launched with more than 256 threads; the assembler is told, so that it may give each of them more registers. It
# would still rather spill than give more than 128, so that two blocks fit a processor; those that need more say that one is enough (wide, below).
# With --check it compares with what is there instead and changes nothing. Names of files as arguments restrict it to these.
set -euo pipefail
cd "$(dirname "$0")"

check=
if [ "${1:-}" = --check ]; then
  check=1
  shift
fi
clang=${CLANG:-clang-19}
if ! command -v "$clang" >/dev/null; then
  echo "$clang is not here: apt-get install clang-19, or set CLANG"
  exit 1
fi

# file and element types: f32 f64 h16 f16 make NAME_TYPE.ptx, int the same without a macro, - makes NAME.ptx, TYPE:80 makes it for sm_80 alone
modules() {
  cat <<'LIST'
unary f32 f64 h16 int
roundfloat f32 f64 h16
activation f32 f64 h16 int
arithmetic f32 f64 h16 int
compare f32 f64 h16 int
cast -
logic -
where -
move -
iota f32 f64 h16 int
cumsum f32 f64 h16 int
reduce f32 f64 h16 int
finite f32 f64 h16
argmax f32 f64 h16 int
gather -
scatter f32 f64 h16 int
dropout f32 f64 h16
sgd f32 f64 h16
adam f32 f64 h16
softmax f32 f64 h16
layernorm f32 f64 h16
batchnorm f32 f64 h16
crossentropy f32 f64 h16
pool f32 f64 h16
dequantize -
matmul f32 f64 h16
matmulmma f16 bf16:80
convmma f16 bf16:80
conv f32 f64 h16
attention f32 f64 h16
attention64mma f16 bf16:80
attention128mma f16 bf16:80
LIST
}

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
mkdir -p "$out/sm_75" "$out/sm_80"
compile() { # target ptx file module macro
  "$clang" --target=nvptx64-nvidia-cuda "-march=$1" "-D${1^^}" -Xclang -target-feature -Xclang "+$2" -O3 -ffreestanding -fno-math-errno -ffp-contract=off \
    -std=gnu11 -Wall -Wextra -Werror -Wno-unused-function -Wno-unused-parameter -Wno-unknown-attributes ${5:+-D$5} -S "$3.c" -o - |
    sed -e 's/[[:space:]]*\/\/.*$//' -e '/^[[:space:]]*$/d' |
    awk -v module="$4" '/\.entry/ { entry = 1; wide = /coded|matmul_fused/ || module ~ /^(conv|attention)_f64$|^pool_|^cumsum_|^reduce_int/ } { print } entry && $0 == ")" { print ".maxntid 256, 1, 1"; if (wide) print ".minnctapersm 1"; entry = 0 }' >"$out/$1/$4.ptx"
}
modules | while read -r file types; do
  if [ $# -gt 0 ] && [[ " $* " != *" $file "* ]]; then
    continue
  fi
  for t in $types; do
    case $t in
    -) name=$file macro= ;;
    int) name=${file}_int macro= ;;
    *) name=${file}_${t%:80} macro=${t%:80} macro=${macro^^} ;;
    esac
    # ldmatrix and mma.m16n8k8 came with PTX 6.5; what needs none of them stays with the older driver
    ptx=ptx63
    [[ $file != *mma ]] || ptx=ptx65
    [[ $t = *:80 ]] || compile sm_75 $ptx "$file" "$name" "$macro"
    compile sm_80 ptx70 "$file" "$name" "$macro"
  done
done
if [ -n "$check" ]; then
  for f in "$out"/sm_*/*.ptx; do
    diff -q "$f" "${f#"$out"/}"
  done
  echo "the texts are what the sources give"
else
  cp -r "$out"/sm_* .
fi
