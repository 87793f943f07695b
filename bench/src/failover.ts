import { parseArgs } from "node:util";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import { measureCopy } from "./support/failover-copy.ts";
import { measurePgbench } from "./support/failover-pgbench.ts";
import { measureValkey, measureWrites } from "./support/failover-writes.ts";
import { printHost } from "./support/host.ts";

// Time without writes of a service of two nodes, at switchovers and failures of its primary, alternating with Patroni
// behind HAProxy and with Sentinel; time of a replica's copy, against pg_basebackup of the same data; and pgbench,
// against the same two servers without a platform. No acknowledged row may be missing after switchovers.
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
const selected = new Set(values.only.split(","));

printHost();
const platform = await startPlatform({ environment: {} });
try {
  if (selected.has("writes")) await measureWrites(platform, Number(values.switchovers), Number(values.failures));
  if (selected.has("valkey")) await measureValkey(platform, Number(values.failures));
  if (selected.has("copy")) await measureCopy(platform, Number(values.megabytes));
  if (selected.has("pgbench")) await measurePgbench(platform, Number(values.pairs), Number(values.seconds));
} finally {
  await platform.remove();
}
