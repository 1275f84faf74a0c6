/* Rows of up to 128 elements. */
#define DIM 128
#include "attentionmma.h"
