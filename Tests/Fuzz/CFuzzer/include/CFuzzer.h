#pragma once
#include <stddef.h>
#include <stdint.h>

// libFuzzer, which the compiler links if the sanitizer is enabled.
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*target)(const uint8_t *data, size_t size));
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t limit);
