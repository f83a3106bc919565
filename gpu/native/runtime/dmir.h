/* The interface of a program that dmir compiled for a CPU: one function of a .dmir
 * text, as a shared object or as an object to link. Every such object has these
 * functions, about its own program. To use several programs in one process, open
 * their shared objects with dlopen (RTLD_LOCAL).
 *
 *   dmir *p = dmir_create(0, NULL, 0);
 *   dmir_bind_input(p, 0, x);
 *   dmir_bind_output(p, 0, y);
 *   if (dmir_run(p) != DMIR_OK) fprintf(stderr, "%s\n", dmir_error(p));
 *   dmir_destroy(p);
 *
 * Link with -lm -lpthread. An instance is used by one thread at a time, except for
 * dmir_cancel and dmir_at; instances are independent of each other. Its own threads
 * do not survive a fork.
 */
#ifndef DMIR_H
#define DMIR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DMIR_API
#define DMIR_API
#endif

/* What functions return. */
enum {
  DMIR_OK = 0,
  DMIR_INVALID = 1,   /* an argument is not valid */
  DMIR_UNBOUND = 2,   /* an input has no value */
  DMIR_CANCELLED = 3, /* dmir_cancel ended the run */
  DMIR_FAULTED = 4    /* a kernel did something invalid; only dmir_error, dmir_at and dmir_destroy are of use now */
};

/* An input or an output. */
typedef struct dmir_tensor {
  const char *name;
  const char *elem;       /* "f32", "bf16", "i32", …; an i1 takes a byte, two i4 take one */
  int32_t rank;
  const int64_t *shape;   /* rank sizes */
  const int64_t *strides; /* of each dimension, in elements */
  int64_t bytes;
  int32_t state; /* of an output: the input whose value in the next run it is; of an input: that output; -1: none */
  double init;   /* what the program wants each element of an input to begin with; NaN: nothing */
  double stddev; /* or the deviation of random numbers with mean 0; NaN: nothing */
} dmir_tensor;

typedef struct dmir dmir; /* an instance: memory, threads, state */

/* The version of this interface: 1. */
DMIR_API int32_t dmir_version(void);
/* The name of the function, without "@". */
DMIR_API const char *dmir_name(void);

DMIR_API int32_t dmir_inputs(void);
DMIR_API int32_t dmir_outputs(void);
/* A description, NULL if there is no such input or output. */
DMIR_API const dmir_tensor *dmir_input(int32_t i);
DMIR_API const dmir_tensor *dmir_output(int32_t i);

/* Allocates all memory of an instance and starts its threads, so that runs allocate
 * nothing. threads counts the one that calls dmir_run; 0 is the variable DMIR_THREADS,
 * else one for each processor that the process may use. The results do not depend on
 * it. Returns NULL and a text in error, of size bytes, if that is not possible. */
DMIR_API dmir *dmir_create(int32_t threads, char *error, size_t size);
DMIR_API void dmir_destroy(dmir *p);

/* Where an input is and where an output goes: bytes as dmir_tensor describes, which
 * stay the caller's and must be valid while dmir_run runs. Kernels use them directly,
 * without a copy, if they are aligned to their element and
 *   - an input is not overwritten by the program,
 *   - an output has memory of its own in the program.
 * Otherwise dmir_run copies inputs at its start and outputs at its end. Memory of
 * different inputs and outputs must not overlap, but for state:
 *
 * An output with state >= 0 is the value of an input in the next run. It stays in the
 * instance: its input is read in the first run after dmir_bind_input and then keeps
 * what the runs compute. If both are bound to the same memory, the state lives there
 * and is not copied. An output that is not bound or bound to NULL is not copied. */
DMIR_API int dmir_bind_input(dmir *p, int32_t i, const void *data);
DMIR_API int dmir_bind_output(dmir *p, int32_t i, void *data);

/* Runs the program once and waits for it. */
DMIR_API int dmir_run(dmir *p);
/* Copies an output of the last run, or the state as it is now. */
DMIR_API int dmir_read_output(dmir *p, int32_t i, void *to);
/* Ends the run that is in progress before its next step; without one, the next run.
 * Any thread and a signal handler may call it. State may be partly updated then. */
DMIR_API void dmir_cancel(dmir *p);
/* What the last function that failed reports; it stays until the next one fails. */
DMIR_API const char *dmir_error(const dmir *p);

/* A program that several devices run together calls this for each step in which they exchange
 * data, with the elements of its buffers, which may be one; 0 is success, any other result
 * ends the run as dmir_cancel does. */
typedef int32_t dmir_exchange(void *user, int32_t step, const void *from, int64_t from_bytes, void *to, int64_t to_bytes);
DMIR_API void dmir_on_collective(dmir *p, dmir_exchange *f, void *user);

/* The elements of the buffers of a value, from 0, that a step exchanges: a step that exchanges several as one calls with the
 * first. Valid while the exchange runs. */
DMIR_API int dmir_exchanged(const dmir *p, int32_t step, int32_t value, const void **from, int64_t *from_bytes, void **to, int64_t *to_bytes);

/* The same for collectives beside which kernels run, of a caller that has a thread for them: begin may return at once, and
 * finish returns when the collective of that step, and those begun before it, have ended; -1: all. Collectives are
 * done in the order in which they are begun. Those beside which nothing runs are given to the function of
 * dmir_on_collective, after the others have ended; without begin and finish all are. Every run ends with finish. */
typedef int32_t dmir_finish(void *user, int32_t step);
DMIR_API void dmir_on_background(dmir *p, dmir_exchange *begin, dmir_finish *finish, void *user);

/* Measurements of the last run, in nanoseconds. */
DMIR_API int32_t dmir_steps(void);
DMIR_API const char *dmir_step_name(int32_t step);
DMIR_API double dmir_step_time(const dmir *p, int32_t step);  /* of all its runs */
DMIR_API int64_t dmir_step_runs(const dmir *p, int32_t step); /* other than 1 in loops and branches */
DMIR_API double dmir_time(const dmir *p);                     /* of all steps, without copies of inputs and outputs */
/* The step that runs now, or ran last, or failed; -1: none. Any thread may call it. */
DMIR_API int32_t dmir_at(const dmir *p);
DMIR_API int32_t dmir_threads(const dmir *p);
/* Removes the instance's memory from the caches of the processor, for measurements. */
DMIR_API void dmir_flush(dmir *p);

#ifdef __cplusplus
}
#endif

#endif
