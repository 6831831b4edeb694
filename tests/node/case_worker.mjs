// The worker in which runCase (support.mjs) runs one case after the other.
import { parentPort } from 'node:worker_threads';
import { start } from './support.mjs';

parentPort.on('message', async ({ program, name, args, limitPages }) => {
  try {
    const instance = await start(program, { limitPages });
    parentPort.postMessage(instance.call(name, ...args));
  } catch (error) {
    parentPort.postMessage({ error: error.stack });
  }
});
