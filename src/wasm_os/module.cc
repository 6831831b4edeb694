// Only in the freestanding modules: nobody else is in them, so the linker's heap is ours.
extern "C" {
extern const unsigned char ashlar_is_malloc;
const unsigned char ashlar_is_malloc = 1;
}
