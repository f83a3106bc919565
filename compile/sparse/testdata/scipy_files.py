"""Writes the .npz files of this folder with scipy.sparse.save_npz: one matrix in each format, and an array of three dimensions."""

import os

import numpy as np
import scipy.sparse as sp

folder = os.path.dirname(os.path.abspath(__file__))
dense = np.zeros((4, 6))
dense[0, 1], dense[0, 4], dense[2, 0], dense[2, 5], dense[3, 3] = 1.5, -2, 3, 4.25, -5
for name in ["csr", "csc", "coo"]:
    sp.save_npz(os.path.join(folder, name + ".npz"), sp.coo_array(dense).asformat(name))
sp.save_npz(os.path.join(folder, "bsr.npz"), sp.bsr_array(dense, blocksize=(2, 3)), compressed=False)
sp.save_npz(os.path.join(folder, "dia.npz"), sp.dia_array(dense))
unsorted = sp.csr_matrix((np.array([-2, 1.5, 3, 4.25, -5], np.float32), np.array([4, 1, 0, 5, 3]), np.array([0, 2, 2, 4, 5])), shape=(4, 6))
sp.save_npz(os.path.join(folder, "unsorted.npz"), unsorted)
twice = sp.coo_array((np.array([1, 2, 3]), (np.array([0, 1, 0]), np.array([1, 1, 1]))), shape=(2, 2))
sp.save_npz(os.path.join(folder, "twice.npz"), twice)
cube = sp.coo_array((np.array([7, 8, 9], np.int32), (np.array([0, 1, 1]), np.array([2, 0, 2]), np.array([1, 1, 3]))), shape=(2, 3, 4))
sp.save_npz(os.path.join(folder, "cube.npz"), cube)
