// Recorded traces: tests/traces/README.md tells the format. They are decoded here, once, into the
// records of lib/heap.h, so that no bench times or counts the decoding.
import fs from 'node:fs';
import path from 'node:path';
import { buildPath, root } from '../../demo/toolchain.mjs';
import { fail } from './report.mjs';

export const recordBytes = 12;
export const chunkRecords = 1 << 14; // heap.h: trace_chunk
const maxSlots = 1 << 19; // trace.c: max_slots
const kinds = { free: 1, aligned: 4 };

export const traceNames = () =>
  fs
    .readdirSync(path.join(root, 'tests/traces'))
    .filter((name) => name.endsWith('.mtr.xz'))
    .map((name) => name.slice(0, -'.mtr.xz'.length));

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 12;
  }
  number() {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.bytes[this.at++];
      if (byte === undefined || scale > 2 ** 35) throw new Error('it ends early');
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }
}

function decode(bytes) {
  if (bytes.length < 12 || bytes.toString('latin1', 0, 4) !== 'MTR1') throw new Error('not MTR1');
  const slots = bytes.readUInt32LE(4);
  const count = bytes.readUInt32LE(8);
  if (slots > maxSlots) throw new Error(`${slots} slots, more than ${maxSlots}`);
  const reader = new Reader(bytes);
  const records = Buffer.alloc(count * recordBytes);
  const sizes = new Float64Array(slots);
  let [live, peak] = [0, 0];
  for (let at = 0; at < records.length; at += recordBytes) {
    const kind = reader.number();
    const slot = reader.number();
    const alignment = kind === kinds.aligned ? reader.number() : 0;
    const size = kind === kinds.free ? 0 : reader.number();
    if (kind > kinds.aligned || slot >= slots || size > 0xffffffff || alignment > 31) {
      throw new Error(`operation ${at / recordBytes + 1} is malformed`);
    }
    records.writeUInt16LE(kind, at);
    records.writeUInt16LE(alignment, at + 2);
    records.writeUInt32LE(slot, at + 4);
    records.writeUInt32LE(size, at + 8);
    live += size - sizes[slot];
    sizes[slot] = size;
    peak = Math.max(peak, live);
  }
  return { operations: count, records, peakLive: peak };
}

// A recorded trace's name, or the path of an .mtr file of the user's.
export function loadTrace(name) {
  const file = traceNames().includes(name) ? buildPath('traces', `${name}.mtr`) : name;
  if (!fs.existsSync(file)) fail(`no trace '${name}'; there are: ${traceNames().join(', ')}`);
  try {
    return { name: path.basename(file, '.mtr'), ...decode(fs.readFileSync(file)) };
  } catch (error) {
    return fail(`${file} cannot be replayed: ${error.message}`);
  }
}
