#include "stele/compiler.h"
