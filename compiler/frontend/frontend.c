#include "frontend/frontend.h"
