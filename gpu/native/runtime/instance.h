/* An instance of a program: its memory, and what is bound to it. */
#include "fault.h"
#include "half.h"
#include "pool.h"
#include <stdarg.h>
#include <sys/mman.h>

enum {
  WORKSPACE_ALIGN = 256,
  HUGE_PAGE = 2 << 20,
  BLOCK = 1 << 16 /* bytes of a task of a move */
};

struct dmir {
  struct pool pool;
  struct fault fault;
  char *workspace, *scratch, *staged;
  void **address; /* of each buffer in this run */
  void **args;    /* dmir_table.args as addresses */
  const void **constant; /* by buffer: data that the caller has given */
  const void **input;
  void **output;
  char *fresh; /* by input: it was bound since the last run */
  int bound;   /* addresses are those of the last bindings */
  double *ns;
  int64_t *runs;
  double mark, total;
  dmir_exchange *exchange;
  void *exchange_user;
  dmir_exchange *begin;
  dmir_finish *finish;
  void *background_user;
  int begun; /* a collective was begun, and not all have ended */
  _Atomic int cancelled;
  _Atomic int32_t at;
  char error[512];
};

int32_t dmir_version(void) { return 1; }
const char *dmir_name(void) { return dmir_table.name; }
int32_t dmir_inputs(void) { return dmir_table.input_count; }
int32_t dmir_outputs(void) { return dmir_table.output_count; }
const dmir_tensor *dmir_input(int32_t i) { return i < 0 || i >= dmir_table.input_count ? NULL : &dmir_table.inputs[i].tensor; }
const dmir_tensor *dmir_output(int32_t i) { return i < 0 || i >= dmir_table.output_count ? NULL : &dmir_table.outputs[i].tensor; }
int32_t dmir_steps(void) { return dmir_table.step_count; }
const char *dmir_step_name(int32_t i) { return i < 0 || i >= dmir_table.step_count ? NULL : dmir_table.steps[i].name; }
double dmir_step_time(const dmir *p, int32_t i) { return i < 0 || i >= dmir_table.step_count ? 0 : p->ns[i]; }
int64_t dmir_step_runs(const dmir *p, int32_t i) { return i < 0 || i >= dmir_table.step_count ? 0 : p->runs[i]; }
double dmir_time(const dmir *p) { return p->total; }
int32_t dmir_at(const dmir *p) { return p->at; }
int32_t dmir_threads(const dmir *p) { return p->pool.count; }
void dmir_on_collective(dmir *p, dmir_exchange *f, void *user) {
  p->exchange = f;
  p->exchange_user = user;
}
void dmir_on_background(dmir *p, dmir_exchange *begin, dmir_finish *finish, void *user) {
  p->begin = begin;
  p->finish = finish;
  p->background_user = user;
}
void dmir_cancel(dmir *p) { p->cancelled = 1; }
const char *dmir_error(const dmir *p) { return p->error; }

static int failed(dmir *p, int status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(p->error, sizeof p->error, format, list);
  va_end(list);
  return status;
}

/* Memory is committed when it is touched: buffers in the caller's memory take none. */
static void *allocate(int64_t bytes) {
  void *at = NULL;
  size_t align = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : WORKSPACE_ALIGN;
  if (posix_memalign(&at, align, bytes > 0 ? (size_t)bytes : 1) != 0) return NULL;
#ifdef MADV_HUGEPAGE
  if (align == HUGE_PAGE) madvise(at, (size_t)bytes, MADV_HUGEPAGE);
#endif
  return at;
}

static void release(dmir *p) {
  free(p->workspace);
  free(p->scratch);
  free(p->staged);
  free(p->address);
  free(p->args);
  free(p->constant);
  free(p->input);
  free(p->output);
  free(p->fresh);
  free(p->ns);
  free(p->runs);
  free(p->pool.threads);
  free(p);
}

dmir *dmir_create(int32_t threads, char *error, size_t size) {
  if (threads < 1) threads = default_threads();
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  dmir *p = allocate(sizeof *p);
  if (p) memset(p, 0, sizeof *p);
  int done = p && (p->workspace = allocate(dmir_table.workspace)) && (p->scratch = allocate(dmir_table.scratch * threads)) &&
             (p->staged = allocate(dmir_table.staged)) && (p->address = calloc(dmir_table.buffer_count + 1, sizeof *p->address)) &&
             (p->constant = calloc(dmir_table.buffer_count + 1, sizeof *p->constant)) && (p->args = calloc(dmir_table.arg_count + 1, sizeof *p->args)) && (p->input = calloc(dmir_table.input_count + 1, sizeof *p->input)) &&
             (p->output = calloc(dmir_table.output_count + 1, sizeof *p->output)) && (p->fresh = calloc(dmir_table.input_count + 1, 1)) &&
             (p->ns = calloc(dmir_table.step_count + 1, sizeof *p->ns)) &&
             (p->runs = calloc(dmir_table.step_count + 1, sizeof *p->runs)) &&
             (p->pool.threads = allocate(threads * (int64_t)sizeof *p->pool.threads));
  if (!done) {
    if (p) release(p);
    if (error) snprintf(error, size, "%s needs %lld bytes of memory, and there are not as many", dmir_table.name, (long long)(dmir_table.workspace + dmir_table.staged + dmir_table.scratch * threads));
    return NULL;
  }
  memset(p->pool.threads, 0, (size_t)threads * sizeof *p->pool.threads);
  for (int32_t i = 0; i < threads; i++) p->pool.threads[i].scratch = p->scratch + dmir_table.scratch * i;
  p->at = -1;
  pthread_once(&faults_once, catch_faults);
  pool_start(&p->pool, threads);
  return p;
}

void dmir_destroy(dmir *p) {
  if (!p) return;
  pool_stop(&p->pool);
  release(p);
}

static int aligned(const void *at, const struct port *port) { return (uintptr_t)at % (uintptr_t)port->align == 0; }

/* Whether the state that is input i and output o lives in the caller's memory. */
static int in_place(const dmir *p, int32_t i, int32_t o) {
  return i >= 0 && o >= 0 && p->input[i] && p->output[o] == p->input[i] && aligned(p->input[i], &dmir_table.inputs[i]);
}

int dmir_bind_input(dmir *p, int32_t i, const void *data) {
  if (i < 0 || i >= dmir_table.input_count) return failed(p, DMIR_INVALID, "there is no input %d; there are %d", i, dmir_table.input_count);
  if (!data && dmir_table.inputs[i].tensor.bytes > 0) return failed(p, DMIR_INVALID, "the input %s is bound to NULL", dmir_table.inputs[i].tensor.name);
  p->input[i] = data;
  p->fresh[i] = 1;
  p->bound = 0;
  return DMIR_OK;
}

#ifdef CONSTANTS_OUTSIDE
/* Of objects that dmir itself runs: where a constant is, which must be aligned to its elements. */
DMIR_API int dmir_bind_constant(dmir *p, int32_t buffer, const void *data) {
  if (buffer < 0 || buffer >= dmir_table.buffer_count) return failed(p, DMIR_INVALID, "there is no buffer %d; there are %d", buffer, dmir_table.buffer_count);
  p->constant[buffer] = data;
  p->bound = 0;
  return DMIR_OK;
}
#endif

int dmir_bind_output(dmir *p, int32_t o, void *data) {
  if (o < 0 || o >= dmir_table.output_count) return failed(p, DMIR_INVALID, "there is no output %d; there are %d", o, dmir_table.output_count);
  int32_t i = dmir_table.outputs[o].tensor.state;
  int was = in_place(p, i, o);
  p->output[o] = data;
  p->bound = 0;
  if (was && !in_place(p, i, o)) p->fresh[i] = 1; /* the instance reads the state where it was */
  if (!was && in_place(p, i, o) && !p->fresh[i]) memcpy(data, p->address[dmir_table.inputs[i].buffer], (size_t)dmir_table.inputs[i].tensor.bytes);
  return DMIR_OK;
}

/* Where each buffer is. */
static void bind(dmir *p) {
  for (int32_t b = 0; b < dmir_table.buffer_count; b++)
    p->address[b] = p->constant[b] ? (void *)p->constant[b] : dmir_table.buffers[b].data ? (void *)dmir_table.buffers[b].data : p->workspace + dmir_table.buffers[b].offset;
  for (int32_t o = 0; o < dmir_table.output_count; o++) {
    const struct port *port = &dmir_table.outputs[o];
    if (port->direct && p->output[o] && aligned(p->output[o], port)) p->address[port->buffer] = p->output[o];
  }
  for (int32_t i = 0; i < dmir_table.input_count; i++) {
    const struct port *port = &dmir_table.inputs[i];
    int caller = in_place(p, i, port->tensor.state) || (port->direct && aligned(p->input[i], port));
    if (caller && port->tensor.bytes > 0) p->address[port->buffer] = (void *)p->input[i];
  }
  for (int32_t a = 0; a < dmir_table.arg_count; a++) p->args[a] = p->address[dmir_table.args[a]];
  p->bound = 1;
}
