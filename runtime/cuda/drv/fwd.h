#ifndef AITK_FWD_H
#define AITK_FWD_H
#include <cuda.h>

CUresult aitk_status(void);       // what the driver's own cuInit answered; CUDA_ERROR_NO_DEVICE where no driver was found
const char *aitk_library(void);   // what was opened
const char *aitk_text(void);      // why there is no driver, "" if there is one
int aitk_absentees(void);         // functions that this driver does not have

// What a driver that checks is told; see internal/fakecuda.
struct aitk_range {
	uint64_t ptr, bytes;
	uint32_t access, pad;
	const char *name;
};
int aitk_checks(void);
CUresult aitk_expect(CUstream stream, const char *position, int64_t picos, int n, const struct aitk_range *ranges);
#endif
