// Loaded before a program made by emcc when runEmscripten (toolchain.mjs) runs it: watches which
// instance the glue makes and reports on descriptor 3 when the process ends, however it ends.
'use strict';
const fs = require('node:fs');
const { isMainThread } = require('node:worker_threads');

// NODE_OPTIONS could load this file into a worker of a pthread build as well: only one reports.
if (isMainThread && process.env.ASHLAR_HOST_REQUEST) {
  const request = JSON.parse(process.env.ASHLAR_HOST_REQUEST);
  delete process.env.ASHLAR_HOST_REQUEST;
  const facts = { trap: null, memoryBytes: 0, strings: {}, numbers: {} };
  let memory = null;
  let exports = null;

  const isMemory = (value) => value instanceof WebAssembly.Memory;
  function watch(instance, imports) {
    if (exports) return;
    exports = instance.exports;
    // To read a GOT group, of a MAIN_MODULE program, would make entries in it.
    const groups = Object.entries(imports ?? {}).filter(([name]) => !name.startsWith('GOT.'));
    const imported = groups.flatMap(([, group]) => Object.values(group ?? {}));
    memory = Object.values(exports).find(isMemory) ?? imported.find(isMemory) ?? null;
  }

  const { instantiate, Instance } = WebAssembly;
  WebAssembly.instantiate = async (source, imports) => {
    const result = await instantiate.call(WebAssembly, source, imports);
    watch(result.instance ?? result, imports);
    return result;
  };
  WebAssembly.Instance = new Proxy(Instance, {
    construct(target, [module, imports]) {
      const instance = new target(module, imports);
      watch(instance, imports);
      return instance;
    },
  });

  const text = (address) => {
    const bytes = new Uint8Array(memory.buffer);
    return Buffer.from(bytes.slice(address, bytes.indexOf(0, address))).toString();
  };
  // At -O3 the wasm's export names are minified: then the glue's Module knows them.
  const call = (name) => {
    try {
      const callee = exports[name] ?? process.mainModule.exports[`_${name}`];
      return typeof callee === 'function' ? callee() : null;
    } catch {
      return null;
    }
  };
  let reported = false;
  function report() {
    if (reported) return;
    reported = true;
    if (memory) {
      facts.memoryBytes = memory.buffer.byteLength;
      for (const name of request.strings) {
        const address = call(name);
        facts.strings[name] = address === null ? null : text(address >>> 0);
      }
      for (const name of request.numbers) facts.numbers[name] = call(name);
    }
    fs.writeSync(3, JSON.stringify(facts));
  }
  process.on('exit', report);
  // The glue's own handler throws again, and then Node ends without an exit event.
  process.on('uncaughtExceptionMonitor', (error) => {
    if (error?.name === 'ExitStatus') return;
    facts.trap = `${error?.name ?? 'Error'}: ${error?.message ?? error}`;
    report();
  });
}
