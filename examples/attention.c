/* Attention from C: cc attention.c $(pkg-config --cflags --libs regard) */
#include <regard/regard.h>
#include <stdio.h>

int main(void) {
  const float query[] = {1, 0}, key[] = {1, 0, -1, 0, 0, 1}, value[] = {10, 20, 30}, theta[] = {4, 0};
  const regard_additive input = {.batch = 1,
                                 .queries = 1,
                                 .keys = 3,
                                 .hidden = 2,
                                 .width = 1,
                                 .query = query,
                                 .key = key,
                                 .value = value,
                                 .theta = theta};
  float output[1], weights[3];
  regard_trace* trace = NULL;
  if (regard_attend_additive(NULL, &input, output, &trace) != REGARD_OK ||
      regard_trace_weights(trace, 0, weights, 3) != REGARD_OK) {
    fprintf(stderr, "%s\n", regard_last_error());
    return 1;
  }
  printf("read %.2f, weights %.3f %.3f %.3f\n", output[0], weights[0], weights[1], weights[2]);
  regard_trace_free(trace);
  return 0;
}
