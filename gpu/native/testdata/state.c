/* Uses every function of the interface with the program "step" of the tests: w' = w + x
 * in place, v' = v + w' elsewhere, loss = w' + v'. */
#include "dmir.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) \
  if (!(x)) { printf("line %d: %s (%s)\n", __LINE__, #x, p ? dmir_error(p) : text); return 1; }

static int is(const float *at, float a, float b, float c) { return at[0] == a && at[1] == b && at[2] == c; }

int main(void) {
  char text[100] = "";
  float w[] = {1, 2, 3}, v[] = {10, 20, 30}, x[] = {1, 1, 1}, loss[3], out[3];
  dmir *p = NULL;
  CHECK(dmir_version() == 1 && !strcmp(dmir_name(), "step") && dmir_inputs() == 3 && dmir_outputs() == 3 && dmir_steps() == 3);
  CHECK(!dmir_input(3) && !dmir_input(-1) && !dmir_output(3) && !dmir_step_name(3) && !strcmp(dmir_step_name(1), "velocity"));
  const dmir_tensor *t = dmir_output(0);
  CHECK(!strcmp(t->name, "w") && !strcmp(t->elem, "f32") && t->rank == 1 && t->shape[0] == 3 && t->strides[0] == 1 && t->bytes == 12);
  CHECK(t->state == 0 && dmir_output(1)->state == 1 && dmir_output(2)->state == -1 && dmir_input(1)->state == 1 && dmir_input(2)->state == -1);

  p = dmir_create(2, text, sizeof text);
  CHECK(p && dmir_threads(p) == 2 && dmir_at(p) == -1);
  CHECK(dmir_read_output(p, 0, out) == DMIR_INVALID);
  CHECK(dmir_run(p) == DMIR_UNBOUND && !strcmp(dmir_error(p), "the input w is not bound"));
  CHECK(dmir_bind_input(p, 3, x) == DMIR_INVALID && dmir_bind_output(p, -1, x) == DMIR_INVALID && dmir_bind_input(p, 0, NULL) == DMIR_INVALID);

  /* The state is the instance's; an output of other memory receives it. */
  CHECK(!dmir_bind_input(p, 0, w) && !dmir_bind_input(p, 1, v) && !dmir_bind_input(p, 2, x) && !dmir_bind_output(p, 2, loss));
  CHECK(!dmir_run(p) && is(loss, 14, 26, 38) && is(w, 1, 2, 3) && is(v, 10, 20, 30));
  CHECK(dmir_at(p) == 2 && dmir_time(p) > 0 && dmir_step_runs(p, 1) == 1 && dmir_step_runs(p, 7) == 0 && dmir_step_time(p, -1) == 0);
  CHECK(!dmir_bind_output(p, 0, out) && !dmir_run(p) && is(loss, 18, 31, 44) && is(out, 3, 4, 5));
  CHECK(!dmir_read_output(p, 1, out) && is(out, 15, 27, 39));

  /* The state moves to the caller's memory, is there, and comes back. */
  CHECK(!dmir_bind_output(p, 0, w) && is(w, 3, 4, 5) && !dmir_bind_output(p, 1, v) && is(v, 15, 27, 39));
  CHECK(!dmir_run(p) && is(w, 4, 5, 6) && is(v, 19, 32, 45) && is(loss, 23, 37, 51));
  w[0] = 0;
  CHECK(!dmir_run(p) && is(w, 1, 6, 7) && is(v, 20, 38, 52) && is(loss, 21, 44, 59));
  CHECK(!dmir_bind_output(p, 0, NULL) && !dmir_bind_output(p, 1, NULL) && !dmir_run(p) && is(w, 1, 6, 7));
  CHECK(!dmir_read_output(p, 0, out) && is(out, 2, 7, 8) && !dmir_run(p) && !dmir_read_output(p, 0, out) && is(out, 3, 8, 9));

  /* Memory that is not aligned to its elements is copied. */
  char odd[40], result[40];
  float batch[] = {10, 10, 10};
  memcpy(odd + 1, batch, 12);
  CHECK(!dmir_bind_input(p, 2, odd + 1) && !dmir_bind_output(p, 2, result + 3) && !dmir_run(p));
  memcpy(loss, result + 3, 12);
  CHECK(!dmir_read_output(p, 0, out) && is(out, 13, 18, 19) && !dmir_read_output(p, 1, out));
  CHECK(is(loss, 13 + out[0], 18 + out[1], 19 + out[2]));
  dmir_flush(p);

  /* A cancel ends one run. */
  dmir_cancel(p);
  CHECK(dmir_run(p) == DMIR_CANCELLED && !strcmp(dmir_error(p), "the run was cancelled") && dmir_run(p) == DMIR_OK);

  /* Memory that is none. */
  CHECK(!dmir_bind_input(p, 0, (void *)64) && dmir_run(p) == DMIR_FAULTED && dmir_at(p) == -1 && strstr(dmir_error(p), "copy of an input"));
  CHECK(dmir_run(p) == DMIR_FAULTED && strstr(dmir_error(p), "an earlier run failed"));
  dmir_destroy(p);
  dmir_destroy(NULL);
  puts("ok");
  return 0;
}
