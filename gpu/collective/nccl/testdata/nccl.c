// A library with NCCL's interface on memory of the host, between the threads of a process. Calls
// check their arguments and wait for all ranks. See nccl.h of NCCL 2.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int result;
enum { success, cuda_error, system_error, internal_error, invalid_argument, invalid_usage, remote_error };
typedef struct { char internal[128]; } unique_id;

enum { max_ranks = 8, max_queue = 64, the_stream = 0x5eed, magic = 0x6e63636c };

// One side of a message or of a collective.
typedef struct { const char *in; char *out; size_t bytes; int ready; } slot;

typedef struct clique {
  unique_id id;
  int ranks, joined, arrived, round, aborted, failed;
  char call[96]; // what all ranks must call, with its arguments
  slot part[max_ranks];
  slot message[max_ranks][max_ranks]; // from, to
  struct clique *next;
} clique;

typedef struct { int magic, rank, dead; clique *all; } comm;

typedef struct { int receive, peer; void *at; size_t bytes; comm *c; } queued;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static clique *cliques;
static int ids;
static char fail_call[32];
static int fail_rank = -1;
static result fail_code;
static _Thread_local int depth, in_queue;
static _Thread_local queued queue[max_queue];
static _Thread_local char last[160];

// fail_next makes calls of a rank fail.
void fail_next(const char *call, int rank, result code) {
  snprintf(fail_call, sizeof fail_call, "%s", call);
  fail_rank = rank;
  fail_code = code;
}

static result fails(const char *call, int rank) {
  if (fail_rank != rank || strcmp(call, fail_call)) return success;
  snprintf(last, sizeof last, "injected in %s", call);
  return fail_code;
}

static result invalid(const char *why) {
  snprintf(last, sizeof last, "%s", why);
  return invalid_argument;
}

const char *ncclGetErrorString(result r) {
  static const char *text[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error",
                               "invalid argument", "invalid usage", "remote process exited or there was a network error"};
  return r >= 0 && r <= remote_error ? text[r] : "unknown result code";
}
const char *ncclGetLastError(comm *c) { (void)c; return last; }

result ncclGetUniqueId(unique_id *id) {
  result r = fails("ncclGetUniqueId", 0);
  if (r) return r;
  pthread_mutex_lock(&lock);
  ids++;
  for (int i = 0; i < 128; i++) id->internal[i] = (char)(ids * 131 + i * 7 + 1);
  pthread_mutex_unlock(&lock);
  return success;
}

result ncclCommInitRank(comm **out, int ranks, unique_id id, int rank) {
  if (!out || ranks < 1 || ranks > max_ranks || rank < 0 || rank >= ranks) return invalid("ranks");
  for (int i = 1; i < 128; i++)
    if (id.internal[i] != (char)(id.internal[0] + i * 7)) return invalid("the id is damaged");
  result r = fails("ncclCommInitRank", rank);
  if (r) return r;
  pthread_mutex_lock(&lock);
  clique *q = cliques;
  while (q && memcmp(&q->id, &id, sizeof id)) q = q->next;
  if (!q) {
    q = calloc(1, sizeof *q);
    q->id = id, q->ranks = ranks, q->next = cliques;
    cliques = q;
  }
  q->joined++;
  pthread_cond_broadcast(&changed);
  while (q->joined < ranks) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  comm *c = calloc(1, sizeof *c);
  c->magic = magic, c->rank = rank, c->all = q;
  *out = c;
  return success;
}

static result check(const char *call, comm *c, int type, void *stream) {
  if (!c || c->magic != magic) return invalid("not a communicator");
  if (type < 0 || type > 11) return invalid("not a type");
  if (stream != (void *)(uintptr_t)the_stream) return invalid("not the stream");
  return fails(call, c->rank);
}

static size_t size_of(int type) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return sizes[type];
}

#define COMBINE(T, wide, load, store)                                   \
  for (size_t i = 0; i < n; i++) {                                      \
    T *o = (T *)out + i;                                                \
    wide a = load(*o), b = load(((const T *)in)[i]);                    \
    *o = store(op == 0 ? a + b : op == 1 ? a * b : op == 2 ? (a > b ? a : b) : (a < b ? a : b)); \
  }                                                                     \
  return success

#define PLAIN(x) (x)
static float from_bf16(uint16_t v) { uint32_t b = (uint32_t)v << 16; float f; memcpy(&f, &b, 4); return f; }
static uint16_t to_bf16(float f) { uint32_t b; memcpy(&b, &f, 4); return (uint16_t)(b >> 16); }

static result combine(int type, int op, void *out, const void *in, size_t n) {
  switch (type) {
  case 0: COMBINE(int8_t, int, PLAIN, PLAIN);
  case 1: COMBINE(uint8_t, unsigned, PLAIN, PLAIN);
  case 2: COMBINE(int32_t, int64_t, PLAIN, PLAIN);
  case 3: COMBINE(uint32_t, uint64_t, PLAIN, PLAIN);
  case 4: COMBINE(int64_t, int64_t, PLAIN, PLAIN);
  case 5: COMBINE(uint64_t, uint64_t, PLAIN, PLAIN);
  case 7: COMBINE(float, float, PLAIN, PLAIN);
  case 8: COMBINE(double, double, PLAIN, PLAIN);
  case 9: COMBINE(uint16_t, float, from_bf16, to_bf16);
  }
  return invalid("the stand-in does not reduce this type");
}

// meet brings the ranks together; the last one calls act, and all return its result.
static result meet(comm *c, const char *call, const void *in, void *out, result (*act)(clique *, void *), void *arg) {
  clique *q = c->all;
  pthread_mutex_lock(&lock);
  if (q->arrived == 0) snprintf(q->call, sizeof q->call, "%s", call), q->failed = success;
  else if (strcmp(q->call, call)) q->failed = invalid("ranks make other calls");
  q->part[c->rank].in = in, q->part[c->rank].out = out;
  int round = q->round;
  if (++q->arrived == q->ranks) {
    if (!q->failed) q->failed = act(q, arg);
    q->arrived = 0;
    q->round++;
    pthread_cond_broadcast(&changed);
  }
  while (round == q->round && !c->dead) pthread_cond_wait(&changed, &lock);
  result r = round == q->round ? remote_error : q->failed;
  pthread_mutex_unlock(&lock);
  return r;
}

typedef struct { int type, op, root; size_t n; } shape;

static result reduce(clique *q, void *arg) {
  shape *s = arg;
  char *sum = malloc(s->n * size_of(s->type) + 1);
  memcpy(sum, q->part[0].in, s->n * size_of(s->type));
  result r = success;
  for (int i = 1; i < q->ranks && !r; i++) r = combine(s->type, s->op, sum, q->part[i].in, s->n);
  size_t part = s->root < 0 ? 0 : s->n * size_of(s->type) / q->ranks; // of a reduce-scatter
  for (int i = 0; i < q->ranks && !r; i++)
    memcpy(q->part[i].out, sum + i * part, part ? part : s->n * size_of(s->type));
  free(sum);
  return r;
}

static result reduced(const char *name, const void *in, void *out, size_t n, int type, int op, int scatter, comm *c, void *stream) {
  result r = check(name, c, type, stream);
  if (r) return r;
  if (op < 0 || op > 3) return invalid("not a reduction");
  if (n && (!in || !out)) return invalid("no memory");
  char call[96];
  snprintf(call, sizeof call, "%s %zu %d %d", name, n, type, op);
  shape s = {type, op, scatter ? 0 : -1, scatter ? n * c->all->ranks : n};
  return meet(c, call, in, out, reduce, &s);
}

result ncclAllReduce(const void *in, void *out, size_t n, int type, int op, comm *c, void *stream) {
  return reduced("ncclAllReduce", in, out, n, type, op, 0, c, stream);
}
result ncclReduceScatter(const void *in, void *out, size_t n, int type, int op, comm *c, void *stream) {
  return reduced("ncclReduceScatter", in, out, n, type, op, 1, c, stream);
}

static result gather(clique *q, void *arg) {
  shape *s = arg;
  for (int to = 0; to < q->ranks; to++)
    for (int from = 0; from < q->ranks; from++) memcpy(q->part[to].out + from * s->n, q->part[from].in, s->n);
  return success;
}
static result spread(clique *q, void *arg) {
  shape *s = arg;
  for (int to = 0; to < q->ranks; to++) memmove(q->part[to].out, q->part[s->root].in, s->n);
  return success;
}

result ncclAllGather(const void *in, void *out, size_t n, int type, comm *c, void *stream) {
  result r = check("ncclAllGather", c, type, stream);
  if (r) return r;
  char call[96];
  snprintf(call, sizeof call, "ncclAllGather %zu %d", n, type);
  shape s = {type, 0, 0, n * size_of(type)};
  return meet(c, call, in, out, gather, &s);
}
result ncclBroadcast(const void *in, void *out, size_t n, int type, int root, comm *c, void *stream) {
  result r = check("ncclBroadcast", c, type, stream);
  if (r) return r;
  if (root < 0 || root >= c->all->ranks) return invalid("not a root");
  char call[96];
  snprintf(call, sizeof call, "ncclBroadcast %zu %d %d", n, type, root);
  shape s = {type, 0, root, n * size_of(type)};
  return meet(c, call, in, out, spread, &s);
}

result ncclGroupStart(void) {
  depth++;
  return success;
}

// push keeps a message until the group ends, since a send may wait for a receive after it.
static result push(const char *name, int receive, void *at, size_t n, int type, int peer, comm *c, void *stream) {
  result r = check(name, c, type, stream);
  if (r) return r;
  if (peer < 0 || peer >= c->all->ranks) return invalid("not a peer");
  if (n && !at) return invalid("no memory");
  if (!depth || in_queue == max_queue) return invalid_usage;
  queue[in_queue++] = (queued){receive, peer, at, n * size_of(type), c};
  return success;
}
result ncclSend(const void *in, size_t n, int type, int peer, comm *c, void *stream) {
  return push("ncclSend", 0, (void *)in, n, type, peer, c, stream);
}
result ncclRecv(void *out, size_t n, int type, int peer, comm *c, void *stream) {
  return push("ncclRecv", 1, out, n, type, peer, c, stream);
}

result ncclGroupEnd(void) {
  if (!depth) return invalid_usage;
  if (--depth) return success;
  result r = success;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < in_queue; i++) {
    queued *m = &queue[i];
    if (m->receive) continue;
    slot *s = &m->c->all->message[m->c->rank][m->peer];
    while (s->ready) pthread_cond_wait(&changed, &lock);
    char *copy = malloc(m->bytes + 1);
    memcpy(copy, m->at, m->bytes);
    *s = (slot){copy, 0, m->bytes, 1};
  }
  pthread_cond_broadcast(&changed);
  for (int i = 0; i < in_queue; i++) {
    queued *m = &queue[i];
    if (!m->receive) continue;
    slot *s = &m->c->all->message[m->peer][m->c->rank];
    while (!s->ready && !m->c->dead) pthread_cond_wait(&changed, &lock);
    if (!s->ready) { r = remote_error; continue; }
    if (s->bytes != m->bytes) r = invalid("a message of another size");
    else memcpy(m->at, s->in, m->bytes);
    free((void *)s->in);
    s->ready = 0;
  }
  in_queue = 0;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return r;
}

result ncclCommGetAsyncError(comm *c, result *r) {
  if (!c || c->magic != magic) return invalid("not a communicator");
  *r = fails("async", c->rank);
  return success;
}

result ncclCommAbort(comm *c) {
  if (!c || c->magic != magic) return invalid("not a communicator");
  pthread_mutex_lock(&lock);
  c->dead = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return success;
}
result ncclCommDestroy(comm *c) {
  if (!c || c->magic != magic) return invalid("not a communicator");
  result r = fails("ncclCommDestroy", c->rank);
  if (r) return r;
  c->magic = 0;
  free(c);
  return success;
}
