/* Repairs CUDA 13's header for gorgonia.org/cu v0.9.6, which calls seven functions in the form that they had before. Drivers keep serving that
 * form. This folder comes before that of the vendor's header: CGO_CFLAGS="-I.../include/compat -I/usr/local/cuda/include". */
#include_next <cuda.h>

#if CUDA_VERSION >= 13000
#undef cuCtxCreate
#undef cuMemAdvise
#undef cuMemPrefetchAsync
#undef cuGraphAddDependencies
#undef cuGraphGetEdges
#undef cuEventElapsedTime
#undef cuDeviceGetUuid
#define cuCtxCreate cuCtxCreate_v2
#define cuMemAdvise aitk_cuMemAdvise
#define cuMemPrefetchAsync aitk_cuMemPrefetchAsync
#define cuGraphAddDependencies aitk_cuGraphAddDependencies
#define cuGraphGetEdges aitk_cuGraphGetEdges
#define cuEventElapsedTime aitk_cuEventElapsedTime
#define cuDeviceGetUuid aitk_cuDeviceGetUuid
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *, unsigned int, CUdevice);
/* The unsuffixed symbols are declared in their new form under their own names, so the old form takes an assembler label. */
CUresult CUDAAPI aitk_cuMemAdvise(CUdeviceptr, size_t, CUmem_advise, CUdevice) __asm__("cuMemAdvise");
CUresult CUDAAPI aitk_cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream) __asm__("cuMemPrefetchAsync");
CUresult CUDAAPI aitk_cuGraphAddDependencies(CUgraph, const CUgraphNode *, const CUgraphNode *, size_t) __asm__("cuGraphAddDependencies");
CUresult CUDAAPI aitk_cuGraphGetEdges(CUgraph, CUgraphNode *, CUgraphNode *, size_t *) __asm__("cuGraphGetEdges");
CUresult CUDAAPI aitk_cuEventElapsedTime(float *, CUevent, CUevent) __asm__("cuEventElapsedTime");
CUresult CUDAAPI aitk_cuDeviceGetUuid(CUuuid *, CUdevice) __asm__("cuDeviceGetUuid");
#endif
