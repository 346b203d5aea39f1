#include "stele/target.h"
