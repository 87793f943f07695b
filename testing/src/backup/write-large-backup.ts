import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createBackupWriter } from "@holdfast/common/backup/backup-writer.ts";

// Writes a backup of incompressible data, its size in MiB as the argument, to a store slower than its source; prints
// its peak memory in MiB.
const chunk = randomBytes(64 << 10);
const count = Number(process.argv[2]) * 16;

async function* source() {
  for (let i = 0; i < count; i += 1) {
    const bytes = Buffer.from(chunk);
    bytes.writeUInt32BE(i);
    yield bytes;
    // Each chunk arrives in a separate event, as from a pipe.
    await new Promise((resolve) => void setImmediate(resolve));
  }
}

const writer = createBackupWriter({
  location: { service: "s-1", backup: "b-1", attempt: 1 },
  key: { id: "k1", secret: randomBytes(32) },
  // Time: the delay of a slow store.
  put: () => sleep(50),
});
await writer.write({ name: "dump", member: "n-1", bytes: source() });
const most = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync("/proc/self/status", "latin1"));
console.log(Math.ceil(Number(most?.[1]) / 1_024));
