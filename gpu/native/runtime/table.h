/* The description of a program, which dmir generates: dmir_table and what it refers to, of the
 * types below. Nothing but the interface is visible outside of an object. */
#define _GNU_SOURCE /* for sched_getaffinity */
#define DMIR_API __attribute__((visibility("default")))
#include "dmir.h"

/* Runs tasks first <= t < last of a launch. args are its buffers, scratch is memory of
 * the calling thread. */
typedef void kernel_function(void **args, int64_t first, int64_t last, void *scratch);

/* A part of the workspace, or a constant with data of its own. */
struct buffer {
  int64_t offset, bytes;
  const unsigned char *data; /* NULL: in the workspace */
};

struct port {
  dmir_tensor tensor;
  int32_t buffer;
  int32_t align;  /* of its elements, in bytes */
  int32_t direct; /* kernels may use the caller's memory */
};

enum step_kind { LAUNCH, FILL, COPY, LOOP, REPEAT, BRANCH, COLLECTIVE };

struct step {
  const char *name;
  enum step_kind kind;
  int32_t kernel;   /* of a launch */
  int32_t args;     /* where its buffers begin in the args: a launch's arguments; of moves and collectives to and from; a predicate */
  int32_t parts[2]; /* steps of the parts that follow a decision */
  int64_t tasks;    /* of a launch; how often a repetition runs; the values of a collective */
  int64_t work;     /* of a launch: FLOP and bytes, by which threads are used; of a move: bytes */
  int32_t beside;   /* of a collective: steps that do not wait for it run next */
  int32_t behind;   /* the last collective that must have ended, of those that others run beside; -1: none */
};

/* A state that lies elsewhere than its input, which it is copied to after a run. */
struct carry {
  int32_t from, to; /* buffers */
  int64_t staged;   /* where it is copied to first, since other copies overwrite it; -1: nowhere */
};

struct table {
  const char *name;
  kernel_function *const *kernels;
  const char *const *kernel_names;
  const struct buffer *buffers;
  const struct port *inputs, *outputs;
  const struct step *steps;
  const int32_t *args; /* buffers */
  const struct carry *carries;
  int32_t buffer_count, input_count, output_count, step_count, arg_count, carry_count;
  int64_t scratch, workspace, staged; /* bytes: of a thread, of the buffers, of the carries */
};

extern const struct table dmir_table __attribute__((visibility("hidden")));
