#include "CBATTErrorCode.h"
