// api.h: how the driver's entry points begin and end.
#ifndef API_H
#define API_H
#include "fake.h"

// Takes the lock for the rest of the function; a call that may not go on answers at once. RETURN gives the lock back.
#define ENTER() do { CUresult e_ = enter(); if (e_) return leave(e_); } while (0)
#define ENTER0() do { CUresult e_ = enter0(); if (e_) return leave(e_); } while (0)
#define RETURN(x) return leave(x)
#define NEED(cond) do { if (!(cond)) return leave(ERR_INVALID_VALUE); } while (0)

// The name without suffix, and other old spellings, are the same function.
#define ALIAS(other, name) extern __typeof__(name) other __attribute__((alias(#name), visibility("default")))
#define STREAM(s, handle) stream *s = stream_of(handle); if (!s) return leave(ERR_INVALID_HANDLE)
#endif
