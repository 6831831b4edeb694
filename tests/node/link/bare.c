// The least that a program with malloc is.
#include <stdlib.h>

int main(void) {
#ifdef MALLOC
  if (malloc(10) == NULL) return 1;
#endif
  return 0;
}
