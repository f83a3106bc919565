"""Functions of JAX that dmir compiles: equal to JAX, without copies, from many threads."""

import os
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import dmir
from dmir import _build
from support import JAX_MODEL, Case, needs


@needs("jax", "numpy")
@unittest.skipIf(os.name == "nt", "the C interface is not tested on Windows")
class Compile(Case):
    def close(self, got, want, tolerance=1e-5):
        import jax
        import numpy as np

        self.assertEqual(jax.tree.structure(got), jax.tree.structure(want))
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want)):
            if not hasattr(b, "dtype"):
                self.assertEqual(a, b)
                continue
            self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype))
            np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), tolerance, tolerance)

    def test_equal_to_jax(self):
        import jax
        import jax.numpy as jnp
        import numpy as np

        random = np.random.default_rng(0)
        x, y = (random.normal(size=(8, 16)).astype(np.float32) for _ in range(2))
        ids = random.integers(0, 8, (5,))
        power = jax.jit(lambda x, n: x**n, static_argnums=1)
        array = lambda v: jnp.asarray(v) if isinstance(v, np.ndarray) else v
        for what, f, args, kwargs in [
            ("one result", lambda x, y: x @ y.T, (x, y), {}),
            (
                "a tree of arguments and results",
                lambda p: {"sum": p["x"] + p["y"][0], "both": (p["x"], p["y"][0].T)},
                ({"x": x, "y": [y]},),
                {},
            ),
            ("keyword arguments", lambda x, *, y: x - y, (x,), {"y": y}),
            ("an argument twice", lambda x, y: x * y, (x, x), {}),
            ("an unused argument", lambda x, y: x + 1, (x, y), {}),
            ("an argument as a result", lambda x: (x, x + 1), (x,), {}),
            ("a view that is not contiguous", lambda x: jnp.exp(x), (x.T[::2],), {}),
            ("double precision, which JAX makes single", lambda x: x * 2, (x.astype(np.float64),), {}),
            ("integers", lambda t, i: t[i], (x, ids), {}),
            ("booleans", lambda x, y: (x > y, jnp.where(x > y, x, y)), (x, y), {}),
            ("half precision", lambda x: x @ x.T, (x.astype(jnp.bfloat16),), {}),
            ("numbers of Python", lambda x, a, b: x * a + b, (x, 2.5, 3), {}),
            ("scalars", lambda x: x.sum(), (x,), {}),
            ("functions and texts", lambda x, act, name: {"y": act(x), "name": name}, (x, jnp.tanh, "n"), {}),
            ("static arguments", power, (x, 3), {}),
            ("no result", lambda x: None, (x,), {}),
            ("a loop", lambda x: jax.lax.fori_loop(0, 3, lambda i, v: v * 0.5 + i, x), (x,), {}),
            ("a branch", lambda x: jax.lax.cond(x[0, 0] > 0, lambda v: v, lambda v: -v, x), (x,), {}),
            ("a gradient", jax.value_and_grad(lambda x, y: jnp.sum(jnp.tanh(x @ y.T) ** 2)), (x, y), {}),
            ("random numbers", lambda key, x: x + jax.random.normal(key, x.shape), (jax.random.key(3), x), {}),
        ]:
            with self.subTest(what):
                want = f(*jax.tree.map(array, args), **jax.tree.map(array, kwargs))
                self.close(dmir.compile(f)(*args, **kwargs), want, 2e-2 if what.startswith("half") else 1e-5)

    def test_training_step(self):
        import jax
        import numpy as np

        random = np.random.default_rng(0)
        with self.module("model", JAX_MODEL) as model:
            params = {"w": random.normal(size=(64, 32)).astype(np.float32)}
            x, y = random.normal(size=(8, 64)).astype(np.float32), random.normal(size=(8, 32)).astype(np.float32)
            step, want = dmir.compile(model.step), params
            for _ in range(5):
                params, value = step(params, x, y)
                want, expected = jax.jit(model.step)(want, x, y)
            self.close((params, value), (want, expected), 1e-4)

    def test_arrays_are_not_copied(self):
        import jax.numpy as jnp
        import numpy as np

        seen = []
        f = dmir.compile(lambda x, y: x + y)
        x, y = np.ones((64, 64), np.float32), jnp.ones((64, 64))
        self.assertIsInstance(f(x, np.asarray(x)), np.ndarray)
        library = next(iter(f._programs.values()))._library
        run = library.run
        library.run = lambda inputs, outputs: (seen.append((inputs, outputs)), run(inputs, outputs))
        result = f(x, y)
        self.assertEqual(seen[0][0], [x.ctypes.data, y.unsafe_buffer_pointer()])
        self.assertEqual(seen[0][1], [result.unsafe_buffer_pointer()])  # an array of JAX, since one argument is

    def test_compiled_once_for_a_kind_of_arguments(self):
        import numpy as np

        traced = []

        def f(x, n, act=None):
            traced.append(x.shape)
            return x * n

        g = dmir.compile(f, static_argnames="n")
        for call in [lambda: g(np.ones(4, np.float32), n=2), lambda: g(np.zeros(4, np.float32), n=2)]:
            call()
        self.assertEqual(len(traced), 1)
        self.assertEqual(g(np.ones(4, np.float32), n=3).tolist(), [3, 3, 3, 3])
        g(np.ones(5, np.float32), n=2)
        g(np.ones(5, np.int32), n=2)
        self.assertEqual(len(traced), 4)
        self.assertEqual(g.__name__, "f")

    def test_cache(self):
        import numpy as np

        x = np.ones(4, np.float32)
        dmir.compile(lambda x: x + 1)(x)
        folder = self.root.parent / "cache/python"
        files = list(folder.iterdir())
        self.assertEqual([f.suffix for f in files], [".so"])
        self.addCleanup(_build._loaded.update, dict(_build._loaded))
        _build._loaded.clear()
        os.environ["DMIR"] = self.fails_to_compile()
        # Another line of another file with the same program: the key is without locations, but has the binary.
        with self.assertRaisesRegex(dmir.CompileError, "no compiler today"):
            dmir.compile(lambda x: x + 1)(x)
        self.assertEqual(list(folder.iterdir()), files)  # nothing half written
        folder.chmod(0o777)
        with self.assertRaisesRegex(dmir.CompileError, "others may write to it; DMIR_CACHE names another"):
            dmir.compile(lambda x: x + 2)(x)

    def fails_to_compile(self):
        return str(
            self.write("fails", "#!/bin/sh\necho 'error[DM999]: no compiler today' >&2\nexit 2\n").chmod(0o755) or self.root / "fails"
        )

    def test_threads(self):
        import numpy as np

        f = dmir.compile(lambda x: (x @ x.T).sum(axis=1))
        barrier = threading.Barrier(8)

        def work(k):
            x = np.full((32, 32), k, np.float32)
            barrier.wait()
            return all(np.array_equal(f(x), np.full(32, k * k * 32 * 32, np.float32)) for _ in range(50))

        with ThreadPoolExecutor(8) as pool:
            self.assertTrue(all(pool.map(work, range(8))))
        self.assertEqual(len(f._programs), 1)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_after_a_fork(self):
        status, out, err = self.python(
            "-W",
            "ignore",
            "-c",
            """if True:
            import os, dmir, numpy as np
            f = dmir.compile(lambda x: x @ x)
            x = np.ones((64, 64), np.float32)
            f(x)
            child = os.fork()
            good = bool((f(x) == 64).all())
            if child == 0:
                os._exit(0 if good else 1)
            print(good, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        )
        self.assertEqual((status, out), (0, "True 0\n"), err)

    def test_what_cannot_be_compiled(self):
        import jax
        import numpy as np

        x = np.ones(4, np.float32)

        def callback(x):
            return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

        for what, f, args, error, want in [
            ("a callback", callback, (x,), dmir.CompileError, r"error\[DM140\]"),
            ("complex numbers", lambda x: x * 2, (x.astype(np.complex64),), dmir.CompileError, "complex"),
            ("a failing function", lambda x: x.nope, (x,), dmir.TraceError, "AttributeError"),
            ("a key", lambda x: jax.random.key(0), (x,), dmir.CompileError, "jax.random.key_data"),
            ("arguments that do not fit", lambda x, y: x @ y, (x, np.ones(5, np.float32)), dmir.TraceError, "TypeError"),
        ]:
            with self.subTest(what), self.assertRaisesRegex(error, want):
                dmir.compile(f)(*args)


if __name__ == "__main__":
    unittest.main()
