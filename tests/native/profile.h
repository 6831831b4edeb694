// Facts of the build under test: what -DASHLAR_PROFILE and the target promise.
#pragma once

#include <stddef.h>

#ifndef ASHLAR_PROFILE
#define ASHLAR_PROFILE fast
#endif

#define TEST_PROFILE_fast 1
#define TEST_PROFILE_small 2
#define TEST_PROFILE_bare 3
#define TEST_JOIN_(a, b) a##b
#define TEST_JOIN(a, b) TEST_JOIN_(a, b)
#define TEST_PROFILE TEST_JOIN(TEST_PROFILE_, ASHLAR_PROFILE)
#define TEST_TEXT_(a) #a
#define TEST_TEXT(a) TEST_TEXT_(a)

// What an #if can ask: whether misuse is checked, and whether messages are words or numbers.
#define TEST_CHECKS_MISUSE (TEST_PROFILE != TEST_PROFILE_bare)
#define TEST_NUMERIC_MESSAGES (TEST_PROFILE == TEST_PROFILE_small)

namespace test {

inline constexpr const char* profile_name = TEST_TEXT(ASHLAR_PROFILE);

#ifdef ASHLAR_ALIGNMENT
inline constexpr size_t alignment = ASHLAR_ALIGNMENT;
#else
inline constexpr size_t alignment = 16;
#endif

#ifdef ASHLAR_FAKE_OS
inline constexpr bool fake_os = true;
#else
inline constexpr bool fake_os = false;
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace test
