"""unpack.py FROM.bz2 TO"""
import bz2
import os
import sys

source, target = sys.argv[1:]
with open(source, "rb") as file:
    data = bz2.decompress(file.read())
with open(target + ".part", "wb") as file:
    file.write(data)
os.replace(target + ".part", target)
