# SPDX-License-Identifier: Apache-2.0
# OpenCV filters images on its OpenCL device (its "transparent API", cv2.UMat), as it comes from PyPI.
#   python cv_pipeline.py [edge] [images] [rounds]
# Prints a hash of each round's results. Canny is left out: on PoCL it is not the same from run to run.
import sys
edge, count, rounds = (int(a) for a in (sys.argv[1:] + ["512", "8", "4"][len(sys.argv) - 1:]))
import hashlib
import cv2
import numpy as np
cv2.ocl.setUseOpenCL(True)
if not cv2.ocl.useOpenCL(): sys.exit("OpenCV finds no OpenCL device")
rng = np.random.default_rng(3)
images = [cv2.UMat(rng.integers(0, 256, (edge, edge, 3), dtype=np.uint8)) for _ in range(count)]
square, large = np.ones((3, 3), np.uint8), np.ones((5, 5), np.uint8)
turn = np.float32([[.9, .1, 3], [-.1, .9, 5]])
for step in range(rounds):
  digest = hashlib.sha256()
  for image in images:
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    smooth = cv2.GaussianBlur(grey, (9, 9), 2.0)
    slope = cv2.Sobel(smooth, cv2.CV_32F, 1, 0)
    small = cv2.resize(cv2.multiply(slope, slope), (edge // 2, edge // 2), interpolation=cv2.INTER_LINEAR)
    spots = cv2.dilate(cv2.erode(cv2.threshold(grey, 100, 255, cv2.THRESH_BINARY)[1], square), large)
    turned = cv2.warpAffine(spots, turn, (edge, edge))
    product = cv2.gemm(small, small, 1e-6, None, 0)
    for result in (smooth, small, spots, turned, product): digest.update(np.ascontiguousarray(result.get()).tobytes())
  print("round", step, digest.hexdigest()[:16], cv2.ocl.Device_getDefault().name(), flush=True)
