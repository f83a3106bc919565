/* Runs a compiled program in C and prints the mean of each result: see dmir.h.
 *   dmir compile ../ffn.dmir --emit obj -o ffn.o
 *   dmir compile ../ffn.dmir --emit c-header -o dmir.h
 *   cc embed.c ffn.o -lm -lpthread -o embed && ./embed
 * Element k of each input of type f32 is (k % 7) / 16; others are 0. */
#include "dmir.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float *floats(const dmir_tensor *t) { return strcmp(t->elem, "f32") ? NULL : calloc(t->bytes / 4 + 1, 4); }

int main(void) {
  dmir *p = dmir_create(0, NULL, 0); /* all processors */
  for (int i = 0; i < dmir_inputs(); i++) {
    const dmir_tensor *t = dmir_input(i);
    float *x = floats(t);
    for (int64_t k = 0; x && k < t->bytes / 4; k++) x[k] = (float)(k % 7) / 16;
    dmir_bind_input(p, i, x ? (void *)x : calloc(1, t->bytes));
  }
  int status = dmir_run(p);
  printf("@%s with %d threads: %s, %.0f ns\n", dmir_name(), dmir_threads(p), status ? dmir_error(p) : "done", dmir_time(p));
  for (int i = 0; i < dmir_outputs() && !status; i++) {
    const dmir_tensor *t = dmir_output(i);
    float *y = floats(t);
    double sum = 0;
    if (!y || dmir_read_output(p, i, y)) continue;
    for (int64_t k = 0; k < t->bytes / 4; k++) sum += y[k];
    printf("%s: mean %.4g\n", t->name, sum / (t->bytes / 4));
  }
  dmir_destroy(p);
  return status;
}
