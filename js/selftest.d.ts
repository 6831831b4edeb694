/** The self-test of Ashlar as a bare WebAssembly module: `ashlar/wasm/PROFILE/selftest.wasm`. */

export interface Check {
  kind: 'check' | 'misuse';
  index: number;
  name: string;
  code: number;
}
export interface Result extends Omit<Check, 'index'> {
  ok: boolean;
  /** Does not apply to this profile; `ok` is true then. */
  skipped: boolean;
  /** Why it failed or was skipped, else ''. */
  detail: string;
}
export interface Summary {
  passed: number;
  failed: number;
  skipped: number;
  /** That of the first check that failed, or 0. */
  code: number;
  results: Result[];
}
export interface RunOptions {
  imports?: WebAssembly.Imports;
  seed?: number;
}

export function selftest(
  source: ArrayBuffer | ArrayBufferView | WebAssembly.Module,
  options?: RunOptions & { onResult?: (result: Result) => void },
): Promise<Summary>;
export function listChecks(
  module: WebAssembly.Module,
  options?: Pick<RunOptions, 'imports'>,
): Promise<Check[]>;
export function runCheck(
  module: WebAssembly.Module,
  check: Check,
  options?: RunOptions,
): Promise<Result>;
