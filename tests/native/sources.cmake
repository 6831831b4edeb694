# Which test source belongs to which configuration. Paths are relative to tests/native.

# On every configuration: {native OS, fake OS} x {64-bit, 32-bit} x {plain, ASan+UBSan} x profile.
set(ASHLAR_TEST_SOURCES
  support.cc
  semantics_test.cc
  misuse_test.cc
  overflow_test.cc
  growth_test.cc
  model_test.cc
  stats_test.cc
  replay_test.cc
  ../replay/replay.c)

# Added when the OS is the fake one: the layer itself, and the suites that steer it.
set(ASHLAR_FAKE_OS_SOURCES
  fake_os/fake_os.cc
  oom_test.cc
  strangers_test.cc)

# Added when the OS is the native one.
set(ASHLAR_NATIVE_OS_SOURCES
  stress_test.cc)

# All of the binary that runs under TSan, with the native OS.
set(ASHLAR_TSAN_SOURCES
  support.cc
  stress_test.cc)

# All of the binary that is linked with the override archive and calls malloc by its own name.
# Compiled with ASHLAR_PLAIN_NAMES and -fno-builtin.
set(ASHLAR_OVERRIDE_TEST_SOURCES
  support.cc
  semantics_test.cc
  override_test.cc)

# Compile definitions that these sources need beside ASHLAR_PROFILE, ASHLAR_FAKE_OS and
# ASHLAR_ALIGNMENT: ASHLAR_TRACE_DIR, the folder that holds the unpacked traces (a string), and
# REPLAY_ASHLAR_NAMES, REPLAY_NO_MAIN for ../replay/replay.c.
set(ASHLAR_TEST_DEFINITIONS REPLAY_ASHLAR_NAMES REPLAY_NO_MAIN)
