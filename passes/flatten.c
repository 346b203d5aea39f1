#include "stele/pass.h"
