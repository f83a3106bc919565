/* Runs of a program: the order of its steps, and what is copied before and after them. This
 * file and those that it includes do not depend on the program, whose file defines its table. */
#include "table.h"
#include "instance.h"
#include <time.h>

#if defined(__has_feature)
#define CLANG_SANITIZES_ADDRESS __has_feature(address_sanitizer)
#else
#define CLANG_SANITIZES_ADDRESS 0
#endif

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static void run_job(dmir *p, kernel_function *kernel, void **args, int64_t tasks, int64_t work) {
  struct job job = {kernel, args, tasks, &p->fault};
  pool_run(&p->pool, job, work);
}

static void copy_kernel(void **args, int64_t first, int64_t last, void *scratch) {
  (void)scratch;
  int64_t end = last * BLOCK, bytes = (int64_t)args[2];
  if (end > bytes) end = bytes;
  memcpy((char *)args[0] + first * BLOCK, (char *)args[1] + first * BLOCK, (size_t)(end - first * BLOCK));
}

static void fill_kernel(void **args, int64_t first, int64_t last, void *scratch) {
  (void)scratch;
  int64_t end = last * BLOCK, bytes = (int64_t)args[2];
  if (end > bytes) end = bytes;
  memset((char *)args[0] + first * BLOCK, 0, (size_t)(end - first * BLOCK));
}

static void move(dmir *p, kernel_function *kernel, void *to, const void *from, int64_t bytes) {
  void *args[] = {to, (void *)from, (void *)bytes};
  if (to != from) run_job(p, kernel, args, (bytes + BLOCK - 1) / BLOCK, bytes);
}

static int stopped(dmir *p) { return p->fault.signal || p->cancelled; }

static void ended(dmir *p, int32_t i) {
  double t = now();
  p->ns[i] += t - p->mark;
  p->mark = t;
}

/* Waits for the collective of step i and those begun before it, -1: for all. The time is that of the collective. */
static void settle(dmir *p, int32_t i) {
  if (!p->begun) return;
  if (p->finish(p->background_user, i) != 0) p->cancelled = 1;
  if (i < 0) {
    p->begun = 0;
    p->mark = now();
  } else {
    ended(p, i);
  }
}

/* Gives a collective to the caller: between two kernels, or beside the next ones. */
static void exchange(dmir *p, int32_t i) {
  const struct step *s = &dmir_table.steps[i];
  const struct buffer *to = &dmir_table.buffers[dmir_table.args[s->args]], *from = &dmir_table.buffers[dmir_table.args[s->args + 1]];
  int beside = s->beside && p->begin && p->finish;
  if (!beside) settle(p, -1);
  dmir_exchange *f = beside ? p->begin : p->exchange;
  void *user = beside ? p->background_user : p->exchange_user;
  if (!f || f(user, i, p->args[s->args + 1], from->bytes, p->args[s->args], to->bytes) != 0) p->cancelled = 1;
  if (beside) p->begun = 1;
}

int dmir_exchanged(const dmir *p, int32_t step, int32_t value, const void **from, int64_t *from_bytes, void **to, int64_t *to_bytes) {
  if (step < 0 || step >= dmir_table.step_count || dmir_table.steps[step].kind != COLLECTIVE || value < 0 || value >= dmir_table.steps[step].tasks) return DMIR_INVALID;
  int32_t at = dmir_table.steps[step].args + 2 * value;
  *to = p->args[at];
  *to_bytes = dmir_table.buffers[dmir_table.args[at]].bytes;
  *from = p->args[at + 1];
  *from_bytes = dmir_table.buffers[dmir_table.args[at + 1]].bytes;
  return DMIR_OK;
}

#if defined(__SANITIZE_ADDRESS__) || CLANG_SANITIZES_ADDRESS
void __asan_poison_memory_region(const volatile void *at, size_t bytes);
void __asan_unpoison_memory_region(const volatile void *at, size_t bytes);

/* Lets the sanitizer report what the launch s accesses of the workspace that is none of its arguments. */
static void fence(dmir *p, const struct step *s) {
  int32_t end = dmir_table.arg_count;
  for (int32_t i = 0; i < dmir_table.step_count; i++)
    if (dmir_table.steps[i].args > s->args && dmir_table.steps[i].args < end) end = dmir_table.steps[i].args;
  __asan_poison_memory_region(p->workspace, (size_t)dmir_table.workspace);
  for (int32_t a = s->args; a < end; a++) __asan_unpoison_memory_region(p->args[a], (size_t)dmir_table.buffers[dmir_table.args[a]].bytes);
}

static void unfence(dmir *p) { __asan_unpoison_memory_region(p->workspace, (size_t)dmir_table.workspace); }
#else
static void fence(dmir *p, const struct step *s) {
  (void)p;
  (void)s;
}
static void unfence(dmir *p) { (void)p; }
#endif

static void run_step(dmir *p, int32_t i) {
  const struct step *s = &dmir_table.steps[i];
  if (s->behind >= 0) {
    settle(p, s->behind);
    if (stopped(p)) return;
  }
  p->runs[i]++;
  if (s->kind == LAUNCH) {
    fence(p, s);
    run_job(p, dmir_table.kernels[s->kernel], p->args + s->args, s->tasks, s->work);
    unfence(p);
  } else if (s->kind == COLLECTIVE) {
    exchange(p, i);
  } else if (s->kind == COPY) {
    move(p, copy_kernel, p->args[s->args], p->args[s->args + 1], s->work);
  } else {
    move(p, fill_kernel, p->args[s->args], NULL, s->work);
  }
  ended(p, i);
}

/* Runs the steps of a part, in the order that decisions in it determine. */
static void run_steps(dmir *p, int32_t from, int32_t to) {
  for (int32_t i = from; i < to && !stopped(p);) {
    const struct step *s = &dmir_table.steps[i];
    int32_t first = i + 1, second = first + s->parts[0], end = second + s->parts[1];
    p->at = i;
    if (s->kind == REPEAT || s->kind == LOOP || s->kind == BRANCH) { /* they come behind all steps before them */
      settle(p, -1);
      if (stopped(p)) return;
    }
    switch (s->kind) {
    case REPEAT:
      if (end == second) p->runs[i] += s->tasks;
      for (int64_t n = 0; n < s->tasks && end > second && !stopped(p); n++) {
        p->runs[i]++;
        run_steps(p, second, end);
      }
      break;
    case LOOP:
      for (;;) {
        run_steps(p, first, second);
        if (stopped(p)) return;
        p->runs[i]++;
        int again = *(const char *)p->args[s->args] != 0;
        ended(p, i);
        if (!again) break;
        run_steps(p, second, end);
      }
      break;
    case BRANCH: {
      int yes = *(const char *)p->args[s->args] != 0;
      p->runs[i]++;
      ended(p, i);
      run_steps(p, yes ? first : second, yes ? second : end);
      break;
    }
    default:
      run_step(p, i);
    }
    i = end;
  }
  settle(p, -1);
}

/* Gives inputs that kernels do not read in the caller's memory their values. */
static void copy_in(dmir *p) {
  for (int32_t i = 0; i < dmir_table.input_count; i++) {
    const struct port *port = &dmir_table.inputs[i];
    if (port->tensor.state < 0 || p->fresh[i]) move(p, copy_kernel, p->address[port->buffer], p->input[i], port->tensor.bytes);
    p->fresh[i] = 0;
  }
}

static void copy_out(dmir *p) {
  for (int32_t o = 0; o < dmir_table.output_count; o++) {
    const struct port *port = &dmir_table.outputs[o];
    if (p->output[o] && !in_place(p, port->tensor.state, o)) move(p, copy_kernel, p->output[o], p->address[port->buffer], port->tensor.bytes);
  }
}

/* Makes the outputs that are state the inputs of the next run. */
static void carry(dmir *p) {
  for (int32_t c = 0; c < dmir_table.carry_count; c++) {
    const struct carry *m = &dmir_table.carries[c];
    if (m->staged >= 0) move(p, copy_kernel, p->staged + m->staged, p->address[m->from], dmir_table.buffers[m->from].bytes);
  }
  for (int32_t c = 0; c < dmir_table.carry_count; c++) {
    const struct carry *m = &dmir_table.carries[c];
    move(p, copy_kernel, p->address[m->to], m->staged >= 0 ? p->staged + m->staged : p->address[m->from], dmir_table.buffers[m->from].bytes);
  }
}

/* Why the run ended before its end. */
static int early(dmir *p) {
  if (!p->fault.signal) {
    p->cancelled = 0;
    return failed(p, DMIR_CANCELLED, "the run was cancelled");
  }
  char what[256];
  describe_fault(&p->fault, what, sizeof what);
  const struct step *s = p->at >= 0 ? &dmir_table.steps[p->at] : NULL;
  if (!s) return failed(p, DMIR_FAULTED, "the copy of an input or an output failed: %s", what);
  if (s->kind == LAUNCH) return failed(p, DMIR_FAULTED, "the kernel %s failed: %s", dmir_table.kernel_names[s->kernel], what);
  return failed(p, DMIR_FAULTED, "the step %s failed: %s", s->name, what);
}

int dmir_run(dmir *p) {
  if (p->fault.signal) return failed(p, DMIR_FAULTED, "an earlier run failed, and the memory of this instance may be damaged");
  for (int32_t i = 0; i < dmir_table.input_count; i++)
    if (!p->input[i] && dmir_table.inputs[i].tensor.bytes > 0) return failed(p, DMIR_UNBOUND, "the input %s is not bound", dmir_table.inputs[i].tensor.name);
  if (!p->bound) bind(p);
  memset(p->ns, 0, dmir_table.step_count * sizeof *p->ns);
  memset(p->runs, 0, dmir_table.step_count * sizeof *p->runs);
  p->at = -1;
  copy_in(p);
  double start = p->mark = now();
  run_steps(p, 0, dmir_table.step_count);
  settle(p, -1); /* of a run that was stopped */
  p->total = now() - start;
  if (stopped(p)) return early(p);
  int32_t last = p->at;
  p->at = -1;
  copy_out(p);
  carry(p);
  if (p->fault.signal) return early(p);
  p->at = last;
  return DMIR_OK;
}

int dmir_read_output(dmir *p, int32_t o, void *to) {
  if (o < 0 || o >= dmir_table.output_count) return failed(p, DMIR_INVALID, "there is no output %d; there are %d", o, dmir_table.output_count);
  const struct port *port = &dmir_table.outputs[o];
  int32_t i = port->tensor.state;
  if (!p->address[port->buffer]) return failed(p, DMIR_INVALID, "there was no run yet");
  memcpy(to, p->address[i >= 0 ? dmir_table.inputs[i].buffer : port->buffer], (size_t)port->tensor.bytes);
  return DMIR_OK;
}

static void flush(const char *at, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) {
#if defined(__x86_64__)
    __builtin_ia32_clflush(at + i);
#elif defined(__aarch64__)
    __asm__ volatile("dc civac, %0" ::"r"(at + i) : "memory");
#endif
  }
}

void dmir_flush(dmir *p) {
  for (int32_t b = 0; b < dmir_table.buffer_count; b++)
    if (p->address[b]) flush(p->address[b], dmir_table.buffers[b].bytes);
}
