"""Python peers of the learners, one thread each: JSON lines in, JSON lines out. Times are CPU seconds of this process."""
import json
import sys
import time

import torch

torch.set_num_threads(1)
# Standard output carries the answers, so output of libraries goes to standard error.
answers, sys.stdout = sys.stdout, sys.stderr


def rate(step, seconds):
    """Steps per CPU second, after a warm-up."""
    for _ in range(10):
        step()
    count, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        step()
        count += 1
    return count / (time.process_time() - start)


def network(inputs, outputs):
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, outputs)
    )


def data(inputs, outputs, rows=4096):
    g = torch.Generator().manual_seed(1)
    return (
        torch.randn(rows, inputs, generator=g),
        torch.randint(outputs, (rows,), generator=g),
        torch.randn(rows, generator=g),
        torch.randn(rows, inputs, generator=g),
    )


def cql_torch(batch, inputs, outputs, seconds):
    """Autograd with fused Adam: double Q, Huber, conservative term, minibatch drawn each step."""
    x, a, r, n = data(inputs, outputs)
    q, target = network(inputs, outputs), network(inputs, outputs)
    adam = torch.optim.Adam(q.parameters(), lr=6.25e-5, fused=True)

    def step():
        i = torch.randint(4096, (batch,))
        with torch.no_grad():
            best = q(n[i]).argmax(1, keepdim=True)
            y = r[i] + 0.99 * target(n[i]).gather(1, best).squeeze(1)
        values = q(x[i])
        chosen = values.gather(1, a[i].unsqueeze(1)).squeeze(1)
        loss = torch.nn.functional.smooth_l1_loss(chosen, y) + (values.logsumexp(1) - chosen).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()

    return rate(step, seconds)


def cql_manual(batch, inputs, outputs, seconds):
    """The algorithm of `cql_torch` with a backward pass written by hand."""
    x, a, r, n = data(inputs, outputs)
    q, target = network(inputs, outputs), network(inputs, outputs)
    parameters = list(q.parameters())
    adam = torch.optim.Adam(parameters, lr=6.25e-5, fused=True)
    w1, b1, w2, b2, w3, b3 = parameters
    for p in parameters:
        p.grad = torch.zeros_like(p)
    rows = torch.arange(batch)

    @torch.no_grad()
    def step():
        i = torch.randint(4096, (batch,))
        best = q(n[i]).argmax(1, keepdim=True)
        y = r[i] + 0.99 * target(n[i]).gather(1, best).squeeze(1)
        s, act = x[i], a[i]
        h1 = torch.addmm(b1, s, w1.t()).relu_()
        h2 = torch.addmm(b2, h1, w2.t()).relu_()
        values = torch.addmm(b3, h2, w3.t())
        d = values.softmax(1)
        d[rows, act] += (values[rows, act] - y).clamp(-1, 1) - 1
        d /= batch
        torch.mm(d.t(), h2, out=w3.grad)
        torch.sum(d, 0, out=b3.grad)
        d2 = (d @ w3) * (h2 > 0)
        torch.mm(d2.t(), h1, out=w2.grad)
        torch.sum(d2, 0, out=b2.grad)
        d1 = (d2 @ w2) * (h1 > 0)
        torch.mm(d1.t(), s, out=w1.grad)
        torch.sum(d1, 0, out=b1.grad)
        adam.step()

    return rate(step, seconds)


def cql_d3rlpy(batch, inputs, outputs, seconds):
    """d3rlpy's own loop: a minibatch from its replay buffer, then an update."""
    import d3rlpy
    import numpy as np

    rng = np.random.default_rng(1)
    dataset = d3rlpy.dataset.MDPDataset(
        observations=rng.standard_normal((4096, inputs)).astype(np.float32),
        actions=rng.integers(outputs, size=(4096, 1)),
        rewards=rng.standard_normal((4096, 1)).astype(np.float32),
        terminals=(np.arange(4096) % 64 == 63).astype(np.float32),
        action_space=d3rlpy.ActionSpace.DISCRETE,
        action_size=outputs,
    )
    algo = d3rlpy.algos.DiscreteCQLConfig(batch_size=batch).create(device="cpu:0")
    algo.build_with_dataset(dataset)
    return rate(lambda: algo.update(dataset.sample_transition_batch(batch)), seconds)


def ppo_sb3(steps):
    """stable-baselines3 with the zoo's settings for CartPole: environment steps per CPU second."""
    import gymnasium
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    env = make_vec_env("CartPole-v1", n_envs=8, seed=1)
    linear = lambda start: lambda left: left * start
    model = PPO(
        "MlpPolicy", env, n_steps=32, batch_size=256, gae_lambda=0.8, gamma=0.98, n_epochs=20, ent_coef=0.0,
        learning_rate=linear(1e-3), clip_range=linear(0.2), seed=1, device="cpu",
    )
    model.learn(512)
    start = time.process_time()
    model.learn(steps)
    return steps / (time.process_time() - start)


CALLS = {each.__name__: each for each in (cql_torch, cql_manual, cql_d3rlpy, ppo_sb3)}
for line in sys.stdin:
    name, *args = json.loads(line)
    print(json.dumps(CALLS[name](*args)), file=answers, flush=True)
