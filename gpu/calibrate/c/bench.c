/* What a machine's processor reaches, measured with loops like those of compiled
 * programs and with threads that wait for work as those of a program do. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined(__AVX512F__)
enum { VECTOR = 64 };
#elif defined(__AVX__)
enum { VECTOR = 32 };
#else
enum { VECTOR = 16 };
#endif

enum { EMPTY, FILL, COPY, READ, GATHER, GATHER_ROWS, FMA32, FMA64, ADD32, ADD64, DRAW }; /* but for DRAW as in ../bench.go */

enum {
  SPINS = 2000, /* looks before a thread sleeps, as in a program's runtime */
  STREAMS = 2,  /* arrays of a job at most */
  CHAINS = 16   /* independent chains: what two units of a latency of four need, and more */
};

struct thread {
  struct bench *bench;
  pthread_t id;
  int32_t number;
  double kept; /* what is computed, so that it must be */
};

struct bench {
  int32_t count;
  char *memory;
  int64_t part; /* bytes of memory for each stream */
  uint32_t *numbers; /* of the rows that are gathered, one for each line of all memory at most */
  int32_t job;
  int64_t floats, repeats; /* of each stream of the job; passes over them */
  _Alignas(64) _Atomic uint64_t word;
  _Alignas(64) _Atomic int32_t left;
  _Atomic int32_t sleeping, stop;
  pthread_mutex_t mutex;
  pthread_cond_t next;
  struct thread *threads;
};

static void pause_thread(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

/* The passes of a loop are each done, in their order. */
#define BARRIER __asm__ volatile("" ::: "memory")

static void fill(float *to, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = 1;
}

static void copy_floats(float *restrict to, const float *restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = 2 * from[i]; /* not as it is: that would be memcpy */
}

static float sum(const float *from, int64_t n) {
  typedef float vector __attribute__((vector_size(VECTOR), aligned(4)));
  enum { W = VECTOR / 4, UNROLL = 8 };
  vector s[UNROLL] = {0};
  int64_t i = 0;
  for (; i + UNROLL * W <= n; i += UNROLL * W)
    for (int k = 0; k < UNROLL; k++) s[k] += *(const vector *)(from + i + k * W);
  for (int k = 1; k < UNROLL; k++) s[0] += s[k];
  float all = 0;
  for (int j = 0; j < W; j++) all += s[0][j];
  for (; i < n; i++) all += from[i];
  return all;
}

enum { LINE = 16, ROW_LINES = 4 }; /* floats of a line, and lines of a row that GATHER_ROWS reads */

/* Numbers below n, as many. */
static void draw(uint32_t *to, int64_t n, uint32_t seed) {
  for (int64_t i = 0; i < n; i++) {
    seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
    to[i] = (uint32_t)((uint64_t)seed * (uint64_t)n >> 32);
  }
}

/* As many rows of so many lines as there are, each by its number: as kernels read rows of a table. */
#define GATHERED(name, lines)                                                                 \
  static float name(const float *from, const uint32_t *numbers, int64_t n) {                 \
    typedef float vector __attribute__((vector_size(VECTOR), aligned(4)));                    \
    enum { W = VECTOR / 4, EACH = (lines) * LINE / W, TOGETHER = ROW_LINES / (lines), SUMS = TOGETHER * EACH }; \
    vector s[SUMS] = {0};                                                                     \
    for (int64_t i = 0; i + TOGETHER <= n; i += TOGETHER)                                     \
      for (int r = 0; r < TOGETHER; r++) {                                                    \
        const float *row = from + (int64_t)numbers[i + r] * (lines) * LINE;                   \
        for (int k = 0; k < EACH; k++) s[r * EACH + k] += *(const vector *)(row + k * W);     \
      }                                                                                       \
    for (int k = 1; k < SUMS; k++) s[0] += s[k];                                              \
    float all = 0;                                                                            \
    for (int j = 0; j < W; j++) all += s[0][j];                                               \
    return all;                                                                               \
  }

GATHERED(gather, 1)
GATHERED(gather_rows, ROW_LINES)

/* Chains of operations that do not wait for each other, n of each. */
#define ARITHMETIC(name, type, step)                                                  \
  static double name(int64_t n, double seed) {                                        \
    typedef type vector __attribute__((vector_size(VECTOR)));                         \
    vector x[CHAINS], a = {0}, b = {0};                                               \
    a += (type)(1 - seed), b += (type)seed;                                           \
    for (int k = 0; k < CHAINS; k++) x[k] = b + (type)k;                              \
    for (int64_t i = 0; i < n; i++)                                                   \
      for (int k = 0; k < CHAINS; k++) x[k] = step;                                   \
    double all = 0;                                                                   \
    for (int k = 0; k < CHAINS; k++) all += (double)x[k][0];                          \
    return all;                                                                       \
  }

ARITHMETIC(fma32, float, x[k] * a + b)
ARITHMETIC(fma64, double, x[k] * a + b)
ARITHMETIC(add32, float, x[k] + b)
ARITHMETIC(add64, double, x[k] + b)

static void work(struct thread *t) {
  struct bench *b = t->bench;
  int64_t first = b->floats * t->number / b->count, n = b->floats * (t->number + 1) / b->count - first;
  float *stream[STREAMS];
  uint32_t *numbers = b->numbers + first / LINE;
  for (int i = 0; i < STREAMS; i++) stream[i] = (float *)(b->memory + i * b->part) + first;
  switch (b->job) {
  case FILL: /* each thread its own parts, which are then near to it */
    for (int i = 0; i < STREAMS; i++) fill(stream[i], n);
    break;
  case COPY:
    for (int64_t i = 0; i < b->repeats; i++) {
      copy_floats(stream[0], stream[1], n);
      BARRIER;
    }
    break;
  case READ:
    for (int64_t i = 0; i < b->repeats; i++) {
      t->kept += sum(stream[0], n);
      BARRIER;
    }
    break;
  case GATHER:
    for (int64_t i = 0; i < b->repeats; i++) {
      t->kept += gather(stream[0], numbers, n / LINE);
      BARRIER;
    }
    break;
  case GATHER_ROWS:
    for (int64_t i = 0; i < b->repeats; i++) {
      t->kept += gather_rows(stream[0], numbers, n / (LINE * ROW_LINES));
      BARRIER;
    }
    break;
  case DRAW: /* repeats is how many floats a row has */
    draw(numbers, n / b->repeats, 1 + (uint32_t)t->number);
    break;
  case FMA32:
    t->kept += fma32(b->repeats, 1e-3 + t->kept * 1e-30);
    break;
  case FMA64:
    t->kept += fma64(b->repeats, 1e-3 + t->kept * 1e-30);
    break;
  case ADD32:
    t->kept += add32(b->repeats, 1e-3 + t->kept * 1e-30);
    break;
  case ADD64:
    t->kept += add64(b->repeats, 1e-3 + t->kept * 1e-30);
    break;
  }
}

#ifdef __linux__
/* Keeps the calling thread on the processor of a number among those of the process, so
 * that no two threads share one; returns those it had. */
static cpu_set_t keep_on(int32_t number) {
  cpu_set_t all, one;
  CPU_ZERO(&all);
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) == 0) return all;
  number %= CPU_COUNT(&all);
  for (int32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &all) && number-- == 0) CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
  return all;
}
#endif

static void *thread_main(void *arg) {
  struct thread *me = arg;
  struct bench *b = me->bench;
#ifdef __linux__
  keep_on(me->number);
#endif
  for (uint64_t seen = 0;;) {
    int32_t looks = 0;
    while (atomic_load(&b->word) == seen && looks++ < SPINS) pause_thread();
    if (atomic_load(&b->word) == seen) {
      pthread_mutex_lock(&b->mutex);
      atomic_fetch_add(&b->sleeping, 1);
      while (atomic_load(&b->word) == seen) pthread_cond_wait(&b->next, &b->mutex);
      atomic_fetch_sub(&b->sleeping, 1);
      pthread_mutex_unlock(&b->mutex);
    }
    seen++;
    if (atomic_load(&b->stop)) return NULL;
    work(me);
    atomic_fetch_sub(&b->left, 1);
  }
}

static void publish(struct bench *b) {
  atomic_fetch_add(&b->word, 1);
  if (atomic_load(&b->sleeping) == 0) return;
  pthread_mutex_lock(&b->mutex);
  pthread_cond_broadcast(&b->next);
  pthread_mutex_unlock(&b->mutex);
}

static void run(struct bench *b) {
  atomic_store(&b->left, b->count - 1);
  if (b->count > 1) publish(b);
  work(&b->threads[0]);
  while (atomic_load(&b->left) != 0) pause_thread();
}

void calibrate_stop(struct bench *b) {
  atomic_store(&b->stop, 1);
  publish(b);
  for (int32_t i = 1; i < b->count; i++) pthread_join(b->threads[i].id, NULL);
  pthread_cond_destroy(&b->next);
  pthread_mutex_destroy(&b->mutex);
  free(b->threads);
  free(b->memory);
  free(b->numbers);
  free(b);
}

/* Threads, and memory for jobs on bytes at most; NULL where there is not as much. */
struct bench *calibrate_start(int32_t threads, int64_t bytes) {
  struct bench *b = NULL;
  if (posix_memalign((void **)&b, 64, sizeof *b) != 0) return NULL;
  memset(b, 0, sizeof *b);
  b->count = 1;
  b->part = (bytes / 2 + 4095) / 4096 * 4096 + 4096 + 192; /* streams do not meet in one set of a cache */
  b->threads = calloc((size_t)threads, sizeof *b->threads);
  void *memory = NULL;
  b->numbers = calloc((size_t)(STREAMS * b->part) / (LINE * sizeof(float)) + 1, sizeof *b->numbers);
  if (!b->threads || !b->numbers || posix_memalign(&memory, 2 << 20, (size_t)(STREAMS * b->part)) != 0) {
    free(b->threads);
    free(b->numbers);
    free(b);
    return NULL;
  }
  b->memory = memory;
#ifdef MADV_HUGEPAGE
  madvise(memory, (size_t)(STREAMS * b->part), MADV_HUGEPAGE);
#endif
  pthread_mutex_init(&b->mutex, NULL);
  pthread_cond_init(&b->next, NULL);
  for (int32_t i = 0; i < threads; i++) b->threads[i] = (struct thread){.bench = b, .number = i};
  for (int32_t i = 1; i < threads; i++) {
    if (pthread_create(&b->threads[i].id, NULL, thread_main, &b->threads[i]) != 0) break;
    b->count++;
  }
  return b;
}

int32_t calibrate_threads(struct bench *b) { return b->count; }

int32_t calibrate_vector(void) { return VECTOR; }

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* The median time of a job without work, so often: most times are those of threads that
 * all run, whatever else the machine does. */
static double launch(struct bench *b, int64_t repeats) {
  static double list[4096];
  int64_t n = repeats < 4096 ? repeats : 4096;
  for (int64_t i = 0; i < n; i++) {
    double start = now();
    run(b);
    list[i] = now() - start;
  }
  qsort(list, (size_t)n, sizeof *list, ascending);
  return list[n / 2] * repeats;
}

static double timed(struct bench *b, int32_t job, int64_t bytes, int64_t repeats) {
  int gathers = job == GATHER || job == GATHER_ROWS;
  int64_t streams = job == READ || gathers ? 1 : STREAMS;
  b->floats = bytes / streams / 4;
  if (gathers) {
    b->job = DRAW;
    b->repeats = job == GATHER ? LINE : LINE * ROW_LINES;
    run(b);
  }
  b->job = job;
  b->repeats = repeats;
  if (job == EMPTY) return launch(b, repeats);
  double start = now();
  run(b);
  return now() - start;
}

/* The seconds that a job takes which moves bytes in each of its repeats. */
double calibrate_time(struct bench *b, int32_t job, int64_t bytes, int64_t repeats) {
#ifdef __linux__
  cpu_set_t before = keep_on(0); /* the calling thread is the caller's */
  double t = timed(b, job, bytes, repeats);
  sched_setaffinity(0, sizeof before, &before);
  return t;
#else
  return timed(b, job, bytes, repeats);
#endif
}
