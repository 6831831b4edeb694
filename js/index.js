// `import ... from 'ashlar'` in browsers, workers and bundles; node.js is the same for Node.
import { makeLoad, makeLoadSync } from './heap.js';

export { AshlarError } from './heap.js';

export const load = makeLoad((url) => fetch(url));
export const loadSync = makeLoadSync(() => {
  throw new TypeError('ashlar: loadSync needs a module here: nothing can be fetched at once');
});
