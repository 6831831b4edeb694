// ./dev bench browser [--port N] [--quick] [--build-only]: builds the page of bench/browser into
// build/bench-browser and serves it on 127.0.0.1. What is built works from any static server too.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { buildPath, emcc, findEmscripten, root, run } from '../demo/toolchain.mjs';

const source = path.join(root, 'bench/browser');
const chart = path.join(root, 'node_modules/chart.js/dist/chart.umd.min.js');
const library = buildPath('emscripten', 'libashlar.a');
const flags = [
  '-O2', '--no-entry', '-sSTANDALONE_WASM', '-sALLOW_MEMORY_GROWTH', '-sMAXIMUM_MEMORY=1GB',
  // Little at the start, so that what is measured is what the allocator asked for.
  '-sTOTAL_STACK=64KB', '-sINITIAL_MEMORY=256KB',
];
const modules = [
  { name: 'dlmalloc', inputs: ['-sMALLOC=dlmalloc'] },
  { name: 'emmalloc', inputs: ['-sMALLOC=emmalloc'] },
  { name: 'ashlar', inputs: [library, '-sMALLOC=none'] },
];

// A module that holds another malloc than its name says would make the race a lie.
function fingerprint(folder, name) {
  const text = fs.readFileSync(path.join(folder, `${name}.wasm`), 'latin1');
  const found = /ashlar \d+\.\d+\.\d+ \w+/.exec(text)?.[0] ?? null;
  if ((name === 'ashlar') !== (found !== null)) {
    throw new Error(`${name}.wasm was linked with ${found ?? 'another malloc than Ashlar'}`);
  }
  return found;
}

async function compile(folder) {
  const object = path.join(folder, 'shapes.o');
  const strict = ['-Wall', '-Wextra', '-Werror'];
  await emcc(['-O2', ...strict, '-c', path.join(source, 'shapes.c'), '-o', object]);
  for (const { name, inputs } of modules) {
    await emcc([object, ...flags, ...inputs, '-o', path.join(folder, `${name}.wasm`)]);
  }
  fs.rmSync(object);
  const [ashlar] = modules.map(({ name }) => fingerprint(folder, name)).filter(Boolean);
  const { stdout } = await run(findEmscripten().cc, ['--version']);
  return `${ashlar}, emcc ${/\d+\.\d+\.\d+/.exec(stdout)?.[0] ?? '?'} -O2`;
}

// Builds the page and returns its folder. Files come under their names whole: another may serve.
export async function build() {
  for (const [file, remedy] of [[library, 'build emscripten'], [chart, 'setup']]) {
    const name = path.relative(root, file);
    if (!fs.existsSync(file)) throw new Error(`${name} is missing: run ./dev ${remedy}`);
  }
  const folder = buildPath('bench-browser');
  fs.mkdirSync(folder, { recursive: true });
  const fresh = fs.mkdtempSync(`${folder}-new-`);
  try {
    const built = await compile(fresh);
    for (const name of fs.readdirSync(source).filter((file) => /\.(html|js|css)$/.test(file))) {
      const text = fs.readFileSync(path.join(source, name), 'utf8');
      fs.writeFileSync(path.join(fresh, name), text.replace('{{built}}', built));
    }
    fs.copyFileSync(chart, path.join(fresh, path.basename(chart)));
    for (const name of fs.readdirSync(fresh)) {
      fs.renameSync(path.join(fresh, name), path.join(folder, name));
    }
  } finally {
    fs.rmSync(fresh, { recursive: true });
  }
  return folder;
}

const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.wasm': 'application/wasm',
};
const headers = {
  // Isolated pages get the fine clock.
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
};

// Serves the files that lie in `folder` itself: a name is looked up, never joined to a path.
function answer(folder, request, response) {
  const reply = (status, type, body) => {
    response.writeHead(status, { ...headers, 'Content-Type': type });
    response.end(request.method === 'HEAD' ? undefined : body);
  };
  const plain = 'text/plain; charset=utf-8';
  if (!['GET', 'HEAD'].includes(request.method)) return reply(405, plain, 'only GET and HEAD\n');
  const asked = request.url.split('?')[0].slice(1) || 'index.html';
  const type = types[path.extname(asked)];
  try {
    const name = fs.readdirSync(folder).find((file) => file === asked);
    if (!name || !type) return reply(404, plain, 'no such file\n');
    return reply(200, type, fs.readFileSync(path.join(folder, name)));
  } catch (error) {
    // Somebody cleans the folder up meanwhile.
    return reply(500, plain, `${error.message}\n`);
  }
}

// Port 0 takes a free one. Resolves to {url, close}.
export function serve(folder, port = 0) {
  const server = http.createServer((request, response) => answer(folder, request, response));
  return new Promise((resolve, reject) => {
    server.on('error', (error) => {
      const taken = error.code === 'EADDRINUSE';
      const line = `port ${port} is in use: choose another with --port`;
      reject(taken ? new Error(line) : error);
    });
    server.listen(port, '127.0.0.1', () => {
      const close = () => new Promise((closed) => {
        server.close(closed);
        server.closeAllConnections();
      });
      resolve({ url: `http://127.0.0.1:${server.address().port}/`, close });
    });
  });
}

function parse() {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '8181' },
      quick: { type: 'boolean', default: false },
      'build-only': { type: 'boolean', default: false },
    },
  });
  if (!/^\d{1,5}$/.test(values.port) || Number(values.port) > 65535) {
    throw new Error(`--port takes a number from 0 to 65535, not '${values.port}'`);
  }
  return values;
}

async function main() {
  const options = parse();
  const folder = await build();
  if (options['build-only']) {
    console.log(`bench: built ${path.relative(root, folder)}`);
    return;
  }
  const { url } = await serve(folder, Number(options.port));
  console.log(`bench: ${url}${options.quick ? '?race=quick' : ''} (Ctrl-C ends it)`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    await main();
  } catch (error) {
    console.error(`bench: ${error.message}`);
    process.exit(1);
  }
}
