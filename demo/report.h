/* What a demo program tells demo/run.mjs about itself: one line on standard error at its end, such
 * as "ashlar-demo: allocations=123456 live_peak=9000000 used_peak=9500000 rss=0 us=812345
 * version=ashlar 0.1.0 fast". Standard output stays the same under every malloc. */
#ifndef ASHLAR_DEMO_REPORT_H
#define ASHLAR_DEMO_REPORT_H

#ifdef __cplusplus
extern "C" {
#endif

void report_begin(void);  /* starts the clock */
void report_sample(void); /* notes how many bytes are live now; call it where much is live */
void report_end(void);    /* stops the clock and prints the line */

#ifdef __cplusplus
}
#endif

#endif
