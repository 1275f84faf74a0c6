#ifndef AITK_FWD_H
#define AITK_FWD_H
#include <cuda.h>

CUresult aitk_status(void);       // what the driver's own cuInit answered; CUDA_ERROR_NO_DEVICE where no driver was found
const char *aitk_library(void);   // what was opened
const char *aitk_text(void);      // why there is no driver, "" if there is one
int aitk_absentees(void);         // functions that this driver does not have
#endif
