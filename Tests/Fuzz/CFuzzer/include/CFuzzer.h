#pragma once
#include <stddef.h>
#include <stdint.h>

// libFuzzer, which the compiler links where the sanitizer is asked for.
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*target)(const uint8_t *data, size_t size));
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t limit);
