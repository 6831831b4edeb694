// `import ... from 'ashlar'` in Node, whose fetch knows no files.
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { makeLoad, makeLoadSync } from './heap.js';

export { AshlarError } from './heap.js';

export const load = makeLoad((url) => (url.protocol === 'file:' ? readFile(url) : fetch(url)));
export const loadSync = makeLoadSync(readFileSync);
