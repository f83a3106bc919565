/* The threads of an instance. The tasks of a job are divided evenly among some of them,
 * by their numbers; the thread that calls dmir_run is number 0. A thread that is done
 * takes what others have not begun: one that the system has not woken yet, or that another
 * program has displaced, keeps nobody waiting. Between jobs threads look for the next one
 * for some microseconds, since steps follow each other closely, and sleep then. */
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

enum {
  MAX_THREADS = 4096,
  SPINS = 2000,     /* looks before a thread sleeps: 20 to 100 microseconds */
  GRAIN = 1 << 16,  /* FLOP and bytes that are worth another thread */
  CHUNK = 1 << 18,  /* those that are worth being taken on their own */
  CHUNKS = 4,       /* in which a thread takes its part, then */
  STACK = 8 << 20,  /* bytes of a thread's stack, of which systems commit what is used */
  STOP = 0xffff     /* in place of a number of threads: end */
};

struct thread {
  struct pool *pool;
  pthread_t id;
  int32_t number;
  void *scratch;
  /* The number of a job, shifted by 20, and how many chunks of this thread's part of it
   * are taken. */
  _Alignas(64) _Atomic uint64_t taken;
};

struct pool {
  int32_t count; /* with the calling thread */
  int32_t spins;
  struct job job;
  /* The current job: its number, shifted by 20, the chunks of each thread, shifted by 16,
   * and the threads that share it. Only who has taken a chunk of a job may read the job
   * itself: without that it may be the next one already. */
  _Alignas(64) _Atomic uint64_t word;
  _Alignas(64) _Atomic int32_t left; /* chunks that are not done */
  _Atomic int32_t sleeping; /* threads that wait for a job */
  _Atomic int32_t waiting;  /* the calling thread sleeps until the job ends */
  pthread_mutex_t mutex;
  pthread_cond_t next, ended;
  struct thread *threads;
};

static inline void pause_thread(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Takes a chunk of a thread's part of the job of word, if there is one left, and returns
 * its number; else -1. */
static int32_t take(struct thread *of, uint64_t word) {
  uint64_t job = word >> 20, chunks = word >> 16 & 15, seen = atomic_load(&of->taken);
  for (;;) {
    uint64_t n = seen >> 20 < job ? 0 : seen & 0xfffff;
    if (seen >> 20 > job || n >= chunks) return -1;
    if (atomic_compare_exchange_weak(&of->taken, &seen, job << 20 | (n + 1))) return (int32_t)n;
  }
}

/* Works on the job of word: on the thread's own part first. */
static void work_on(struct pool *pool, struct thread *me, uint64_t word) {
  int32_t n = word & 0xffff, chunks = word >> 16 & 15, done = 0;
  for (int32_t i = 0; i < n; i++) {
    int32_t k = (me->number + i) % n;
    for (int32_t c; (c = take(&pool->threads[k], word)) >= 0; done++) {
      int64_t at = (int64_t)k * chunks + c, of = (int64_t)n * chunks, tasks = pool->job.tasks;
      guarded(&pool->job, tasks * at / of, tasks * (at + 1) / of, me->scratch);
    }
  }
  if (done == 0 || atomic_fetch_sub(&pool->left, done) != done || !atomic_load(&pool->waiting)) return;
  pthread_mutex_lock(&pool->mutex);
  pthread_cond_signal(&pool->ended);
  pthread_mutex_unlock(&pool->mutex);
}

static uint64_t next_word(struct pool *pool, uint64_t seen) {
  uint64_t word;
  for (int32_t i = 0; i < pool->spins; i++) {
    if ((word = atomic_load(&pool->word)) != seen) return word;
    pause_thread();
  }
  pthread_mutex_lock(&pool->mutex);
  atomic_fetch_add(&pool->sleeping, 1);
  while ((word = atomic_load(&pool->word)) == seen) pthread_cond_wait(&pool->next, &pool->mutex);
  atomic_fetch_sub(&pool->sleeping, 1);
  pthread_mutex_unlock(&pool->mutex);
  return word;
}

static void *thread_main(void *arg) {
  struct thread *me = arg;
  struct pool *pool = me->pool;
  for (uint64_t word = 0;;) {
    word = next_word(pool, word);
    int32_t n = word & 0xffff;
    if (n == STOP) return NULL;
    if (me->number < n) work_on(pool, me, word);
  }
}

/* Makes threads look at a job of n threads, and returns its word. */
static uint64_t publish(struct pool *pool, int64_t n, int64_t chunks) {
  uint64_t word = ((atomic_load(&pool->word) >> 20) + 1) << 20 | (uint64_t)chunks << 16 | (uint64_t)n;
  atomic_store(&pool->word, word);
  if (atomic_load(&pool->sleeping) > 0) {
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_broadcast(&pool->next);
    pthread_mutex_unlock(&pool->mutex);
  }
  return word;
}

/* Runs a job on as many threads as its work is worth, and waits for its end. */
static void pool_run(struct pool *pool, struct job job, int64_t work) {
  int64_t n = work / GRAIN;
  if (n > job.tasks) n = job.tasks;
  if (n > pool->count) n = pool->count;
  if (n <= 1) {
    if (job.tasks > 0) guarded(&job, 0, job.tasks, pool->threads[0].scratch);
    return;
  }
  int64_t chunks = work / n / CHUNKS >= CHUNK && job.tasks >= n * CHUNKS ? CHUNKS : 1;
  pool->job = job;
  atomic_store(&pool->left, (int32_t)(n * chunks));
  work_on(pool, &pool->threads[0], publish(pool, n, chunks));
  for (int32_t i = 0; i < pool->spins; i++) {
    if (atomic_load(&pool->left) == 0) return;
    pause_thread();
  }
  pthread_mutex_lock(&pool->mutex);
  atomic_store(&pool->waiting, 1);
  while (atomic_load(&pool->left) != 0) pthread_cond_wait(&pool->ended, &pool->mutex);
  atomic_store(&pool->waiting, 0);
  pthread_mutex_unlock(&pool->mutex);
}

/* The processors that this process may use: by its affinity, and in a container by its
 * share of their time. */
static int32_t processors(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
  FILE *f = fopen("/sys/fs/cgroup/cpu.max", "r");
  long quota, period;
  if (f && fscanf(f, "%ld %ld", &quota, &period) == 2 && period > 0 && (quota + period - 1) / period < n) n = (quota + period - 1) / period;
  if (f) fclose(f);
#endif
  return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (int32_t)n;
}

static int32_t default_threads(void) {
  const char *text = getenv("DMIR_THREADS");
  long n = text ? strtol(text, NULL, 10) : 0;
  return n < 1 ? processors() : n > MAX_THREADS ? MAX_THREADS : (int32_t)n;
}

/* Starts the threads; if the system gives fewer than asked for, those are used. */
static void pool_start(struct pool *pool, int32_t count) {
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->next, NULL);
  pthread_cond_init(&pool->ended, NULL);
  pool->spins = count <= processors() ? SPINS : 0;
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, STACK);
  /* Signals of the process are for its own threads, but for those of faults. */
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGSEGV);
  sigdelset(&all, SIGBUS);
  sigdelset(&all, SIGFPE);
  sigdelset(&all, SIGILL);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pool->count = 1;
  for (int32_t i = 1; i < count; i++) {
    struct thread *t = &pool->threads[i];
    t->pool = pool;
    t->number = i;
    if (pthread_create(&t->id, &attr, thread_main, t) != 0) break;
    pool->count++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
}

static void pool_stop(struct pool *pool) {
  publish(pool, STOP, 0);
  for (int32_t i = 1; i < pool->count; i++) pthread_join(pool->threads[i].id, NULL);
  pthread_cond_destroy(&pool->ended);
  pthread_cond_destroy(&pool->next);
  pthread_mutex_destroy(&pool->mutex);
}
