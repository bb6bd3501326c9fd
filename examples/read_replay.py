"""Loads q_h of a replay store (segmented or plain) into numpy, after checking every digest of the manifest.
pip install node_modules/rollbook/python, then: python read_replay.py STORE"""
import sys

from rollbook import ReplayStore

store = ReplayStore(sys.argv[1])
store.verify()
for name, values in sorted(store.dense().items()):
    print(f"{name:16} {str(values.dtype):8} {values.shape}")
