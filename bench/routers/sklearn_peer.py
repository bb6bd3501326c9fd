"""Routers of scikit-learn with default settings: one regression or classification of the reward per candidate. The
router chooses the candidate with the best prediction.

Answers JSON lines. TfidfVectorizer encodes texts, OneHotEncoder encodes categories; numbers stay unchanged."""
import json
import resource
import sys
import time
import warnings

import numpy as np
import scipy.sparse as sparse
import sklearn
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import OneHotEncoder

warnings.filterwarnings("ignore")
state = {}


def load(path):
    data = json.load(open(path))
    state["texts"] = data["texts"]
    fields = data["fields"]
    names = sorted({name for row in fields for name in row})
    kind = lambda name: any(isinstance(row.get(name), str) for row in fields)
    category = [name for name in names if kind(name)]
    number = [name for name in names if not kind(name)]
    column = lambda name, convert, empty: [convert(row.get(name, empty)) for row in fields]
    state["category"] = np.array([column(name, str, "") for name in category], dtype=object).T
    state["number"] = np.array([column(name, float, 0) for name in number]).T
    return {"version": sklearn.__version__}


def features(train, test):
    blocks = []
    if state["texts"] is not None:
        words = TfidfVectorizer().fit([state["texts"][i] for i in train])
        blocks.append([words.transform([state["texts"][i] for i in part]) for part in (train, test)])
    if len(state["category"]):
        encoder = OneHotEncoder(handle_unknown="ignore").fit(state["category"][train])
        blocks.append([encoder.transform(state["category"][part]) for part in (train, test)])
    if len(state["number"]):
        blocks.append([sparse.csr_matrix(state["number"][part]) for part in (train, test)])
    return [sparse.hstack([block[side] for block in blocks]).tocsr() for side in (0, 1)]


def fitted(kind, x, y):
    if kind == "ridge":
        return Ridge().fit(x, y).predict
    if kind == "knn":
        return KNeighborsRegressor(n_neighbors=min(5, len(y))).fit(x, y).predict
    low, high = y.min(), y.max()
    if low == high:
        return lambda other: np.full(other.shape[0], low)
    if len(set(y)) > 2:
        return None
    model = LogisticRegression().fit(x, y > low)
    return lambda other: low + (high - low) * model.predict_proba(other)[:, 1]


def split(train, test, arms, kinds):
    """`arms`: for each candidate [positions in train, rewards]. Returns the choices on `test` and the seconds."""
    start = time.perf_counter()
    x, other = features(np.array(train), np.array(test))
    shared = time.perf_counter() - start
    out = {}
    for kind in kinds:
        start = time.perf_counter()
        scores = []
        for places, rewards in arms:
            predict = fitted(kind, x[places], np.array(rewards, float)) if places else None
            if predict is None and places:
                scores = None
                break
            scores.append(np.full(len(test), -np.inf) if predict is None else predict(other))
        if scores is None:
            continue
        seconds = shared + time.perf_counter() - start
        out[kind] = {"choices": np.argmax(np.array(scores), axis=0).tolist(), "seconds": seconds}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"learners": out, "peakMiB": peak}


for line in sys.stdin:
    name, *args = json.loads(line)
    print(json.dumps({"load": load, "split": split}[name](*args)), flush=True)
