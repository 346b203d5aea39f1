#!/usr/bin/env python3
"""unxz.py INPUT.xz OUTPUT: unpacks test data, with the standard library alone."""
import lzma
import shutil
import sys

with lzma.open(sys.argv[1]) as packed, open(sys.argv[2], "wb") as output:
    shutil.copyfileobj(packed, output)
