import { parseArgs } from "node:util";
import { startPlatform } from "@holdfast/test/support/platform/platform.ts";
import { measureCopy } from "./support/failover-copy.ts";
import { measurePgbench } from "./support/failover-pgbench.ts";
import { measureValkey, measureWrites } from "./support/failover-writes.ts";
import { printHost } from "./support/host.ts";

// For how long a service of two nodes takes no write when it is switched over or its primary fails, in turn with Patroni behind
// HAProxy and with Sentinel; how long a replica's copy takes, against pg_basebackup of the same data; and pgbench, against
// the same two servers run bare. No row that was acknowledged is missing after switchovers.
const { values } = parseArgs({
  options: {
    switchovers: { type: "string", default: "20" },
    // A machine that ended five times within ten minutes stays down, and each round ends one twice.
    failures: { type: "string", default: "3" },
    megabytes: { type: "string", default: "2000" },
    pairs: { type: "string", default: "5" },
    seconds: { type: "string", default: "15" },
    only: { type: "string", default: "writes,valkey,copy,pgbench" },
  },
});
const wanted = new Set(values.only.split(","));

printHost();
const platform = await startPlatform({ environment: {} });
try {
  if (wanted.has("writes")) await measureWrites(platform, Number(values.switchovers), Number(values.failures));
  if (wanted.has("valkey")) await measureValkey(platform, Number(values.failures));
  if (wanted.has("copy")) await measureCopy(platform, Number(values.megabytes));
  if (wanted.has("pgbench")) await measurePgbench(platform, Number(values.pairs), Number(values.seconds));
} finally {
  await platform.remove();
}
