import { parseArgs } from "node:util";
import { printHost } from "./support/host.ts";
import { pin, loadCore } from "./support/peer-process.ts";
import { openWebhookBench } from "./support/webhook-bench.ts";
import { measureHanging } from "./support/webhook-hanging.ts";
import { measureKills } from "./support/webhook-kills.ts";
import { measureLatency } from "./support/webhook-latency.ts";
import { measurePending } from "./support/webhook-pending.ts";
import { measureThroughput } from "./support/webhook-throughput.ts";

// Durable deliveries against a bare sender and pg-boss; commit to receiver at a steady rate; hanging endpoints; kill -9
// at full load; a million waiting deliveries. The sender has a core to itself; etcd, PostgreSQL, the receiver and the
// load share the other.
const { values } = parseArgs({
  options: {
    deliveries: { type: "string", default: "20000" },
    pairs: { type: "string", default: "5" },
    seconds: { type: "string", default: "20" },
    rate: { type: "string", default: "1000" },
    pending: { type: "string", default: "1000000" },
    only: { type: "string", default: "throughput,latency,hanging,kills,pending" },
  },
});
const seconds = Number(values.seconds);
const selected = new Set(values.only.split(","));

printHost();
pin(process.pid, loadCore);
const bench = await openWebhookBench();
try {
  if (selected.has("throughput")) await measureThroughput(bench, Number(values.deliveries), Number(values.pairs));
  if (selected.has("latency")) await measureLatency(bench, seconds, Number(values.rate));
  if (selected.has("hanging")) await measureHanging(bench, seconds, Number(values.pairs));
  if (selected.has("kills")) await measureKills(bench, seconds);
  if (selected.has("pending")) await measurePending(bench, Number(values.pending));
} finally {
  await bench.close();
}
