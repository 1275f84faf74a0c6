/* Rows of up to 64 elements. */
#define DIM 64
#include "attentionmma.h"
