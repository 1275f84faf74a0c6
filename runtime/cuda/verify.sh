#!/usr/bin/env bash
# What can be proved without a GPU, with NVIDIA's own compiler parts. They are fetched with pip into a folder that is thrown away (their licence does not let
# anybody ship them), or taken from NVIDIA_PARTS, a folder with nvidia/cu13/{bin/ptxas,include/cuda.h}.
#
#   - ptxas accepts every text: those for sm_75 on 7.5, those for sm_80 on 8.0, 8.6, 8.9, 9.0, 10.0 and 12.0.
#   - registers, spills and shared memory of each kernel are those of ptxas.golden (write it anew with --update); none spills.
#   - of the instructions of the innermost loops that use tensor cores at least 35 % multiply; the share with the loop around them is printed too.
#   - every constant and struct size in include/cuda.h is the vendor's.
#   - cu compiles against the vendor's header with include/compat in front.
set -euo pipefail
cd "$(dirname "$0")"
update=
[ "${1:-}" != --update ] || update=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

parts=${NVIDIA_PARTS:-}
if [ -z "$parts" ]; then
  parts=$scratch/parts
  mkdir "$parts"
  python3 -m pip download -q --no-deps -d "$parts" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-nvdisasm==13.5.37 || {
    echo "NVIDIA's wheels cannot be fetched here: not verified"
    exit 1
  }
  for w in "$parts"/*.whl; do
    python3 -m zipfile -e "$w" "$parts"
  done
fi
ptxas=$parts/nvidia/cu13/bin/ptxas
chmod +x "$ptxas" "$parts"/nvidia/cu13/bin/* 2>/dev/null || true
"$ptxas" --version | tail -1

echo "-- ptxas"
assemble() { # text arch
  local name
  name=$(basename "$1" .ptx)
  if ! "$ptxas" -v -arch="$2" "$1" -o /dev/null 2>"$scratch/$name.$2.log"; then
    sed "s|^|$name for $2: |" "$scratch/$name.$2.log"
    return 1
  fi
  awk -v m="$name" -v a="$2" '
    /Function properties for/ { k = $NF }
    /bytes spill stores/ { for (i = 1; i <= NF; i++) if ($i == "spill" && $(i+1) == "stores,") s = $(i-2) }
    /Used [0-9]+ registers/ {
      smem = 0
      for (i = 1; i <= NF; i++) { if ($i == "Used") r = $(i+1); if ($i == "smem," || $i == "smem") smem = $(i-2) }
      print m, k, a, "registers", r, "spill", s, "shared", smem
    }' "$scratch/$name.$2.log" >"$scratch/$name.$2.out"
}
export -f assemble
export ptxas scratch
{
  for f in kernels/sm_75/*.ptx; do echo "$f sm_75"; done
  for f in kernels/sm_80/*.ptx; do
    for a in sm_80 sm_86 sm_89 sm_90 sm_100 sm_120; do echo "$f $a"; done
  done
} | xargs -P "$(nproc)" -L 1 bash -c 'assemble "$0" "$1"'
cat "$scratch"/*.out | LC_ALL=C sort >"$scratch/ptxas"
echo "$(wc -l <"$scratch/ptxas") kernels assembled"
if grep -v 'spill 0 ' "$scratch/ptxas"; then
  echo "these kernels spill"
  exit 1
fi
if [ -n "$update" ]; then
  cp "$scratch/ptxas" ptxas.golden
elif ! diff ptxas.golden "$scratch/ptxas"; then
  echo "registers or shared memory differ from ptxas.golden: runtime/cuda/verify.sh --update, and say why in the commit"
  exit 1
fi

echo "-- inner loops"
mix() { # what, file: of the innermost loops that multiply, and of the loop around each, from label to branch back
  awk -v what="$1" -v where="$2" '
    function share(fn, from, to, inner,   i, h) {
      for (i = from; i < to; i++) if (ins[i] ~ what) h++
      if (h < 8) return 0
      printf "%s%s: %d of %d, %d %%\n", inner ? where " " fn : "   with the loop around it", "", h, to - from, 100 * h / (to - from)
      if (inner && 100 * h < 35 * (to - from)) bad = 1
      return 1
    }
    /^\.text\./ { fn = $1; gsub(/^\.text\.|:.*$/, "", fn); n = 0; begin = end = -1; split("", lab); seen = 0 }
    /^\.L_x_[0-9]+:/ { l = $1; sub(/:/, "", l); lab[l] = n }
    /^ +\/\*[0-9a-f]+\*\/ / {
      ins[n++] = $0
      if (match($0, /BRA.*\.L_x_[0-9]+/) && match($0, /\.L_x_[0-9]+/)) {
        t = substr($0, RSTART, RLENGTH)
        if (!(t in lab)) next
        if (begin >= 0 && lab[t] <= begin) { share(fn, lab[t], n, 0); begin = -1; end = n }
        else if (lab[t] >= end && !(what == "FFMA" && seen) && share(fn, lab[t], n, 1)) { begin = lab[t]; end = n; seen = 1 }
      }
    }
    END { exit bad }'
}
loops() { # file arch
  "$ptxas" -arch="$2" "$1" -o "$scratch/cubin"
  "$parts/nvidia/cu13/bin/nvdisasm" -c "$scratch/cubin" >"$scratch/sass"
}
# mma of 7.5 and 8.0, and f32 on the ordinary units
for f in kernels/sm_75/*mma_f16.ptx kernels/sm_80/*mma_*.ptx kernels/sm_80/matmul_f32.ptx; do
  what=HMMA
  [[ $f != *_f32* ]] || what=FFMA
  loops "$f" "$(basename "$(dirname "$f")")"
  mix $what "$(basename "$(dirname "$f")") $(basename "$f" .ptx)" <"$scratch/sass" || {
    echo "$f: fewer than 35 % of an inner loop multiply"
    exit 1
  }
done

echo "-- header"
{
  echo '#include <cuda.h>'
  grep -oE '\bCU(DA)?_[A-Z0-9_a-z]+ = (0x[0-9a-f]+|[0-9]+)' include/cuda.h | sed -E 's/(.*) = (.*)/_Static_assert((long long)\1 == \2, "\1");/'
  grep -oE '^#define CU_[A-Z0-9_]+ 0x[0-9]+' include/cuda.h | awk '{ print "_Static_assert(" $2 " == " $3 ", \"" $2 "\");" }'
} >"$scratch/constants.c"
gcc -fsyntax-only -I "$parts/nvidia/cu13/include" "$scratch/constants.c"
sizes=$(grep -oE '\} (CUDA_[A-Z0-9_]+|CUuuid);' include/cuda.h | tr -d '};' | sort -u)
print_sizes() {
  {
    printf '#include <cuda.h>\n#include <stdio.h>\nint main(void) {\n'
    for s in $sizes; do echo "printf(\"$s %zu\\n\", sizeof($s));"; done
    echo '}'
  } >"$scratch/sizes.c"
  gcc -I "$1" -o "$scratch/sizes" "$scratch/sizes.c" && "$scratch/sizes"
}
print_sizes include >"$scratch/ours"
print_sizes "$parts/nvidia/cu13/include" >"$scratch/theirs"
diff "$scratch/ours" "$scratch/theirs"
echo "$(grep -c Static "$scratch/constants.c") constants and $(echo "$sizes" | wc -w) structs are the vendor's"

echo "-- cu with the vendor's header"
CGO_ENABLED=1 CGO_CFLAGS="-I$PWD/include/compat -I$parts/nvidia/cu13/include -DAITK_CUDA_H=vendor" go build gorgonia.org/cu
echo "compiles with include/compat in front"
