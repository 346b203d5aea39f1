#include "stele/program.h"
