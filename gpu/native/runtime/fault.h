/* Faults of kernels: an access outside of all memory, a division by zero, an instruction
 * that this processor lacks. The handlers of their signals leave the kernel, and the run
 * ends with an error. All other faults go to the handlers that were there before: those
 * of the process, or of another program that dmir compiled. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct guard {
  sigjmp_buf jump;
  volatile int signal;
  void *volatile address;
};

/* The guard of the kernel that this thread is in. Threads write to it before they run a
 * kernel, so that the handler's access allocates nothing. */
static _Thread_local struct guard *volatile current;

/* The first fault of a run, by any thread. */
struct fault {
  _Atomic int signal; /* 0: none */
  void *address;
};

static const int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { FAULT_SIGNALS = sizeof fault_signals / sizeof *fault_signals };
static struct sigaction before[FAULT_SIGNALS];

static void on_fault(int signal, siginfo_t *info, void *context) {
  struct guard *g = current;
  if (g && info->si_code > 0) { /* not sent by kill */
    current = NULL;
    g->signal = signal;
    g->address = info->si_addr;
    pthread_sigmask(SIG_SETMASK, &((ucontext_t *)context)->uc_sigmask, NULL);
    siglongjmp(g->jump, 1);
  }
  int i = 0;
  while (fault_signals[i] != signal) i++;
  if (before[i].sa_flags & SA_SIGINFO) {
    before[i].sa_sigaction(signal, info, context);
  } else if (before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN) {
    before[i].sa_handler(signal);
  } else { /* the instruction faults again, as if there had been no handler */
    sigaction(signal, &before[i], NULL);
    if (info->si_code <= 0) raise(signal);
  }
}

/* Handlers stay until the process ends: another program's handlers may call them. They
 * run on the alternative stack of threads that have one, as those of Go. */
static void catch_faults(void) {
  struct sigaction ours;
  memset(&ours, 0, sizeof ours);
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&ours.sa_mask);
  for (int i = 0; i < FAULT_SIGNALS; i++) sigaction(fault_signals[i], &ours, &before[i]);
}

static pthread_once_t faults_once = PTHREAD_ONCE_INIT;

/* What threads share of one launch. */
struct job {
  kernel_function *kernel;
  void **args;
  int64_t tasks;
  struct fault *fault; /* gets the first one */
};

/* Runs tasks of the job up to the end or a fault, none after one. */
static void guarded(const struct job *job, int64_t first, int64_t last, void *scratch) {
  if (atomic_load(&job->fault->signal)) return;
  struct guard g;
  if (sigsetjmp(g.jump, 0) == 0) {
    current = &g;
    job->kernel(job->args, first, last, scratch);
    current = NULL;
    return;
  }
  int none = 0;
  if (atomic_compare_exchange_strong(&job->fault->signal, &none, -1)) {
    job->fault->address = g.address;
    atomic_store(&job->fault->signal, g.signal);
  }
}

static void describe_fault(struct fault *f, char *text, size_t size) {
  switch (atomic_load(&f->signal)) {
  case SIGFPE:
    snprintf(text, size, "it divides an integer by zero");
    break;
  case SIGILL:
    snprintf(text, size, "this processor lacks one of its instructions, or it gave up");
    break;
  default:
    snprintf(text, size, "it accesses the address %p, which is none of its memory", f->address);
  }
}
